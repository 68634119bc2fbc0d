"""Layers that OpenVINO computes otherwise than armpy defines them, and are therefore refused.

They were found by the conformance kit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from armpy.ops import (
    Activation,
    ActivationFunction,
    ArgMinMax,
    BinaryOperation,
    Cast,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    ElementwiseUnary,
    Fill,
    FusedActivation,
    Gather,
    LogSoftmax,
    Pooling2d,
    PoolingAlgorithm,
    Quantize,
    Reduce,
    ReduceOperation,
    Resize,
    ResizeMethod,
    ReverseV2,
    TransposeConvolution2d,
    UnaryOperation,
)
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType

Infos = Sequence[TensorInfo]

_REFUSED_TYPES = {
    DataType.FLOAT64: "OpenVINO computes float64 as float32",
    DataType.SIGNED64: "OpenVINO keeps the lower 32 bits of 64-bit integers",
    DataType.QSYMM_S16: "OpenVINO rounds 16-bit integers otherwise",
}
_GREATER = (ComparisonOperation.GREATER, ComparisonOperation.GREATER_OR_EQUAL)
_INDICES_IN_VECTOR = 16
"""Indices, of 4 bytes each, in the widest vector, of AVX-512."""


def find_difference(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> str:
    """Say how OpenVINO's answer to a layer differs; empty if it does not."""
    infos = [info for info in inputs if info is not None]
    for info in _without_indices(operation, infos, outputs):
        if info.data_type in _REFUSED_TYPES:
            return _REFUSED_TYPES[info.data_type]
    if len(infos) > 1 and infos[0].data_type.is_float and infos[1].data_type.is_quantized:
        return "OpenVINO does not quantise the float input of a layer with quantised weights"
    check = _CHECKS.get(type(operation))
    return check(operation, infos, outputs) if check else ""


def _without_indices(operation: Operation, infos: Infos, outputs: Infos) -> Infos:
    """A layer's tensors but for those that hold indices, which fit into 32 bits."""
    match operation:
        case ArgMinMax():
            return infos
        case Gather():
            return [infos[0], *outputs]
        case _:
            return [*infos, *outputs]


def _activation(operation: Operation, infos: Infos, _: Infos) -> str:
    assert isinstance(operation, Activation)  # the table below says so
    if operation.function is ActivationFunction.GELU and infos[0].data_type.is_float:
        return "OpenVINO's GELU of infinity is NaN"
    return ""


def _arg_min_max(operation: Operation, infos: Infos, _: Infos) -> str:
    if infos[0].data_type is DataType.UNSIGNED32:
        return "OpenVINO compares integers as floats"
    return "OpenVINO gives another index where there is NaN" if infos[0].data_type.is_float else ""


def _cast(operation: Operation, infos: Infos, outputs: Infos) -> str:
    if infos[0].data_type.is_quantized:
        return "OpenVINO casts the real numbers of a quantised tensor, not the stored ones"
    exact = (DataType.FLOAT32, DataType.SIGNED32)
    if infos[0].data_type is not DataType.SIGNED32 or outputs[0].data_type not in exact:
        return "OpenVINO casts numbers otherwise that the output cannot hold"
    return ""


def _comparison(operation: Operation, infos: Infos, _: Infos) -> str:
    assert isinstance(operation, Comparison)
    if infos[0].data_type.is_quantized:
        return "OpenVINO compares rounded numbers"
    if infos[0].data_type in (DataType.SIGNED32, DataType.UNSIGNED32):
        return "OpenVINO compares integers as floats"
    if infos[0].data_type.is_float and operation.operation in _GREATER:
        return "OpenVINO takes NaN for greater than numbers"
    return ""


_COMBINATIONS = {
    BinaryOperation.ADD: np.add,
    BinaryOperation.SUB: np.subtract,
    BinaryOperation.MUL: np.multiply,
    BinaryOperation.MAXIMUM: np.maximum,
    BinaryOperation.MINIMUM: np.minimum,
}
"""Operations that are computed with the real numbers of quantised inputs, and then rounded."""


def _binary(operation: Operation, infos: Infos, outputs: Infos) -> str:
    assert isinstance(operation, ElementwiseBinary)
    kind = infos[0].data_type
    if operation.operation is BinaryOperation.FLOOR_MOD:
        return "OpenVINO rounds FLOOR_MOD otherwise"
    if operation.operation is BinaryOperation.FLOOR_DIV and kind.is_float:
        return "OpenVINO's FLOOR_DIV of equal numbers may be 0"
    if operation.operation in (BinaryOperation.DIV, BinaryOperation.FLOOR_DIV):
        if kind is DataType.SIGNED32:
            return "OpenVINO divides integers as floats"
        if kind.is_quantized:
            return "OpenVINO's quotients of quantised zeros differ"
    if kind.is_quantized and operation.operation in _COMBINATIONS:
        scales = (info.scale for info in (*infos, *outputs))
        if _meets_halves(operation.operation, *scales):
            return f"OpenVINO rounds halves of a quantised {operation.operation.name} otherwise"
    return _plain_bytes(infos)


