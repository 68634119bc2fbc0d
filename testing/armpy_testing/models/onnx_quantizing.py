"""Quantises ONNX files with ONNX Runtime's tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

from armpy.ops.operation import Array


class _Samples(CalibrationDataReader):  # type: ignore[misc]  # no type information
    """Random inputs like a given one."""

    def __init__(self, name: str, values: Array) -> None:
        random = np.random.default_rng(3)
        shape = values.shape
        self._left = [{name: random.normal(size=shape).astype(values.dtype)} for _ in range(4)]

    def get_next(self) -> Mapping[str, Array] | None:
        """The next one."""
        return self._left.pop() if self._left else None


def quantized_file(path: Path, values: Array, *, kind: str) -> Path:
    """The file of a quantised network.

    `path`: of a network of float32 with one input.
    `values`: an input.
    `kind`: ``qdq``, ``qoperator`` or ``dynamic``.
    """
    file = path.with_name(f"{path.stem}_{kind}.onnx")
    if file.exists():
        return file
    if kind == "dynamic":
        quantize_dynamic(path, file, weight_type=QuantType.QUInt8)
        return file
    prepared = path.with_name(f"{path.stem}_prepared.onnx")
    quant_pre_process(path, prepared, skip_symbolic_shape=True)
    name = onnx.load(prepared).graph.input[0].name
    form = QuantFormat.QDQ if kind == "qdq" else QuantFormat.QOperator
    signed = QuantType.QInt8 if kind == "qdq" else QuantType.QUInt8
    quantize_static(
        prepared,
        file,
        _Samples(name, values),
        form,
        activation_type=signed,
        weight_type=signed,
        per_channel=kind == "qdq",
    )
    return file
