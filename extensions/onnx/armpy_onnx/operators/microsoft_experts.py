"""Mixtures of experts as ONNX Runtime's tools write them: each expert is a loop of its own.

An expert computes the tokens that have chosen it, a few in each turn. Without any, it is not run
and its weights are not read. For a single token it is a branch, which takes less time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.graph import Graph, Value
from armpy.graph.network import Network, OperatorBuilder
from armpy.ops.activation_layers import Activation, ActivationFunction, Softmax
from armpy.ops.control_flow import If, While
from armpy.ops.dense import BlockwiseFullyConnected, FullyConnected
from armpy.ops.elementwise import BinaryOperation, ComparisonOperation
from armpy.ops.indexing import ScatterNd, ScatterReduction
from armpy.ops.operation import Array
from armpy.ops.ordering import TopkV2
from armpy.ops.reduction import ReduceOperation
from armpy.ops.slicing import Gather
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_onnx.blocks import (
    binary,
    compared,
    filled,
    gathered,
    reduced,
    reshaped,
    scaled,
    selected,
    split,
    taken,
)
from armpy_onnx.node import Node, Operator, OperatorTable
from armpy_onnx.quantized import real_elements, unpacked

_LEAST_SHARE = 1e-8
"""Shares of quantised experts that are not larger count as none."""

_MOST_BLOCK = 256
"""Numbers with one scale; longer rows of one scale are several blocks."""

_ROWS = ((16, 32), (8, 3), (1, 0))
"""Tokens that an expert computes in a turn, from how many on that choose it in the mean."""

Outputs = Callable[[Node, Value, Value], Value]
"""Adds the layers of an expert: from rows and the share of each to outputs times shares."""


@dataclass(frozen=True, slots=True)
class Product:
    """The weights of one product of all experts."""

    weights: Array  # (experts, units, depth), or packed numbers (experts, units, bytes)
    bias: Array | None  # (experts, units)
    bits: int = 0  # of packed numbers
    scales: Array | None = None  # (experts, units, blocks)
    points: Array | None = None  # as the scales, uint8

    def apply(self, node: Node, expert: int, value: Value) -> Value:
        """Multiply rows by the weights of an expert."""
        bias = None if self.bias is None else node.constant(self.bias[expert])
        weights = self.weights[expert]
        if self.scales is None:
            operation = FullyConnected(keep_num_dims=True)
            return node.layer(operation, value, node.constant(weights), bias)
        scales, points = self.scales[expert], self.points
        packed = weights.reshape(*scales.shape, -1)
        return node.layer(
            BlockwiseFullyConnected(self.bits),
            value,
            node.constant(packed, DataType.UNSIGNED8),
            node.constant(scales),
            None if points is None else node.constant(points[expert], DataType.UNSIGNED8),
            bias,
        )


def _moe(node: Node) -> Value:
    """MoE: (x, router, then weights and bias of up to three products)."""
    x, router = _rows(node)
    experts, width = router.info.known_shape[1], x.info.known_shape[1]
    products = [
        _real_product(node, index, experts, depth)
        for index, depth in ((2, width), (4, None), (6, width))
        if node.has(index)
    ]
    shares = node.layer(Softmax(), router)
    chosen, places = _most(node, shares)
    if node.flag("normalize_routing_weights"):
        total = reduced(node, ReduceOperation.SUM, chosen, (1,), True)
        chosen = binary(node, BinaryOperation.DIV, chosen, total)
    return _mixed(node, x, _by_expert(node, chosen, places, experts), products)


def _quantized_moe(node: Node) -> Value:
    """QMoE: (x, router, then packed weights, scales and bias of up to three products ...)."""
    x, router = _rows(node)
    experts, width = router.info.known_shape[1], x.info.known_shape[1]
    products = [
        _packed_product(node, index, point, experts, depth)
        for index, point, depth in ((2, 11, width), (5, 12, None), (8, 13, width))
        if node.has(index)
    ]
    logits, places = _most(node, router)
    if not node.has(14):
        shares = _by_expert(node, node.layer(Softmax(), logits), places, experts)
    else:
        marks = _by_expert(node, filled(node, logits, logits.info.known_shape, 1), places, experts)
        others = node.cast(reshaped(node, node.value(14), (-1, experts)), DataType.FLOAT32)
        shares = binary(node, BinaryOperation.MUL, marks, others)
        if node.flag("normalize_routing_weights"):
            total = reduced(node, ReduceOperation.SUM, shares, (1,), True)
            is_none = compared(node, ComparisonOperation.EQUAL, total, 0)
            total = selected(node, is_none, np.inf, total)
            shares = binary(node, BinaryOperation.DIV, shares, total)
    is_large = compared(node, ComparisonOperation.GREATER, shares, _LEAST_SHARE)
    shares = selected(node, is_large, shares, 0)
    return _mixed(node, x, shares, products)


def _rows(node: Node) -> tuple[Value, Value]:
    """Tokens (tokens, width) and the router's numbers (tokens, experts), in float32."""
    if node.flag("use_sparse_mixer"):
        raise node.error("the sparse mixer is not supported (use_sparse_mixer)")
    if node.rank(0) not in (2, 3) or node.rank(1) != 2:
        raise node.error(
            "the operands have the wrong ranks",
            expected="2 or 3, and 2",
            actual=f"{node.shape(0)} and {node.shape(1)}",
        )
    width, router = node.shape(0)[-1], node.shape(1)
    k = node.integer("k", 1)
    if not 1 <= k <= router[1]:
        raise node.error("k is out of range", expected=f"1 to {router[1]} experts", actual=k)
    x = reshaped(node, node.value(0), (router[0], width))
    return node.cast(x, DataType.FLOAT32), node.cast(node.value(1), DataType.FLOAT32)


