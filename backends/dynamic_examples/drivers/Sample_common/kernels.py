"""Operations of the sample drivers: some of float32, by NumPy for the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.backend import ILayerSupport, ReasonCode, Support
from armpy.errors import UnimplementedError
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    ElementwiseBinary,
    FullyConnected,
)
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType

Floats: TypeAlias = npt.NDArray[np.float32]
Bounds: TypeAlias = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class Step:
    """One operation as the device knows it."""

    function: str  # a key of `FUNCTIONS`
    bounds: Bounds = (None, None)  # what results are clamped to, where it is not None


def _multiply_rows(rows: Floats, weights: Floats, bias: Floats | None = None) -> Floats:
    """Vectors times a matrix, shape (units, depth), and a bias, shape (units,)."""
    products = rows.reshape(-1, weights.shape[1]) @ weights.T
    return products if bias is None else products + bias


FUNCTIONS: dict[str, Callable[..., Floats]] = {
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "CLAMP": np.positive,
    "FULLY_CONNECTED": _multiply_rows,
}

_BINARIES = (BinaryOperation.ADD, BinaryOperation.SUB, BinaryOperation.MUL)


def step_of(operation: Operation) -> Step:
    """The device's command for an operation that `SampleSupport` takes."""
    match operation:
        case ElementwiseBinary():
            return Step(operation.operation.name, operation.activation.bounds)
        case FullyConnected():
            return Step("FULLY_CONNECTED", operation.activation.bounds)
        case Activation(function=ActivationFunction.RELU):
            return Step("CLAMP", (0.0, None))
        case Activation(function=ActivationFunction.BOUNDED_RELU):
            return Step("CLAMP", (operation.b, operation.a))
    raise UnimplementedError("the device cannot do it", where=operation.name)


def compute(step: Step, inputs: Sequence[Floats | None], output: Floats) -> None:
    """Do one step; infinities and NaNs are answers like any other."""
    with np.errstate(all="ignore"):
        result = FUNCTIONS[step.function](*(array for array in inputs if array is not None))
        low, high = step.bounds
        if low is not None:
            result = np.maximum(result, np.float32(low))
        if high is not None:
            result = np.minimum(result, np.float32(high))
    output[...] = np.reshape(result, output.shape)


class SampleSupport(ILayerSupport):
    """Takes sums, differences, products, two activations and fully connected layers of float32."""

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Whether one layer can run: its operation, then its types."""
        match operation:
            case ElementwiseBinary() if operation.operation in _BINARIES:
                pass
            case Activation(function=ActivationFunction.RELU | ActivationFunction.BOUNDED_RELU):
                pass
            case FullyConnected():
                pass
            case ElementwiseBinary() | Activation():
                text = f"{operation.name} is supported as ADD, SUB, MUL, RELU and BOUNDED_RELU only"
                return Support.no(ReasonCode.ATTRIBUTE, text)
            case _:
                return Support.no(ReasonCode.OPERATION, f"{operation.name} is not supported")
        for info in (*inputs, *outputs):
            if info is not None and info.data_type is not DataType.FLOAT32:
                text = f"{info.data_type.name} is not supported, only FLOAT32"
                return Support.no(ReasonCode.DATA_TYPE, text)
        return Support.yes()
