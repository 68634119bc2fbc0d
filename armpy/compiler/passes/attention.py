"""Pass that finds attention which files have written out as products and a softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from armpy.compiler.passes.context import PassContext, layer_like
from armpy.compiler.passes.matching import are_read_inside, beside, binary, number_of
from armpy.core.dataclass import dataclass
from armpy.graph import Graph, Layer, Value
from armpy.graph.rewriter import Rewriter, only_reader, rewrite
from armpy.ops.activation_layers import Softmax
from armpy.ops.attention import Attention
from armpy.ops.dense import BatchMatMul
from armpy.ops.elementwise import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    Select,
)
from armpy.ops.movement import Transpose
from armpy.ops.operation import Array
from armpy.ops.reshaping import Reshape
from armpy.ops.shapes import broadcast_shapes
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

_DEEPEST = 6
"""Layers between the product and the softmax at most."""

_HIDING = -1e9
"""The largest addend of the scores of hidden elements."""

_SWALLOWING = -1e30
"""What stays as it is, at most, whatever score is added to it."""


@dataclass(frozen=True, eq=False, slots=True)
class _ScoreTerm:
    """Term that is added to scores, or takes their place where it hides them."""

    value: Value  # the addend, or a condition
    number: float | None = None  # what scores are replaced by, if it is a condition
    hides: bool = False  # whether they are where it is true; otherwise where it is false

    @property
    def elements(self) -> Array | None:
        """Return the added elements, if they are constant."""
        if self.value.data is None or self.number is None:
            return self.value.data
        return np.where(self.value.data == self.hides, self.number, 0).astype(np.float32)

    def is_sum(self, *, is_first: bool) -> bool:
        """Return whether the term can be added, after others or first, instead of replacing."""
        if self.number is None or self.number == -math.inf:
            return True
        return is_first and self.number <= _SWALLOWING


@dataclass(frozen=True, eq=False, slots=True)
class _Scores:
    """Scores of queries and keys: a product, times a factor, and terms."""

    product: BatchMatMul
    factor: float
    terms: tuple[_ScoreTerm, ...]
    layers: tuple[Layer, ...]  # what computes them, the last one first


@dataclass(frozen=True, eq=False, slots=True)
class _Operand:
    """A query, key or value, and whether its last two axes are swapped."""

    value: Value
    is_swapped: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape with the axes in their wanted order."""
        *batches, rows, columns = self.value.info.known_shape
        return (*batches, columns, rows) if self.is_swapped else (*batches, rows, columns)


@dataclass(frozen=True, eq=False, slots=True)
class _FoundAttention:
    """Attention that is written out."""

    operation: Attention
    operands: tuple[_Operand, ...]  # query, key and value
    terms: tuple[_ScoreTerm, ...]  # whose sum is the mask
    layers: tuple[Layer, ...]  # those that it stands for, the last one first


def join_attention(graph: Graph, context: PassContext) -> Graph:
    """Make one layer of products, scale, mask and softmax that are attention written out.

    Of float32 only, with three or four axes, where nothing else reads what lies between and the
    layer stays on its backend. The same up to rounding, but for NaN of hidden elements: queries
    that see nothing give 0, and keys and values that a query does not see leave it alone. A
    constant mask that hides the keys after each query becomes an attribute.
    """
    joined: dict[Layer, _FoundAttention] = {}
    for layer in graph.layers:
        match = _find(graph, layer)
        if match is not None and _can_join(graph, context, match):
            joined[layer] = match
    covered = {layer for match in joined.values() for layer in match.layers}
    # Sums of terms, each made once: successive layers share their masks.
    masks: dict[tuple[object, ...], Value] = {}
    return rewrite(graph, joined, partial(_replace, masks), covered)