def _most(node: Node, numbers: Value) -> tuple[Value, Value]:
    """The k largest numbers of each row, and where they stand; the last of equal ones come first.

    Notes
    -----
    ONNX Runtime sorts pairs of number and expert, the largest first.
    """
    experts = numbers.info.known_shape[1]
    order = node.constant(np.arange(experts)[::-1].copy())
    largest, places = node.layers(
        TopkV2(node.integer("k", 1)),
        [gathered(node, numbers, order, 1)],
        [None, TensorInfo(None, DataType.SIGNED64)],
    )
    return largest, binary(node, BinaryOperation.SUB, experts - 1, places)


def _by_expert(node: Node, chosen: Value, places: Value, experts: int) -> Value:
    """Numbers (tokens, experts) of the chosen experts, 0 of the others."""
    shape = (*chosen.info.known_shape, 1)
    numbers = node.constant(np.arange(experts))
    columns = reshaped(node, places, shape)
    is_chosen = compared(node, ComparisonOperation.EQUAL, columns, numbers)
    spread = selected(node, is_chosen, reshaped(node, chosen, shape), 0)
    return reduced(node, ReduceOperation.SUM, spread, (1,), False)


def _mixed(node: Node, x: Value, shares: Value, products: Sequence[Product]) -> Value:
    """The sum of what experts make of tokens, each times the token's share of the expert."""
    act = _activation(node)
    tokens, experts = shares.info.known_shape
    total = filled(node, x, x.info.known_shape, 0)
    for expert in range(experts if tokens else 0):

        def outputs(inner: Node, rows: Value, share: Value, expert: int = expert) -> Value:
            first, second, *gates = products
            wide = act(inner, first.apply(inner, expert, rows))
            for gate in gates:
                other = gate.apply(inner, expert, rows)
                wide = binary(inner, BinaryOperation.MUL, wide, other)
            return binary(inner, BinaryOperation.MUL, second.apply(inner, expert, wide), share)

        share = taken(node, shares, 1, expert, expert + 1)
        add = _add_one if tokens == 1 else _add_some
        total = add(node, total, share, x, outputs)
    return node.cast(reshaped(node, total, node.shape(0)), node.type(0))


def _add_one(node: Node, total: Value, share: Value, x: Value, outputs: Outputs) -> Value:
    """Add an expert's outputs of the only token to a sum, if it has chosen the expert."""
    inputs = [total, share, x]

    def run(inner: Node, values: Sequence[Value]) -> Sequence[Value]:
        before, shares, rows = values
        return [binary(inner, BinaryOperation.ADD, before, outputs(inner, rows, shares))]

    skip = _graph(node, inputs, lambda _, values: values[:1])
    is_chosen = compared(node, ComparisonOperation.GREATER, share, 0)
    return node.layer(If(_graph(node, inputs, run), skip), is_chosen, *inputs)


