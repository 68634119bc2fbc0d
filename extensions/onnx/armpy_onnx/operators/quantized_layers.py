"""Operators on quantised tensors that compute element by element, pool, or move elements.

Notes
-----
Those of the domain ``armpy`` are in no file: `armpy_onnx.folding` writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from armpy.graph import Value
from armpy.ops.activation_layers import Activation, ActivationFunction, Softmax
from armpy.ops.activations import FusedActivation
from armpy.ops.dense import FullyConnected
from armpy.ops.elementwise import BinaryOperation, ElementwiseBinary
from armpy.ops.joining import Concat
from armpy.ops.movement import Transpose
from armpy.ops.operation import Operation
from armpy.ops.quantizing import Dequantize, Quantize
from armpy.ops.reduction import Reduce, ReduceOperation
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_onnx.node import Node, NodeData, Operator, OperatorTable
from armpy_onnx.operators import operator_of
from armpy_onnx.operators.integer_products import integer_product
from armpy_onnx.operators.quantization import requantized
from armpy_onnx.quantized import (
    as_integers,
    as_quantized,
    binary,
    check_bytes,
    fused_activation,
    meets_halves,
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


def _rounded_once(node: Node, layer: Operation, *values: Value, output: TensorInfo) -> Value:
    """Integers of a layer that is computed with real numbers, as ONNX Runtime does."""
    real = node.layer(layer, *(node.layer(Dequantize(), v, output=_FLOAT) for v in values))
    return _in_steps(node, real, output)


def _in_steps(node: Node, real: Value, output: TensorInfo) -> Value:
    """Real numbers as integers of an output.

    Notes
    -----
    Some operators of ONNX Runtime round sums with the zero point: with an odd one, halves go to
    the odd neighbour.
    """
    if node.kind in _ROUNDED_WITH_POINT and output.zero_point % 2:
        real = binary(node, BinaryOperation.ADD, real, node.constant(np.float32(_scale(output))))
        below = Quantization.per_tensor(_scale(output), output.zero_point - 1)
        output = TensorInfo(None, output.data_type, below)
    return as_integers(node, node.layer(Quantize(rounds_to_even=True), real, output=output))


_ROUNDED_WITH_POINT = frozenset(
    f"com.microsoft.QLinear{name}" for name in ("Add", "AveragePool", "Mul")
)


def _scale(info: TensorInfo) -> float:
    """The one scale of a tensor."""
    assert info.quantization is not None
    return info.quantization.scale


def _are_exact(values: Sequence[Value], output: TensorInfo) -> bool:
    """Return whether no input's steps meet halves of the output's."""
    return not meets_halves(np.array([_scale(v.info) / _scale(output) for v in values]))


def _binary(operation: BinaryOperation) -> Operator:
    """Operator of two tensors that broadcast: (a, scale, point, b, scale, point, scale, point).

    Notes
    -----
    Layers on quantised tensors add exactly but for halves, and round products twice.
    """

    def convert(node: Node) -> Value:
        _same_types(node, 0, 3, 7)
        layer = ElementwiseBinary(operation, fused_activation(node))
        output, values = output_of_bytes(node, 6, node.type(0)), (_given(node, 0), _given(node, 3))
        if operation is BinaryOperation.MUL or not _are_exact(values, output):
            return _rounded_once(node, layer, *values, output=output)
        return as_integers(node, node.layer(layer, *values, output=output))

    return Operator(convert, (1, 2, 4, 5, 6, 7))


def _sigmoid(node: Node) -> Value:
    """(x, scale, point, scale, point)."""
    _same_types(node, 0, 4)
    layer, output = Activation(ActivationFunction.SIGMOID), output_of_bytes(node, 3, node.type(0))
    return as_integers(node, node.layer(layer, _given(node, 0), output=output))


def _leaky_relu(node: Node) -> Value:
    """(x, scale, point, scale, point)."""
    _same_types(node, 0, 4)
    layer = Activation(ActivationFunction.LEAKY_RELU, node.real("alpha", 0.01))
    output = output_of_bytes(node, 3, node.type(0))
    return _rounded_once(node, layer, _given(node, 0), output=output)


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
    output = output_of_bytes(node, 3, node.type(0))
    return _rounded_once(node, Softmax(axis=axis), _given(node, 0), output=output)


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
    if _are_exact(values, output):
        return as_integers(node, node.layer(Concat(axis), *values, output=output))
    return _rounded_once(node, Concat(axis), *values, output=output)


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


def _average_pool(node: Node) -> Value:
    """(x, scale, point, scale, point), channels last if it says so."""
    _same_types(node, 0, 4)
    operator = operator_of("AveragePool")
    assert operator is not None
    value, rank = _given(node, 0), node.rank(0)
    value = node.layer(Dequantize(), value, output=_FLOAT)
    is_last = node.flag("channels_last")
    if is_last:
        value = node.layer(Transpose((0, rank - 1, *range(1, rank - 1))), value)
    inner = NodeData("AveragePool", node.data.name, 19, node.data.attributes, 1, (True,))
    converted = operator.convert(node.of(inner, [value]))
    (value,) = [converted] if isinstance(converted, Value) else converted[:1]
    if is_last:
        value = node.layer(Transpose((0, *range(2, rank), 1)), value)
    return _in_steps(node, value, output_of_bytes(node, 3, node.type(0)))


def _global_average_pool(node: Node) -> Value:
    """(x, scale, point, scale, point): integers are added up, sums multiplied by one factor."""
    _same_types(node, 0, 4)
    rank, of_x = node.rank(0), tensor_quantization(node, 1, 2)
    axes = tuple(range(1, rank - 1) if node.flag("channels_last") else range(2, rank))
    check_bytes(node, 0)
    in_steps = Quantization.per_tensor(1.0, of_x.zero_point)
    steps = node.layer(Dequantize(), as_quantized(node, node.value(0), in_steps), output=_FLOAT)
    sums = node.layer(Reduce(ReduceOperation.SUM, axes, keep_dims=True), steps)
    output = output_of_bytes(node, 3, node.type(0))
    count = np.float32(prod(node.shape(0)[axis] for axis in axes))
    factor = np.float32(of_x.scale) / (np.float32(_scale(output)) * count)
    return requantized(node, sums, np.array(factor), FusedActivation.NONE, output)


def _mean(node: Node) -> Value:
    """QLinearReduceMean: (x, scale, point, scale, point)."""
    _same_types(node, 0, 4)
    rank = node.rank(0)
    layer = Reduce(
        ReduceOperation.MEAN, node.axes(rank) or tuple(range(rank)), node.flag("keepdims", True)
    )
    output = output_of_bytes(node, 3, node.type(0))
    return _rounded_once(node, layer, _given(node, 0), output=output)


def _gemm(node: Node) -> Value:
    """QGemm: (a, scale, point, b, scale, point, c, scale, point), floats without the last two."""
    check_bytes(node, 0, 3)
    is_turned, weights = node.flag("transB"), node.array(3)
    if node.rank(0) != 2 or weights.ndim != 2:
        raise node.error("a factor is not a matrix", expected="rank 2")
    quantization = quantization_of(node, 4, 5, 2, 0 if is_turned else 1)
    alpha = node.real("alpha", 1.0)
    if quantization is None:
        raise node.error(
            "the weights' scales or zero points are not supported",
            expected="constants, with scales above 0",
        )
    if not alpha > 0:
        raise node.error("the attribute 'alpha' is not positive", expected="above 0", actual=alpha)
    of_left = tensor_quantization(node, 1, 2)
    scales = np.array(quantization.scales, np.float32) * np.float32(alpha)
    of_sums = np.float32(of_left.scale) * scales
    left, matrix = node.value(0), np.ascontiguousarray(weights.T if is_turned else weights)
    if node.flag("transA"):
        left = node.layer(Transpose((1, 0)), left)
    axis = None if quantization.axis is None else 0
    turned = Quantization(tuple(scales.tolist()), quantization.zero_points, axis)
    addend = _addend(node, (left.info.known_shape[0], matrix.shape[1]), of_left.scale, turned)
    is_bias = addend is None or addend.info.rank == 1
    activation = fused_activation(node)
    has_points = axis is not None and any(quantization.zero_points)
    output = None
    if node.has(7):
        _same_types(node, 0, 8)
        output = output_of_bytes(node, 7, node.type(0))
        of_sums /= np.float32(_scale(output))
    if output is not None and is_bias and not has_points and not meets_halves(of_sums):
        units = quantized_weights(node, np.ascontiguousarray(matrix.T), turned, node.type(0))
        layer = FullyConnected(activation, keep_num_dims=True)
        stored = as_quantized(node, left, of_left)
        return as_integers(node, node.layer(layer, stored, units, addend, output=output))
    point = node.input(5) if any(quantization.zero_points) else None
    sums = integer_product(node, left, node.constant(matrix), node.input(2), point)
    if addend is not None:
        plain = addend if addend.data is None else node.constant(addend.data)
        sums = binary(node, BinaryOperation.ADD, sums, plain)
    if output is not None:
        return requantized(node, sums, of_sums, activation, output)
    real = node.cast(sums, DataType.FLOAT32)
    return binary(node, BinaryOperation.MUL, real, node.constant(of_sums))


def _addend(
    node: Node, shape: tuple[int, int], scale: float, weights: Quantization
) -> Value | None:
    """What is added to a Gemm's sums, in int32: a vector if it is the same for all rows."""
    if not node.has(6):
        return None
    own, columns = node.shape(6), shape[1:]
    if prod(own) == 1 or own in (columns, (1, *columns)):
        bias = quantized_bias(node, 6, scale, weights)
        assert bias is not None
        elements = np.broadcast_to(bias.data, columns).copy()  # type: ignore[arg-type]  # known
        return node.constant(elements, DataType.SIGNED32, bias.info.quantization)
    if node.type(6) is not DataType.SIGNED32 or own not in ((shape[0], 1), shape):
        raise node.error(
            "the addend has the wrong type or shape",
            expected=f"SIGNED32, broadcastable to {shape}",
            actual=f"{node.type(6).name} {own}",
        )
    return node.value(6)