@lru_cache(maxsize=1024)  # it takes milliseconds, and a layer is asked about several times
def _meets_halves(operation: BinaryOperation, lhs: float, rhs: float, step: float) -> bool:
    """Return whether results often lie halfway between two steps, as where scales are 1, 1, 2.

    With scales that have no simple ratio, one in 50,000 results is as close to a half.
    """
    numbers = np.arange(-255, 256)
    results = _COMBINATIONS[operation].outer(numbers * lhs, numbers * rhs) / step
    return bool((abs(results % 1 - 0.5) <= 1e-5).mean() > 1e-3)


def _unary(operation: Operation, infos: Infos, _: Infos) -> str:
    assert isinstance(operation, ElementwiseUnary)
    if infos[0].data_type.is_quantized:
        return f"OpenVINO rounds a quantised {operation.operation.name} otherwise"
    if operation.operation is UnaryOperation.EXP:
        return "OpenVINO's EXP is infinite before float32 ends"
    return _plain_bytes(infos)


def _plain_bytes(infos: Infos) -> str:
    kind = infos[0].data_type
    if kind.is_quantized or kind in (DataType.FLOAT32, DataType.SIGNED32):
        return ""
    return f"OpenVINO saturates in {kind.name} where armpy wraps around"


def _fill(operation: Operation, infos: Infos, outputs: Infos) -> str:
    return "" if outputs[0].known_shape else "OpenVINO ends the process for a Fill of a scalar"


def _gather(operation: Operation, infos: Infos, _: Infos) -> str:
    assert isinstance(operation, Gather)
    shape, num_batches = infos[0].known_shape, operation.batch_dims
    row = math.prod(shape[operation.axis % len(shape) + 1 :])
    # Its kernel for rows that are not longer than a vector of indices reads beside the tensor.
    if num_batches and math.prod(shape[:num_batches]) == 1 and row <= _INDICES_IN_VECTOR:
        return "OpenVINO ends the process for a batch of 1 with rows of at most 16 elements"
    return ""


def _log_softmax(operation: Operation, infos: Infos, _: Infos) -> str:
    if infos[0].data_type.is_quantized:
        return "OpenVINO rounds a quantised LogSoftmax otherwise"
    return ""


def _pooling(operation: Operation, infos: Infos, _: Infos) -> str:
    assert isinstance(operation, Pooling2d)
    if infos[0].data_type.is_quantized and operation.algorithm is not PoolingAlgorithm.MAX:
        return "OpenVINO rounds halves of a quantised mean otherwise"
    return ""


def _quantize(operation: Operation, _: Infos, __: Infos) -> str:
    return "OpenVINO rounds halves otherwise"


def _reduce(operation: Operation, infos: Infos, _: Infos) -> str:
    assert isinstance(operation, Reduce)
    if infos[0].data_type is DataType.SIGNED32:
        return "OpenVINO reduces integers as floats"
    if operation.operation in (ReduceOperation.MIN, ReduceOperation.MAX, ReduceOperation.PROD):
        return f"OpenVINO's {operation.operation.name} of NaN and infinities differs"
    return ""


def _resize(operation: Operation, infos: Infos, _: Infos) -> str:
    assert isinstance(operation, Resize)
    if operation.method is ResizeMethod.BILINEAR:
        return "OpenVINO spreads NaN to other elements, and rounds quantised means otherwise"
    if operation.half_pixel_centers:
        return "OpenVINO takes another nearest pixel"
    return ""


def _reverse(operation: Operation, infos: Infos, _: Infos) -> str:
    if infos[0].data_type is DataType.SIGNED32:
        return "OpenVINO reverses integers as floats"
    return ""


def _transpose_convolution(operation: Operation, infos: Infos, _: Infos) -> str:
    assert isinstance(operation, TransposeConvolution2d)
    if operation.activation is not FusedActivation.NONE:
        return "OpenVINO drops the activation of a TRANSPOSE_CONV"
    return ""


_CHECKS: Mapping[type[Operation], Callable[[Operation, Infos, Infos], str]] = {
    Activation: _activation,
    ArgMinMax: _arg_min_max,
    Cast: _cast,
    Comparison: _comparison,
    ElementwiseBinary: _binary,
    ElementwiseUnary: _unary,
    Fill: _fill,
    Gather: _gather,
    LogSoftmax: _log_softmax,
    Pooling2d: _pooling,
    Quantize: _quantize,
    Reduce: _reduce,
    Resize: _resize,
    ReverseV2: _reverse,
    TransposeConvolution2d: _transpose_convolution,
}
"""Checks of each operation beyond its types; they answer with empty text where nothing differs."""