def _add_some(node: Node, total: Value, share: Value, x: Value, outputs: Outputs) -> Value:
    """Add an expert's outputs of the tokens that have chosen it to a sum, some in each turn.

    A turn takes the tokens with the largest shares, and sets these to 0.
    """
    tokens = share.info.known_shape[0]
    mean = tokens * node.integer("k", 1) // node.shape(1)[1]
    num_rows = next(rows for rows, least in _ROWS if mean >= least and tokens >= rows)
    inputs = [total, reshaped(node, share, (tokens,)), x]

    def is_left(inner: Node, values: Sequence[Value]) -> Sequence[Value]:
        most = reduced(inner, ReduceOperation.MAX, values[1], (0,), True)
        return [compared(inner, ComparisonOperation.GREATER, most, 0)]

    def run(inner: Node, values: Sequence[Value]) -> Sequence[Value]:
        before, shares, all_rows = values
        infos = [None, TensorInfo(None, DataType.SIGNED64)]
        largest, places = inner.layers(TopkV2(num_rows), [shares], infos)
        column, indices = (reshaped(inner, part, (num_rows, 1)) for part in (largest, places))
        products = outputs(inner, inner.layer(Gather(0), all_rows, places), column)
        is_chosen = compared(inner, ComparisonOperation.GREATER, column, 0)
        # Not left to the share of 0, as an expert that others have chosen may give infinities.
        updates = selected(inner, is_chosen, products, 0)
        return [
            inner.layer(ScatterNd(ScatterReduction.ADD), before, indices, updates),
            inner.layer(ScatterNd(), shares, indices, inner.constant(np.zeros(num_rows, "f4"))),
        ]

    loop = While(_graph(node, inputs, is_left), _graph(node, inputs, run))
    return node.layers(loop, inputs)[0]


def _graph(
    node: Node, values: Sequence[Value], build: Callable[[Node, Sequence[Value]], Sequence[Value]]
) -> Graph:
    """A graph that takes such values and gives what is built of them."""
    network = Network(node.data.name)
    inputs = [
        network.input(f"input_{number}", TensorInfo(v.info.known_shape, v.info.data_type))
        for number, v in enumerate(values)
    ]
    inner = Node(OperatorBuilder.of(network), node.data, ())
    for number, value in enumerate(build(inner, inputs)):
        network.output(f"output_{number}", value)
    return network.build()


def _activation(node: Node) -> Callable[[Node, Value], Value]:
    """The activation between two products."""
    kind, fusion = node.text("activation_type", "relu"), node.integer("swiglu_fusion", 0)
    table: dict[str, Callable[[Node, Value], Value]] = {
        "relu": lambda inner, x: inner.layer(Activation(ActivationFunction.RELU), x),
        "gelu": lambda inner, x: inner.layer(
            Activation(ActivationFunction.GELU, approximate=True), x
        ),
        "silu": lambda inner, x: _swish(inner, x, 1.0),
        "identity": lambda _, x: x,
        "swiglu": lambda inner, x: _gated(node, inner, x),
    }
    if kind not in table or (kind == "swiglu") != (fusion == 1):
        raise node.error(
            "the activation is not supported",
            expected=f"{', '.join(table)}; swiglu_fusion 1 with swiglu, else 0",
            actual=f"{kind}, swiglu_fusion {fusion}",
        )
    return table[kind]


def _swish(node: Node, value: Value, factor: float) -> Value:
    """A value times the logistic function of a multiple."""
    gate = node.layer(Activation(ActivationFunction.SIGMOID), scaled(node, value, factor))
    return binary(node, BinaryOperation.MUL, value, gate)