def _find(graph: Graph, last: Layer) -> _FoundAttention | None:
    """Attention that ends with a layer, the product of weights and values."""
    product = _product(last)
    guarded = graph.producers.get(last["x"]) if product is not None else None
    if product is None or guarded is None or product.transpose_x:
        return None
    guard, softmax = _without_guard(graph, guarded)
    operation = softmax and softmax.operation
    if softmax is None or not isinstance(operation, Softmax) or operation.beta != 1:
        return None
    if operation.axis not in (-1, len(softmax.output.info.known_shape) - 1):
        return None
    scores = _scores(graph, softmax["input"], _DEEPEST)
    if scores is None:
        return None
    inner = scores.layers[-1]
    query, query_factor, of_query = _unscaled(graph, inner, "x")
    key, key_factor, of_key = _unscaled(graph, inner, "y")
    # The scale stays on the side of the product where the graph has it, as overflow differs.
    scales_products = scores.factor != 1
    if scales_products:
        query, key, of_query, of_key = inner["x"], inner["y"], (), ()
    factor = scores.factor if scales_products else query_factor * key_factor
    operands = (
        _Operand(query, scores.product.transpose_x),
        _Operand(key, not scores.product.transpose_y),
        _Operand(last["y"], product.transpose_y),
    )
    if not (factor > 0 and math.isfinite(factor) and _fits(operands, last)):
        return None
    attention = Attention(scale=factor, scales_products=scales_products)
    operation, terms = _seen(attention, scores, inner.output.info.known_shape)
    if not all(term.is_sum(is_first=term is scores.terms[0]) for term in terms):
        return None
    layers = (last, *guard, softmax, *scores.layers, *of_query, *of_key)
    return _FoundAttention(operation, operands, terms, layers)


def _product(layer: Layer | None) -> BatchMatMul | None:
    """A layer's operation if it is a product of float32 with three or four axes."""
    if layer is None or not isinstance(layer.operation, BatchMatMul):
        return None
    info = layer.output.info
    is_fit = info.data_type is DataType.FLOAT32 and info.rank in (3, 4)
    return layer.operation if is_fit and info.num_elements else None


def _without_guard(graph: Graph, layer: Layer) -> tuple[tuple[Layer, ...], Layer | None]:
    """Layers that put 0 in the place of NaN, and the layers in front of them."""
    if not isinstance(layer.operation, Select):
        return (), layer
    different = graph.producers.get(layer["condition"])
    value = layer["rhs"]
    is_guard = (
        number_of(layer["lhs"]) == 0
        and different is not None
        and different.operation == Comparison(ComparisonOperation.NOT_EQUAL)
        # Only NaN differs from itself.
        and different["lhs"] is different["rhs"] is value
    )
    if not is_guard or different is None:
        return (), None
    return (layer, different), graph.producers.get(value)


def _scores(graph: Graph, value: Value, depth: int) -> _Scores | None:
    """Return how a softmax's input is computed, if it is scores of attention."""
    layer = graph.producers.get(value)
    # A sum can be followed on both sides, so that ways double with every layer.
    if layer is None or depth == 0:
        return None
    if isinstance(layer.operation, BatchMatMul):
        product = _product(layer)
        return None if product is None else _Scores(product, 1.0, (), (layer,))
    for inner, factor, term in _steps(graph, layer):
        # Of a sum, only a side with its shape can be the scores; the other one is broadcast.
        if inner.info.shape != value.info.shape:
            continue
        scores = _scores(graph, inner, depth - 1)
        # A factor after a term multiplies the term as well, which attention does not.
        if scores is None or (factor != 1 and scores.terms):
            continue
        terms = scores.terms if term is None else (*scores.terms, term)
        return _Scores(scores.product, scores.factor * factor, terms, (layer, *scores.layers))
    return None