def _gemm_type(data: NodeData, types: Sequence[DataType | None]) -> DataType:
    """Return the type of the output's zero point, or of the input; float without a scale."""
    if len(types) < 8 or types[7] is None:
        return DataType.FLOAT32
    return (types[8] if len(types) > 8 else None) or types[0] or DataType.UNSIGNED8


_ADD = _binary(BinaryOperation.ADD)
_OF_ONE = (1, 2, 3, 4)
_SIGMOID = Operator(_sigmoid, _OF_ONE)
_GLOBAL_AVERAGE_POOL = Operator(_global_average_pool, _OF_ONE)
_CONCAT = Operator(_concat, tuple(i for i in range(3 * 1024) if i % 3 != 2), (1,))
_GEMM = Operator(_gemm, (1, 2, 3, 4, 5, 6, 7, 8), (_gemm_type,))

OPERATORS: OperatorTable = {
    "armpy.Add": _ADD,
    "armpy.Concat": _CONCAT,
    "armpy.DepthToSpace": _moved("DepthToSpace"),
    "armpy.Flatten": _moved("Flatten"),
    "armpy.Gemm": _GEMM,
    "armpy.GlobalAveragePool": _GLOBAL_AVERAGE_POOL,
    "armpy.MaxPool": _moved("MaxPool"),
    "armpy.Reshape": _moved("Reshape"),
    "armpy.Sigmoid": _SIGMOID,
    "armpy.Slice": _moved("Slice"),
    "armpy.SpaceToDepth": _moved("SpaceToDepth"),
    "armpy.Squeeze": _moved("Squeeze"),
    "armpy.Sub": _binary(BinaryOperation.SUB),
    "armpy.Transpose": _moved("Transpose"),
    "armpy.Unsqueeze": _moved("Unsqueeze"),
    "com.microsoft.QGemm": _GEMM,
    "com.microsoft.QLinearAdd": _ADD,
    "com.microsoft.QLinearAveragePool": Operator(_average_pool, _OF_ONE),
    "com.microsoft.QLinearConcat": _CONCAT,
    "com.microsoft.QLinearGlobalAveragePool": _GLOBAL_AVERAGE_POOL,
    "com.microsoft.QLinearLeakyRelu": Operator(_leaky_relu, _OF_ONE),
    "com.microsoft.QLinearMul": _binary(BinaryOperation.MUL),
    "com.microsoft.QLinearReduceMean": Operator(_mean, _OF_ONE),
    "com.microsoft.QLinearSigmoid": _SIGMOID,
    "com.microsoft.QLinearSoftmax": Operator(_softmax, _OF_ONE),
}
