"""Outputs as numbers: quantised ones as reals, small floats and integers as ``ml_dtypes``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from armpy.execution.arrays.conversion import check_output_array, small_dtype
from armpy.execution.calls.run import as_dict
from armpy.tensor import TensorInfo
from armpy.types import DataType

if TYPE_CHECKING:
    from armpy.execution.arrays.tensor_spec import TensorSpec
    from armpy.ops.operation import Array


class RealOutputs(NamedTuple):
    """Outputs of a call, divided by whether callers get them as they are stored."""

    infos: Mapping[str, TensorInfo]  # of the quantised outputs that are given as real numbers
    # Of the outputs whose elements are small floats or integers: their type in ``ml_dtypes``.
    small: Mapping[str, np.dtype[np.generic]]
    # The caller's arrays for outputs as they are stored.
    stored: dict[str, Any] | None  # Any: whatever the caller gives
    reals: Mapping[str, Array]  # the caller's arrays of other types

    @classmethod
    def of(cls, specs: Sequence[TensorSpec], outputs: object, *, dequantizes: bool) -> RealOutputs:
        """Divide what a caller has given for outputs.

        Raises InvalidArgumentError if an array for a quantised output cannot take real numbers.
        """
        infos = {
            s.name: s.info
            for s in specs
            if dequantizes and s.info.quantization and s.info.data_type.dtype.kind in "iu"
        }
        types = {s.name: small_dtype(s.info.data_type) for s in specs}
        small = {name: dtype for name, dtype in types.items() if dtype is not None}
        if outputs is None:
            return cls(infos, small, None, {})
        arrays = as_dict("outputs", outputs)
        reals = {
            name: check_output_array(name, TensorInfo(info.shape, DataType.FLOAT32), arrays[name])
            for name, info in infos.items()
            if arrays.get(name) is not None
        }
        stored = {name: array for name, array in arrays.items() if name not in reals}
        for spec in specs:
            array = stored.get(spec.name)
            if isinstance(array, np.ndarray) and array.dtype == small.get(spec.name):
                reals[spec.name] = array
                stored[spec.name] = array.view(spec.data_type.dtype)
        return cls(infos, small, stored or None, reals)

    def finish(self, results: dict[str, Array]) -> dict[str, Array]:
        """The results as the caller is to have them."""
        return {name: self._real(name, array) for name, array in results.items()}

    def _real(self, name: str, stored: Array) -> Array:
        target = self.reals.get(name)
        if name in self.small:
            if target is not None:
                return target
            is_given = self.stored is not None and self.stored.get(name) is not None
            if is_given:
                return stored
            # Bits of floats and values of integers, as types of ``ml_dtypes`` take them.
            small = self.small[name]
            return stored.view(small) if "float" in small.name else stored.astype(small)
        info = self.infos.get(name)
        if info is None or info.quantization is None:
            return stored
        real = info.quantization.dequantize(stored)
        if target is None:
            return real
        # Once more, as the shape may depend on values and is known only now.
        check_output_array(name, TensorInfo(real.shape, DataType.FLOAT32), target)
        np.copyto(target, real)
        return target