def _steps(graph: Graph, layer: Layer) -> Sequence[tuple[Value, float, _ScoreTerm | None]]:
    """Find the operations of a layer on scores: these scores, a factor, and a term."""
    scaled = _scaled(graph, layer.output)
    if scaled is not None:
        return [(*scaled, None)]
    total = binary(graph, layer.output, BinaryOperation.ADD)
    if total is not None:
        _, lhs, rhs = total
        return [(lhs, 1.0, _ScoreTerm(rhs)), (rhs, 1.0, _ScoreTerm(lhs))]
    if not isinstance(layer.operation, Select):
        return []
    condition, scores, other = layer["condition"], layer["lhs"], layer["rhs"]
    if (number := number_of(other)) is not None and number <= _HIDING:
        return [(scores, 1.0, _ScoreTerm(condition, number))]
    if (number := number_of(scores)) is not None and number <= _HIDING:
        return [(other, 1.0, _ScoreTerm(condition, number, hides=True))]
    return []


def _scaled(graph: Graph, value: Value) -> tuple[Value, float] | None:
    """Return the value that this one is a multiple of, and the factor; None if there is none."""
    pair = binary(graph, value, BinaryOperation.MUL, BinaryOperation.DIV)
    sides = beside(pair[1:]) if pair else None
    number = number_of(sides[1]) if sides else None
    if pair is None or sides is None or not number:
        return None
    if pair[0].operation == ElementwiseBinary(BinaryOperation.MUL):
        return sides[0], number
    # A number divided by scores is not a multiple of them.
    return (sides[0], 1 / number) if pair[2] is sides[1] else None


def _unscaled(graph: Graph, product: Layer, name: str) -> tuple[Value, float, tuple[Layer, ...]]:
    """Return the base of a product's operand, the factor, and the layers.

    A factor above 1 stays a layer: it could make another operand overflow.
    """
    value, factor, layers = product[name], 1.0, [product]
    # A product that others read stays in any case, and joining it would save nothing.
    while only_reader(graph, value) is layers[-1]:
        scaled = _scaled(graph, value)
        if scaled is None or scaled[0].info.shape != value.info.shape or abs(scaled[1]) > 1:
            break
        layers.append(graph.producers[value])
        value, factor = scaled[0], factor * scaled[1]
    return value, factor, tuple(layers[1:])


def _fits(operands: Sequence[_Operand], last: Layer) -> bool:
    """Return whether batches and heads are those of attention: a head of keys may serve several."""
    query, key, value = (operand.shape for operand in operands)
    output = last.output.info.known_shape
    if not len(query) == len(key) == len(value) == len(output):
        return False
    return query[:-2] == output[:-2] and key[:-2] == value[:-2] and key[:-3] == query[:-3]


def _seen(
    operation: Attention, scores: _Scores, shape: Sequence[int]
) -> tuple[Attention, tuple[_ScoreTerm, ...]]:
    """Attention that sees what constant terms say, and the terms that are left.

    Beside other terms a finite number does not hide for sure: where all is hidden, its
    differences count.
    """
    terms = []
    for term in scores.terms:
        elements = term.elements
        if elements is None:
            terms.append(term)
            continue
        is_only = len(scores.terms) == 1
        last_seen = _last_seen(elements, shape, _HIDING if is_only else -math.inf)
        # The attribute has room for one diagonal; a second mask stays an operand.
        if last_seen is None or (operation.is_causal and last_seen < shape[-1] - 1):
            terms.append(term)
        elif last_seen < shape[-1] - 1:
            operation = replace(operation, is_causal=True, num_past=last_seen)
    return operation, tuple(terms)


def _last_seen(elements: Array, shape: Sequence[int], hiding: float) -> int | None:
    """The last key that the first query sees, if each one sees one more; None otherwise."""
    queries, keys = shape[-2:]
    # The attribute holds for all batches and heads alike.
    if math.prod(elements.shape[:-2]) != 1:
        return None
    rows = np.broadcast_to(elements.reshape(elements.shape[-2:]), (queries, keys))
    sees = rows == 0
    last_seen = int(sees[0].sum()) - 1
    is_known = last_seen >= 0 and bool((sees | (rows <= hiding)).all())
    expected = np.arange(keys) <= last_seen + np.arange(queries)[:, None]
    return last_seen if is_known and np.array_equal(sees, expected) else None


