"""Layers that LiteRT computes otherwise than armpy defines them, and are therefore refused.

Most were found by the conformance kit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from armpy.ops import (
    Activation,
    ActivationFunction,
    ArgMinMax,
    BatchMatMul,
    BinaryOperation,
    Comparison,
    ElementwiseBinary,
    ElementwiseUnary,
    LogSoftmax,
    Quantize,
    Reduce,
    ReduceOperation,
    Resize,
    StridedSlice,
    TransposeConvolution2d,
    UnaryOperation,
)
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType

Infos = Sequence[TensorInfo]

_SIGNED_WEIGHTS = frozenset({DataType.QSYMM_S8, DataType.QASYMM_S8})
_PLAIN_BYTES = frozenset({DataType.SIGNED8, DataType.UNSIGNED8})


def find_difference(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> str:
    """Say how LiteRT's answer to a layer differs; empty if it does not."""
    infos = [info for info in inputs if info is not None]
    types = [info.data_type for info in (*infos, *outputs)]
    if DataType.QSYMM_S16 in types:
        return "LiteRT rounds 16-bit integers otherwise"
    if len(infos) > 1 and infos[1].data_type in _SIGNED_WEIGHTS:
        if infos[0].data_type is DataType.FLOAT32:
            return "LiteRT quantises the float32 input of a layer with 8-bit weights otherwise"
        if infos[0].data_type is DataType.QASYMM_U8:
            return "LiteRT has no kernel for unsigned inputs and signed weights"
    check = _CHECKS.get(type(operation))
    return check(operation, infos, outputs) if check else ""


_INEXACT_FUNCTIONS = frozenset({ActivationFunction.SIGMOID, ActivationFunction.SQRT})


def _activation(operation: Operation, infos: Infos, _: Infos) -> str:
    assert isinstance(operation, Activation)  # the table below says so
    if operation.function is ActivationFunction.LEAKY_RELU and infos[0].data_type.is_quantized:
        return "LiteRT rounds a quantised LEAKY_RELU otherwise"
    if operation.function in _INEXACT_FUNCTIONS and infos[0].data_type.is_float:
        return f"LiteRT's {operation.function.name} of numbers near the type's limits differs"
    return ""


def _arg_min_max(operation: Operation, infos: Infos, _: Infos) -> str:
    return "LiteRT gives another index where there is NaN" if infos[0].data_type.is_float else ""


def _products(operation: Operation, _: Infos, outputs: Infos) -> str:
    if outputs[0].data_type is DataType.SIGNED32:
        return "LiteRT does not give the sums of 8-bit products"
    return ""


def _comparison(operation: Operation, infos: Infos, _: Infos) -> str:
    if infos[0].data_type.is_quantized:
        return "LiteRT rounds before it compares quantised numbers"
    return _plain_bytes(infos)


def _plain_bytes(infos: Infos) -> str:
    if infos[0].data_type in _PLAIN_BYTES:
        return "LiteRT takes 8-bit integers for quantised numbers"
    return ""


_QUANTISED_BINARY = frozenset({BinaryOperation.ADD, BinaryOperation.SUB, BinaryOperation.MUL})


def _binary(operation: Operation, infos: Infos, outputs: Infos) -> str:
    assert isinstance(operation, ElementwiseBinary)
    if infos[0].data_type.is_quantized and operation.operation not in _QUANTISED_BINARY:
        return f"LiteRT rounds a quantised {operation.operation.name} otherwise"
    scales = [info.quantization.scales[0] for info in (*infos, *outputs) if info.quantization]
    is_product = operation.operation is BinaryOperation.MUL and len(scales) == 3
    if is_product and scales[0] * scales[1] >= scales[2]:
        return "LiteRT's multiplier of a quantised MUL has to be below 1"
    return _plain_bytes(infos)


_INEXACT_AT_EDGES = frozenset(
    {UnaryOperation.EXP, UnaryOperation.LOG, UnaryOperation.RSQRT, UnaryOperation.SQRT}
)


def _unary(operation: Operation, infos: Infos, _: Infos) -> str:
    assert isinstance(operation, ElementwiseUnary)
    if infos[0].data_type.is_quantized:
        return f"LiteRT rounds a quantised {operation.operation.name} otherwise"
    if operation.operation in _INEXACT_AT_EDGES:
        return f"LiteRT's {operation.operation.name} of numbers near the type's limits differs"
    return _plain_bytes(infos)


def _log_softmax(operation: Operation, infos: Infos, _: Infos) -> str:
    if infos[0].data_type.is_quantized:
        return "LiteRT rounds a quantised LogSoftmax otherwise"
    return ""


def _quantize(operation: Operation, infos: Infos, _: Infos) -> str:
    if infos[0].data_type.is_float:
        return "LiteRT rounds halves to even numbers, and NaN to another number"
    return ""


def _reduce(operation: Operation, _: Infos, __: Infos) -> str:
    assert isinstance(operation, Reduce)
    if operation.operation is ReduceOperation.PROD:
        return "LiteRT's products of zero and infinity, and of no axes, differ"
    return ""


def _resize(operation: Operation, infos: Infos, outputs: Infos) -> str:
    assert isinstance(operation, Resize)
    if infos[0].data_type.is_float:
        return "LiteRT spreads NaN to other elements"
    if max(*infos[0].known_shape, *outputs[0].known_shape) > 2**10:
        return "LiteRT's steps of long images differ"
    return ""


def _strided_slice(operation: Operation, _: Infos, __: Infos) -> str:
    assert isinstance(operation, StridedSlice)
    return "LiteRT misreads ends that are offsets" if operation.end_is_offset else ""


def _transpose_convolution(operation: Operation, infos: Infos, _: Infos) -> str:
    assert isinstance(operation, TransposeConvolution2d)
    if operation.output_shape is not None:
        return "LiteRT gives outputs of the given shape other elements"
    if infos[1].data_type is DataType.QASYMM_S8:
        return "LiteRT ignores the zero point of the weights"
    return ""


_CHECKS: Mapping[type[Operation], Callable[[Operation, Infos, Infos], str]] = {
    Activation: _activation,
    ArgMinMax: _arg_min_max,
    BatchMatMul: _products,
    Comparison: _comparison,
    ElementwiseBinary: _binary,
    ElementwiseUnary: _unary,
    LogSoftmax: _log_softmax,
    Quantize: _quantize,
    Reduce: _reduce,
    Resize: _resize,
    StridedSlice: _strided_slice,
    TransposeConvolution2d: _transpose_convolution,
}
"""Checks of each operation beyond its types; they answer with empty text where nothing differs."""
