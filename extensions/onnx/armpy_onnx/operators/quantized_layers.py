"""Operators on quantised tensors that compute element by element, pool, or move elements.

Notes
-----
Those of the domain ``armpy`` are in no file: `armpy_onnx.folding` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from armpy.graph import Value
from armpy.ops.activation_layers import Activation, ActivationFunction, Softmax
from armpy.ops.activations import FusedActivation
from armpy.ops.dense import FullyConnected
from armpy.ops.elementwise import BinaryOperation, ElementwiseBinary
from armpy.ops.joining import Concat
from armpy.ops.movement import Transpose
from armpy.ops.operation import Array
from armpy.ops.quantizing import Dequantize, Quantize
from armpy.ops.reduction import Reduce, ReduceOperation
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_onnx.node import Node, NodeData, Operator, OperatorTable
from armpy_onnx.operators import operator_of
from armpy_onnx.operators.integer_products import integer_product, scaled_sums
from armpy_onnx.operators.quantization import rounded
from armpy_onnx.quantized import (
    as_integers,
    as_quantized,
    binary,
    check_bytes,
    fused_activation,
    output_of_bytes,
    quantization_of,
    quantized_bias,
    quantized_weights,
    tensor_quantization,
)

_FLOAT = TensorInfo(None, DataType.FLOAT32)


def _given(node: Node, index: int) -> Value:
    """A tensor with its scale and zero point after it."""
    check_bytes(node, index)
    return as_quantized(node, node.value(index), tensor_quantization(node, index + 1, index + 2))


def _same_types(node: Node, *indexes: int) -> None:
    """Check that tensors are all int8 or all uint8."""
    types = {node.type(index) for index in indexes if node.has(index)}
    if len(types) > 1:
        names = ", ".join(sorted(data_type.name for data_type in types))
        raise node.error("the types differ", expected="one of them", actual=names)


def _binary(operation: BinaryOperation) -> Operator:
    """Operator of two tensors that broadcast: (a, scale, point, b, scale, point, scale, point)."""

    def convert(node: Node) -> Value:
        _same_types(node, 0, 3, 7)
        layer = ElementwiseBinary(operation, fused_activation(node))
        output = output_of_bytes(node, 6, node.type(0))
        return as_integers(node, node.layer(layer, _given(node, 0), _given(node, 3), output=output))

    return Operator(convert, (1, 2, 4, 5, 6, 7))


def _unary(make: Callable[[Node], Activation]) -> Operator:
    """Operator of one tensor: (x, scale, point, scale, point)."""

    def convert(node: Node) -> Value:
        _same_types(node, 0, 4)
        output = output_of_bytes(node, 3, node.type(0))
        return as_integers(node, node.layer(make(node), _given(node, 0), output=output))

    return Operator(convert, (1, 2, 3, 4))


def _plain(function: ActivationFunction) -> Operator:
    return _unary(lambda node: Activation(function, 1.0, 1.0))


def _leaky_relu(node: Node) -> Activation:
    return Activation(ActivationFunction.LEAKY_RELU, node.real("alpha", 0.01))


def _clip(node: Node) -> Activation:
    return Activation(ActivationFunction.BOUNDED_RELU, node.real("max"), node.real("min"))


def _requantized(node: Node, value: Value, output: TensorInfo) -> Value:
    """A tensor with other steps, as integers."""
    if value.info.quantization != output.quantization:
        # Not at once: fixed-point arithmetic rounds twice, and so further away than half a step.
        real = node.layer(Dequantize(), value, output=_FLOAT)
        value = node.layer(Quantize(rounds_to_even=True), real, output=output)
    return as_integers(node, value)


def _softmax(node: Node) -> Value:
    """(x, scale, point, scale, point), computed with real numbers."""
    version = node.integer("opset", 13)
    rank = node.rank(0)
    axis = node.axis(node.integer("axis", -1 if version >= 13 else 1), rank)
    if version < 13 and axis != rank - 1:
        raise node.error("several axes are not supported", expected="the last one", actual=axis)
    real = node.layer(Dequantize(), _given(node, 0), output=_FLOAT)
    real = node.layer(Softmax(axis=axis), real)
    output = output_of_bytes(node, 3, node.type(0))
    return as_integers(node, node.layer(Quantize(rounds_to_even=True), real, output=output))


def _concat(node: Node) -> Value:
    """(scale, point, x, scale, point, x, ...)."""
    count = (len(node.inputs) - 2) // 3
    if count < 1 or len(node.inputs) != 3 * count + 2:
        raise node.error("the number of inputs is wrong", actual=len(node.inputs))
    places = range(2, len(node.inputs), 3)
    _same_types(node, 1, *places)
    output = output_of_bytes(node, 0, node.type(2))
    values = [_given(node, place) for place in places]
    axis = node.axis(node.integer("axis"), node.rank(2))
    return as_integers(node, node.layer(Concat(axis), *values, output=output))


def _moved(kind: str) -> Operator:
    """Operator that moves elements: (x, scale, point, scale, point, what else it has)."""

    def convert(node: Node) -> Value:
        operator = operator_of(kind)
        assert operator is not None  # the table below names those that there are
        data = node.data
        inner = NodeData(kind, data.name, node.integer("opset"), data.attributes, 1, (True,))
        converted = operator.convert(node.of(inner, [_given(node, 0), *node.inputs[5:]]))
        (value,) = [converted] if isinstance(converted, Value) else converted[:1]
        return _requantized(node, value, output_of_bytes(node, 3, node.type(0)))

    return Operator(convert, tuple(range(1, 12)))


def _pooled(kind: str) -> Operator:
    """Operator that pools: (x, scale, point, scale, point), channels last if it says so."""

    def convert(node: Node) -> Value:
        _same_types(node, 0, 4)
        operator = operator_of(kind)
        assert operator is not None  # the table below names those that there are
        value, rank = _given(node, 0), node.rank(0)
        is_last = node.flag("channels_last")
        if is_last:
            value = node.layer(Transpose((0, rank - 1, *range(1, rank - 1))), value)
        inner = NodeData(kind, node.data.name, 19, node.data.attributes, 1, (True,))
        converted = operator.convert(node.of(inner, [value]))
        (value,) = [converted] if isinstance(converted, Value) else converted[:1]
        if is_last:
            value = node.layer(Transpose((0, *range(2, rank), 1)), value)
        return _requantized(node, value, output_of_bytes(node, 3, node.type(0)))

    return Operator(convert, (1, 2, 3, 4))


def _mean(node: Node) -> Value:
    """QLinearGlobalAveragePool and QLinearReduceMean: (x, scale, point, scale, point)."""
    _same_types(node, 0, 4)
    rank = node.rank(0)
    keep_dims = node.flag("keepdims", True)
    if node.kind.endswith("ReduceMean"):
        axes = node.axes(rank) or tuple(range(rank))
    else:
        axes = tuple(range(1, rank - 1) if node.flag("channels_last") else range(2, rank))
    output = output_of_bytes(node, 3, node.type(0))
    layer = Reduce(ReduceOperation.MEAN, axes, keep_dims)
    return as_integers(node, node.layer(layer, _given(node, 0), output=output))


def _gemm(node: Node) -> Value:
    """QGemm: (a, scale, point, b, scale, point, c, scale, point), floats without the last two."""
    check_bytes(node, 0, 3)
    is_turned, weights = node.flag("transB"), node.array(3)
    if node.rank(0) != 2 or weights.ndim != 2:
        raise node.error("a factor is not a matrix", expected="rank 2")
    left = _given(node, 0)
    quantization = quantization_of(node, 4, 5, 2, 0 if is_turned else 1)
    alpha = node.real("alpha", 1.0)
    if quantization is None:
        raise node.error(
            "the weights' scales or zero points are not supported",
            expected="constants, with scales above 0",
        )
    if not alpha > 0:
        raise node.error("the attribute 'alpha' is not positive", expected="above 0", actual=alpha)
    has_points = quantization.axis is not None and any(quantization.zero_points)
    addend_rows = prod(node.shape(6)[:-1]) if node.has(6) else 1
    if has_points or addend_rows != 1:
        return _gemm_of_reals(node, weights.T if is_turned else weights, quantization.scales)
    scales = tuple(float(np.float32(scale) * np.float32(alpha)) for scale in quantization.scales)
    turned = Quantization(
        scales, quantization.zero_points, None if quantization.axis is None else 0
    )
    matrix = np.ascontiguousarray(weights if is_turned else weights.T)
    units = quantized_weights(node, matrix, turned, node.type(0))
    if node.flag("transA"):
        left = node.layer(Transpose((1, 0)), left)
    assert left.info.quantization is not None
    bias = quantized_bias(node, 6, left.info.quantization.scale, turned)
    if bias is not None and bias.info.num_elements == 1:
        every = np.full(len(matrix), bias.data)
        bias = node.constant(every, DataType.SIGNED32, bias.info.quantization)
    if bias is not None and bias.info.num_elements != len(matrix):
        raise node.error("the bias has the wrong length", expected=f"1 or {len(matrix)}")
    layer = FullyConnected(fused_activation(node), keep_num_dims=True)
    if node.has(7):
        _same_types(node, 0, 8)
        output = output_of_bytes(node, 7, node.type(0))
        return as_integers(node, node.layer(layer, left, units, bias, output=output))
    sums = node.layer(layer, left, units, bias, output=TensorInfo(None, DataType.SIGNED32))
    factors = np.float32(left.info.quantization.scale) * np.array(scales, np.float32)
    real = node.cast(sums, DataType.FLOAT32)
    factor = node.constant(factors.reshape(-1) if factors.size > 1 else factors.reshape(()))
    return node.layer(ElementwiseBinary(BinaryOperation.MUL), real, factor)


def _gemm_of_reals(node: Node, weights: Array, scales: Sequence[float]) -> Value:
    """QGemm by real arithmetic, as no layer takes zero points of columns or addends of rows."""
    if fused_activation(node) is not FusedActivation.NONE:
        raise node.error("zero points of columns and addends of rows have no fused activation")
    left, right = node.value(0), node.constant(np.ascontiguousarray(weights))
    if node.flag("transA"):
        left = node.layer(Transpose((1, 0)), left)
    sums = integer_product(node, left, right, node.input(2), node.input(5))
    if node.has(6):
        sums = binary(node, BinaryOperation.ADD, sums, node.value(6))
    factors = np.array(scales, np.float32) * np.float32(node.real("alpha", 1.0))
    real = scaled_sums(node, sums, node.value(1), node.constant(factors))
    if not node.has(7):
        return real
    steps = binary(node, BinaryOperation.DIV, real, node.cast(node.value(7), DataType.FLOAT32))
    return rounded(node, steps, node.value(8), node.type(8))


def _gemm_type(data: NodeData, types: Sequence[DataType | None]) -> DataType:
    """Return the type of the output's zero point, or of the input; float without a scale."""
    if len(types) < 8 or types[7] is None:
        return DataType.FLOAT32
    return (types[8] if len(types) > 8 else None) or types[0] or DataType.UNSIGNED8