def _can_join(graph: Graph, context: PassContext, match: _FoundAttention) -> bool:
    """Return whether nothing else reads what lies between, and the backend takes the layer."""
    last = match.layers[0]
    # Inner layers are removed, so no other layer may read their outputs.
    if not are_read_inside(graph, match.layers, last):
        return False
    inputs: list[Value | None] = [
        Value(-2 - number, _info(_four(operand.shape)), last.name)
        for number, operand in enumerate(match.operands)
    ]
    if match.terms:
        shape: Shape | None = ()
        for term in match.terms:
            shape = broadcast_shapes(shape, term.value.info.shape)
        inputs.append(Value(-1, TensorInfo(shape, DataType.FLOAT32), last.name))
    (info,) = last.output_infos
    candidate = layer_like(last, match.operation, inputs, [_info(_four(info.known_shape))])
    return context.prefers(candidate, last)


def _info(shape: Sequence[int]) -> TensorInfo:
    """float32 of a shape."""
    return TensorInfo(tuple(shape), DataType.FLOAT32)


def _four(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape with an axis of batches in front if there is none."""
    return (1,) * (4 - len(shape)) + tuple(shape)


def _mask(
    rewriter: Rewriter, masks: dict[tuple[object, ...], Value], match: _FoundAttention
) -> Value | None:
    if not match.terms:
        return None
    key = tuple((term.value, term.number, term.hides) for term in match.terms)
    if key not in masks:
        name = f"{match.layers[0].name}/mask"
        known = [term.elements for term in match.terms]
        parts = [
            _term(rewriter, term, name)
            for term, elements in zip(match.terms, known, strict=True)
            if elements is None
        ]
        constants = [elements for elements in known if elements is not None]
        if constants:
            with np.errstate(over="ignore"):  # the lowest number twice is -infinity
                total = sum(constants[1:], constants[0]).astype(np.float32)
            parts.append(rewriter.constant(total, _info(total.shape), name))
        mask = parts[0]
        for part in parts[1:]:
            add = ElementwiseBinary(BinaryOperation.ADD)
            mask = rewriter.insert(add, [mask, part], name).output
        masks[key] = mask
    return masks[key]


def _term(rewriter: Rewriter, term: _ScoreTerm, name: str) -> Value:
    value = rewriter.mapped(term.value)
    if term.number is None:
        return value
    zero, number = (
        rewriter.constant(np.array(fill, np.float32), _info(()), name) for fill in (0, term.number)
    )
    sides = (number, zero) if term.hides else (zero, number)
    return rewriter.insert(Select(), [value, *sides], name).output


def _replace(
    masks: dict[tuple[object, ...], Value], rewriter: Rewriter, last: Layer, match: _FoundAttention
) -> None:
    """Add attention, and what gives its operands the axes that it wants."""
    mask, inputs = _mask(rewriter, masks, match), []
    for operand, role in zip(match.operands, ("query", "key", "value"), strict=True):
        value, name = rewriter.mapped(operand.value), f"{last.name}/{role}"
        if operand.is_swapped:
            rank = len(operand.shape)
            perm = (*range(rank - 2), rank - 1, rank - 2)
            value = rewriter.insert(Transpose(perm), [value], name).output
        if len(operand.shape) < 4:
            value = rewriter.insert(Reshape(_four(operand.shape)), [value], name).output
        inputs.append(value)
    operands = (*inputs, mask) if mask is not None else tuple(inputs)
    # Found from the end, and listed in order of execution.
    origins = match.layers[::-1]
    shape = last.output.info.known_shape
    if len(shape) == 4:
        rewriter.replace(last, match.operation, operands, origins=origins)
        return
    name = f"{last.name}/attention"
    output = rewriter.insert(match.operation, operands, name, origins=origins).output
    # The reshape gets id and name, as it gives the tensor that others read.
    rewriter.replace(last, Reshape(shape), [output])
