"""CpuRef's Cast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.core.numerics import float_bits, float_values
from armpy.core.text_memory import STRING_BYTES, GrowingText
from armpy.ops import Cast
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_reference.strings import MOST_CHARACTERS, as_numbers, as_texts
from armpy_reference.workload import ReferenceWorkload


class CastWorkload(ReferenceWorkload[Cast]):
    """Convert stored numbers with C's rules, saturating where those leave it open."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Convert each element."""
        source, target = self.input_infos[0], self.info.outputs[0]
        values, out = inputs[0], outputs[0]
        if source.data_type is target.data_type:
            out[...] = values
            return
        if source.data_type.is_string:
            where = f"CpuRef / '{self.info.name}'"
            dtype = target.data_type.dtype
            values = as_numbers(values, dtype, where)
            if dtype.kind in "iu":
                out[...] = values
                return
        if source.data_type.is_bit_pattern:
            values = float_values(values, source.data_type.name)
        if target.data_type.is_string:
            GrowingText(self).add(values.size * (STRING_BYTES + MOST_CHARACTERS))
            out.reshape(-1)[:] = as_texts(values)
        elif target.data_type.is_bit_pattern:
            out[...] = float_bits(
                values,
                target.data_type.name,
                saturate=self.operation.saturate,
                rounding=self.operation.rounding,
            )
        elif target.data_type is DataType.BOOLEAN:
            np.not_equal(values, 0, out=out)
        elif target.data_type.is_float:
            out[...] = values
        elif source.data_type.is_float and target.data_type.is_narrow:
            whole = np.empty(values.shape, np.int64)
            _write_integers(values, TensorInfo(target.shape, DataType.SIGNED64), whole)
            _write_from_integers(whole, target, out)
        elif source.data_type.is_float:
            _write_integers(values, target, out)
        else:
            _write_from_integers(values, target, out)


def _write_integers(values: Array, target: TensorInfo, out: Array) -> None:
    """Floats without their fraction, saturated; NaN as the highest integer."""
    lowest, highest = target.data_type.integer_range
    wide = values.astype(np.float64)
    # No float64 is 2**63 - 1: conversion goes through those below it, the rest is put in place.
    out[...] = np.clip(wide, lowest, np.nextafter(float(highest) + 1, 0)).astype(out.dtype)
    out[(wide > highest) | (wide >= highest + 1) | np.isnan(wide)] = highest


def _write_from_integers(values: Array, target: TensorInfo, out: Array) -> None:
    """Integers, wrapped or, in quantised types, saturated."""
    lowest, highest = target.data_type.integer_range
    if target.data_type.is_quantized:
        values = np.clip(values, lowest, highest)
    elif target.data_type.is_narrow:
        low_bits = values.astype(np.int64) & (highest - lowest)
        values = np.where(low_bits > highest, low_bits - (highest - lowest + 1), low_bits)
    np.copyto(out, values, casting="unsafe")
