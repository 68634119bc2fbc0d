"""Says which layers can be written as ONNX with the same results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from armpy.backend import ILayerSupport, ReasonCode, Support
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
from armpy_onnxruntime.engine import BACKEND_ID

Check = Callable[[Operation, OperandInfos], Support]


def _anything(operation: Operation, inputs: OperandInfos) -> Support:
    """Whatever the general rules leave."""
    return Support.yes()


def _constant_operands(operation: Operation, inputs: OperandInfos) -> Support:
    """All operands behind the first are constant: they are rearranged when compiled."""
    for index, info in enumerate(inputs[1:], 1):
        if info is not None and not info.is_constant:
            text = f"{operation.input_name(index)} is not constant"
            return Support.no(ReasonCode.CONSTANT, text)
    return Support.yes()


def _pooling(operation: Operation, inputs: OperandInfos) -> Support:
    """MAX and AVERAGE."""
    assert isinstance(operation, Pooling2d)  # the table below says so
    if operation.algorithm is PoolingAlgorithm.L2:
        return Support.no(ReasonCode.ATTRIBUTE, "the algorithm is L2, not MAX or AVERAGE")
    return Support.yes()


_NOT_IN_ONNX = frozenset(
    {
        BinaryOperation.FLOOR_MOD,  # ONNX rounds as C does for floats
        BinaryOperation.TRUNC_MOD,
        BinaryOperation.ATAN2,
    }
)


def _binary(operation: Operation, inputs: OperandInfos) -> Support:
    """All that ONNX has a node for."""
    assert isinstance(operation, ElementwiseBinary)
    if operation.operation in _NOT_IN_ONNX:
        return Support.no(ReasonCode.ATTRIBUTE, f"the operation is {operation.operation.name}")
    return Support.yes()


def _activation(operation: Operation, inputs: OperandInfos) -> Support:
    assert isinstance(operation, Activation)
    if operation.function is ActivationFunction.MISH:
        return Support.no(ReasonCode.ATTRIBUTE, "the function is MISH")
    return Support.yes()


def _reduce(operation: Operation, inputs: OperandInfos) -> Support:
    """MEAN; ONNX Runtime adds up in float32 what longer sums need float64 for."""
    assert isinstance(operation, Reduce)
    if operation.operation is not ReduceOperation.MEAN:
        text = f"the operation is {operation.operation.name}, not MEAN"
        return Support.no(ReasonCode.ATTRIBUTE, text)
    return Support.yes()


def _pad(operation: Operation, inputs: OperandInfos) -> Support:
    """CONSTANT with a value that is known."""
    assert isinstance(operation, Pad)
    if operation.padding_mode is not PaddingMode.CONSTANT:
        text = f"the padding mode is {operation.padding_mode.name}, not CONSTANT"
        return Support.no(ReasonCode.ATTRIBUTE, text)
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
"""What each operation asks for beyond float32 and known shapes; no other is supported."""


class OnnxLayerSupport(ILayerSupport):
    """Takes float32 layers of known shapes as the table says."""

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Whether a layer can be written as ONNX."""
        check = CHECKS.get(type(operation))
        if check is None:
            return Support.no(ReasonCode.OPERATION, f"{BACKEND_ID} does not run {operation.name}")
        for info in (*inputs, *outputs):
            if info is None:
                continue
            if info.data_type is not DataType.FLOAT32:
                text = f"a tensor is {info.data_type.name}, not FLOAT32"
                return Support.no(ReasonCode.DATA_TYPE, text)
            if not info.is_fully_shaped or 0 in info.known_shape:
                text = f"a tensor is {info}; dimensions have to be known and not 0"
                return Support.no(ReasonCode.SHAPE, text)
        return check(operation, inputs)