def _gated(node: Node, inner: Node, value: Value) -> Value:
    """Pairs of a gate and a linear part side by side."""
    rows, width = value.info.known_shape
    pairs = split(inner, reshaped(inner, value, (rows, width // 2, 2)), (1, 1), 2)
    gate, linear = (reshaped(inner, part, (rows, width // 2)) for part in pairs)
    limit = node.real("swiglu_limit", np.inf)
    if limit < np.inf:
        gate = binary(inner, BinaryOperation.MINIMUM, gate, limit)
        linear = binary(inner, BinaryOperation.MINIMUM, linear, limit)
        linear = binary(inner, BinaryOperation.MAXIMUM, linear, -limit)
    linear = binary(inner, BinaryOperation.ADD, linear, node.real("activation_beta", 0.0))
    gate = _swish(inner, gate, node.real("activation_alpha", 1.0))
    return binary(inner, BinaryOperation.MUL, gate, linear)


# Weights


def _real_product(node: Node, index: int, experts: int, depth: int | None) -> Product:
    """Weights (experts, units, depth), or in older files another shape of the same elements."""
    weights, bias = real_elements(node, index), real_elements(node, index + 1)
    if weights is None or weights.ndim != 3 or weights.shape[0] != experts:
        raise _misfit(node, index, f"constant floats of {experts} experts")
    rows = weights.size // experts
    units = rows // depth if depth else node.shape(0)[-1]
    if not units or rows % units or (depth and rows != units * depth):
        raise _misfit(node, index, f"rows of {depth} numbers")
    return Product(weights.reshape(experts, units, -1), _bias(node, bias, index, experts, units))


def _packed_product(node: Node, index: int, point: int, experts: int, depth: int | None) -> Product:
    """Weights (experts, units, bytes), with scales of rows or of blocks of them."""
    bits, block = node.integer("expert_weight_bits", 4), node.integer("block_size", 0)
    packed, scales = node.array(index), real_elements(node, index + 1)
    if bits not in (2, 4, 8) or block < 0 or packed.dtype != np.uint8 or packed.ndim != 3:
        raise _misfit(node, index, "packed numbers of 2, 4 or 8 bits, of rank 3")
    units, size = packed.shape[1] if depth else node.shape(0)[-1], packed.shape[2] * 8 // bits
    blocks = -(-size // block) if block else 1
    fits = packed.shape == (experts, units, packed.shape[2]) and depth in (None, size)
    if not fits or scales is None or scales.size != experts * units * blocks:
        raise _misfit(node, index, f"{experts} experts with scales of {units} x {blocks} blocks")
    if block and size % block:
        raise _misfit(node, index, f"whole blocks of {block} numbers")
    scales = scales.reshape(experts, units, blocks)
    points = None
    if node.has(point):
        # Those of a row of blocks, or of all rows, side by side in bytes.
        rows = (experts * units, blocks) if block else (experts, units)
        row_bytes = -(-rows[1] * bits // 8)
        stored = node.array(point)
        if stored.dtype != np.uint8 or stored.size != rows[0] * row_bytes:
            raise _misfit(node, point, f"{rows[0]} rows of {row_bytes} bytes")
        numbers = unpacked(stored.reshape(rows[0], row_bytes), bits)
        points = numbers[:, : rows[1]].reshape(scales.shape)
    if not block:  # each row as several blocks, which there are kernels for
        block = next((b for b in (_MOST_BLOCK, 128, 64, 32, 16) if size % b == 0), size)
        scales = np.repeat(scales, size // block, 2)
        points = None if points is None else np.repeat(points, size // block, 2)
    bias = _bias(node, real_elements(node, index + 2), index + 1, experts, units)
    return Product(packed, bias, bits, scales, points)


def _bias(node: Node, bias: Array | None, index: int, experts: int, units: int) -> Array | None:
    """The bias after an input, (experts, units)."""
    if bias is None and node.has(index + 1):
        raise _misfit(node, index + 1, "a constant")
    if bias is not None and bias.shape != (experts, units):
        raise _misfit(node, index + 1, f"({experts}, {units})")
    return bias


def _misfit(node: Node, index: int, expected: str) -> Exception:
    info = node.value(index).info
    return node.error(f"input {index} has the wrong type or shape", expected=expected, actual=info)


OPERATORS: OperatorTable = {
    "com.microsoft.MoE": Operator(_moe, (2, 3, 4, 5, 6, 7)),
    "com.microsoft.QMoE": Operator(_quantized_moe, tuple(range(2, 14))),
}
