"""Layers that are not written as ONNX, or that ONNX Runtime computes otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    Concat,
    Convolution2d,
    DepthwiseConvolution2d,
    ElementwiseBinary,
    ExpandDims,
    FullyConnected,
    Pad,
    PaddingMode,
    Pooling2d,
    PoolingAlgorithm,
    Reduce,
    ReduceOperation,
    Reshape,
    Softmax,
    Squeeze,
    Transpose,
)
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType

Check = Callable[[Operation, OperandInfos], str]
"""Says what keeps a layer from being written; empty if nothing does."""


def _anything(operation: Operation, inputs: OperandInfos) -> str:
    """Whatever the general rules leave."""
    return ""


def _constant_operands(operation: Operation, inputs: OperandInfos) -> str:
    """All operands after the first are constant: they are rearranged when compiled."""
    for index, info in enumerate(inputs[1:], 1):
        if info is not None and not info.is_constant:
            return f"{operation.input_name(index)} is not constant"
    return ""


def _pooling(operation: Operation, inputs: OperandInfos) -> str:
    """MAX and AVERAGE."""
    assert isinstance(operation, Pooling2d)  # the table below says so
    if operation.algorithm is PoolingAlgorithm.L2:
        return "the algorithm is L2, not MAX or AVERAGE"
    return ""


_NOT_IN_ONNX = frozenset(
    {
        BinaryOperation.FLOOR_MOD,  # ONNX rounds as C does for floats
        BinaryOperation.TRUNC_MOD,
        BinaryOperation.ATAN2,
    }
)


def _binary(operation: Operation, inputs: OperandInfos) -> str:
    """All that ONNX has a node for."""
    assert isinstance(operation, ElementwiseBinary)
    if operation.operation in _NOT_IN_ONNX:
        return f"the operation is {operation.operation.name}"
    return ""


def _activation(operation: Operation, inputs: OperandInfos) -> str:
    assert isinstance(operation, Activation)
    if operation.function is ActivationFunction.MISH:
        return "the function is MISH"
    return ""


def _reduce(operation: Operation, inputs: OperandInfos) -> str:
    """MEAN; ONNX Runtime adds up in float32 what longer sums need float64 for."""
    assert isinstance(operation, Reduce)
    if operation.operation is not ReduceOperation.MEAN:
        return f"the operation is {operation.operation.name}, not MEAN"
    return ""


def _pad(operation: Operation, inputs: OperandInfos) -> str:
    """CONSTANT with a value that is known."""
    assert isinstance(operation, Pad)
    if operation.padding_mode is not PaddingMode.CONSTANT:
        return f"the padding mode is {operation.padding_mode.name}, not CONSTANT"
    return _constant_operands(operation, inputs)


CHECKS: dict[type[Operation], Check] = {
    Activation: _activation,
    Concat: _anything,
    Convolution2d: _constant_operands,
    DepthwiseConvolution2d: _constant_operands,
    ElementwiseBinary: _binary,
    ExpandDims: _anything,
    FullyConnected: _constant_operands,
    Pad: _pad,
    Pooling2d: _pooling,
    Reduce: _reduce,
    Reshape: _anything,
    Softmax: _anything,
    Squeeze: _anything,
    Transpose: _anything,
}
"""Checks of each operation beyond float32 and known shapes; no other operation is supported."""


def find_difference(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> str:
    """Say why a layer is not taken; empty if it is."""
    check = CHECKS.get(type(operation))
    if check is None:
        return "armpy-onnxruntime does not write the operation as ONNX"
    for index, info in enumerate((*inputs, *outputs)):
        if info is not None and info.data_type is not DataType.FLOAT32:
            name = operation.input_name(index) if index < len(inputs) else "an output"
            return f"{name} is {info.data_type.name}; armpy-onnxruntime writes FLOAT32 alone"
    return check(operation, inputs)