_ADD, _MUL = _binary(BinaryOperation.ADD), _binary(BinaryOperation.MUL)
_SIGMOID, _LEAKY = _plain(ActivationFunction.SIGMOID), _unary(_leaky_relu)
_SOFTMAX, _MEAN = Operator(_softmax, (1, 2, 3, 4)), Operator(_mean, (1, 2, 3, 4))
_CONCAT = Operator(_concat, tuple(i for i in range(3 * 1024) if i % 3 != 2), (1,))
_AVERAGE = _pooled("AveragePool")
_GEMM = Operator(_gemm, (1, 2, 3, 4, 5, 6, 7, 8), (_gemm_type,))

OPERATORS: OperatorTable = {
    "armpy.Add": _ADD,
    "armpy.AveragePool": _AVERAGE,
    "armpy.Clip": _unary(_clip),
    "armpy.Concat": _CONCAT,
    "armpy.DepthToSpace": _moved("DepthToSpace"),
    "armpy.Flatten": _moved("Flatten"),
    "armpy.Gemm": _GEMM,
    "armpy.GlobalAveragePool": _MEAN,
    "armpy.HardSwish": _plain(ActivationFunction.HARD_SWISH),
    "armpy.LeakyRelu": _LEAKY,
    "armpy.MaxPool": _moved("MaxPool"),
    "armpy.Mul": _MUL,
    "armpy.Relu": _plain(ActivationFunction.RELU),
    "armpy.Reshape": _moved("Reshape"),
    "armpy.Sigmoid": _SIGMOID,
    "armpy.Slice": _moved("Slice"),
    "armpy.Softmax": _SOFTMAX,
    "armpy.SpaceToDepth": _moved("SpaceToDepth"),
    "armpy.Squeeze": _moved("Squeeze"),
    "armpy.Sub": _binary(BinaryOperation.SUB),
    "armpy.Tanh": _plain(ActivationFunction.TANH),
    "armpy.Transpose": _moved("Transpose"),
    "armpy.Unsqueeze": _moved("Unsqueeze"),
    "com.microsoft.QGemm": _GEMM,
    "com.microsoft.QLinearAdd": _ADD,
    "com.microsoft.QLinearAveragePool": _AVERAGE,
    "com.microsoft.QLinearConcat": _CONCAT,
    "com.microsoft.QLinearGlobalAveragePool": _MEAN,
    "com.microsoft.QLinearLeakyRelu": _LEAKY,
    "com.microsoft.QLinearMul": _MUL,
    "com.microsoft.QLinearReduceMean": _MEAN,
    "com.microsoft.QLinearSigmoid": _SIGMOID,
    "com.microsoft.QLinearSoftmax": _SOFTMAX,
}
