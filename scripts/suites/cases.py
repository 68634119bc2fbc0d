"""Cases of one operator or a few, as models with inputs and expected outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

Array = npt.NDArray[Any]  # Any: of every type

ELEMENT_TYPES: Mapping[str, int] = {
    "float32": onnx.TensorProto.FLOAT,
    "float16": onnx.TensorProto.FLOAT16,
    "float64": onnx.TensorProto.DOUBLE,
    "int4": onnx.TensorProto.INT4,
    "int8": onnx.TensorProto.INT8,
    "int16": onnx.TensorProto.INT16,
    "int32": onnx.TensorProto.INT32,
    "int64": onnx.TensorProto.INT64,
    "uint4": onnx.TensorProto.UINT4,
    "uint8": onnx.TensorProto.UINT8,
    "uint16": onnx.TensorProto.UINT16,
    "uint32": onnx.TensorProto.UINT32,
    "uint64": onnx.TensorProto.UINT64,
    "bool": onnx.TensorProto.BOOL,
    "string": onnx.TensorProto.STRING,
}


@dataclass(frozen=True)
class Tolerance:
    """The largest difference from an expected value.

    Parameters
    ----------
    absolute, relative : float
        The difference may be `absolute` plus `relative` times the expected value's magnitude.
    steps : int
        It may also be this many steps between neighbouring numbers of the output's type.
    """

    absolute: float = 0.0
    relative: float = 0.0
    steps: int = 0

    def limit(self, expected: Array) -> Array:
        """The largest difference for each element of `expected`, as float64; 0 at infinities."""
        magnitude = np.where(np.isfinite(expected), np.abs(expected.astype(np.float64)), 0)
        limit = self.absolute + self.relative * magnitude
        if self.steps and expected.dtype.kind == "f":
            spacing = np.spacing(magnitude.astype(expected.dtype)).astype(np.float64)
            limit = np.maximum(limit, self.steps * spacing)
        return np.asarray(limit)


@dataclass(frozen=True)
class Case:
    """A model, its inputs and the outputs that its suite expects.

    Parameters
    ----------
    name : str
        The name in its suite.
    model : onnx.ModelProto
        The network.
    inputs, expected : mapping of str to ndarray
        Arrays by the names of the model's inputs and outputs.
    tolerance : Tolerance
        The suite's tolerance for outputs of real numbers; others have to be equal.
    """

    name: str
    model: onnx.ModelProto
    inputs: Mapping[str, Array]
    expected: Mapping[str, Array]
    tolerance: Tolerance

    def differences(self, outputs: Mapping[str, Array]) -> Iterator[str]:
        """Describe each output that differs from the expected one."""
        for name, expected in self.expected.items():
            output = np.asarray(outputs[name])
            if output.dtype != expected.dtype or output.shape != expected.shape:
                yield (
                    f"{name}: expected {expected.dtype} {expected.shape}; "
                    f"got {output.dtype} {output.shape}"
                )
            elif not self._is_near(output, expected):
                yield f"{name}: expected {_head(expected)}; got {_head(output)}"

    def _is_near(self, output: Array, expected: Array) -> bool:
        if expected.dtype.kind != "f":
            return bool(np.array_equal(output, expected))
        with np.errstate(invalid="ignore"):  # infinity from infinity
            difference = np.abs(output.astype(np.float64) - expected.astype(np.float64))
        near = difference <= self.tolerance.limit(expected)
        near |= (output == expected) | (np.isnan(output) & np.isnan(expected))
        return bool(near.all())


def _head(array: Array) -> str:
    return str(array.reshape(-1)[:8].tolist())
