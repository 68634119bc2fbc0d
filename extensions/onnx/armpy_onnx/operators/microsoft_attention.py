"""Attention as ONNX Runtime's tools write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armpy.graph import Value
from armpy.ops.attention import Attention, AttentionScores
from armpy.ops.elementwise import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    UnaryOperation,
)
from armpy.ops.reduction import ReduceOperation
from armpy.types import DataType
from armpy_onnx.blocks import (
    binary,
    counted,
    joined,
    reduced,
    reshaped,
    selected,
    split,
    taken,
    transposed,
    unary,
    written_at,
)
from armpy_onnx.heads import apart, rotated, together, with_past
from armpy_onnx.node import Node, NodeData, Operator, OperatorTable
from armpy_onnx.operators.matrices import matrix_product
from armpy_onnx.operators.quantization import rounded


def _attention(node: Node) -> Sequence[Value]:
    """One input for queries, keys and values, whose weights are one matrix."""
    packed = matrix_product(node, node.value(0), node.value(1))
    if node.has(2):
        packed = binary(node, BinaryOperation.ADD, packed, node.value(2))
    _refuse(node, 6, "a past that shares its buffer with the present is not supported")
    return attended(node, packed, node.input(3), node.input(4), node.input(5))


def attended(
    node: Node, made: Value, mask: Value | None, past: Value | None, added: Value | None = None
) -> Sequence[Value]:
    """Attention of queries, keys and values side by side, with a node's attributes.

    Parameters
    ----------
    made : Value, shape (batch, sequence, 3 * width)
    mask : Value or None
        Mask in one of the forms that ONNX Runtime has for them.
    past : Value or None, shape (2, batch, heads, sequence, head size)
    added : Value or None
        Addend of the scores.
    """
    heads = _heads(node, "num_heads")
    width = made.info.known_shape[-1]
    sizes = node.integers("qkv_hidden_sizes", ()) or (width // 3,) * 3
    if len(sizes) != 3 or sum(sizes) != width:
        raise node.error(
            "the sizes of queries, keys and values do not add up to the weights' width",
            expected=str(width),
            actual=str(sizes),
        )
    if node.flag("do_rotary"):
        raise node.error("rotated queries are not supported here (do_rotary)")
    query, key, value = (apart(node, part, heads) for part in split(node, made, sizes, 2))
    num_past = 0
    if past is not None:
        if len(past.info.known_shape) != 5 or past.info.known_shape[0] != 2:
            raise node.error(
                "the past has the wrong shape",
                expected="(2, batch, heads, sequence, head size)",
                actual=past.info.known_shape,
            )
        num_past = past.info.known_shape[3]
        parts = [
            reshaped(node, part, past.info.known_shape[1:]) for part in split(node, past, (1, 1), 0)
        ]
        key, value = with_past(node, parts[0], key), with_past(node, parts[1], value)
    mask = _with_bias(node, _mask(node, mask, key.info.known_shape), added, query)
    operation = Attention(
        scale=node.real("scale", 0.0), is_causal=node.flag("unidirectional"), num_past=num_past
    )
    attention = together(node, node.layer(operation, query, key, value, mask))
    if node.data.num_outputs < 2:
        return (attention,)
    rows = [reshaped(node, part, (1, *part.info.known_shape)) for part in (key, value)]
    return attention, joined(node, rows, 0)


def _multi_head_attention(node: Node) -> Sequence[Value]:
    """Queries, keys and values apart, or packed."""
    heads = _heads(node, "num_heads")
    for index in (8, 9):
        _refuse(node, index, "beams and shared buffers are not supported")
    if node.data.num_outputs > 3:
        raise node.error("the output of the scores is not supported")
    query, key, value = _packed(node, heads)
    past_key, past_value = node.input(6), node.input(7)
    if (past_key is None) != (past_value is None):
        raise node.error("past_key and past_value do not come together")
    num_past = past_key.info.known_shape[2] if past_key is not None else 0
    key, value = with_past(node, past_key, key), with_past(node, past_value, value)
    mask = _with_bias(node, _mask(node, node.input(4), key.info.known_shape), node.input(5), query)
    operation = Attention(
        scale=node.real("scale", 0.0), is_causal=node.flag("unidirectional"), num_past=num_past
    )
    attention = together(node, node.layer(operation, query, key, value, mask))
    return attention, key, value


def _packed(node: Node, heads: int) -> tuple[Value, Value, Value]:
    """Queries, keys and values with the bias added, as (batch, heads, sequence, size)."""
    query, rank = node.value(0), node.rank(0)
    if rank == 5:  # (batch, sequence, heads, 3, size)
        query, key, value = _unpacked(node, query, 3)
        return query, key, value
    biases: Sequence[Value | None] = (None,) * 3
    if node.has(3):
        width = node.shape(0)[-1]
        rest = node.shape(3)[0] - 2 * width
        biases = split(node, node.value(3), (width, width, rest), 0)
    parts = [_by_heads(node, query, biases[0], heads)]
    if node.has(1) and node.rank(1) == 5:  # (batch, sequence, heads, 2, size)
        key, value = _unpacked(node, node.value(1), 2)
        return parts[0], key, value
    for index in (1, 2):
        value = node.value(index)
        if node.rank(index) == 4:  # of another sequence, with its heads apart
            parts.append(value)
        else:
            parts.append(_by_heads(node, value, biases[index], heads))
    return parts[0], parts[1], parts[2]


def _unpacked(node: Node, value: Value, count: int) -> tuple[Value, ...]:
    """(batch, sequence, heads, count, size) as that many of (batch, heads, sequence, size)."""
    batch, length, heads, _, size = value.info.known_shape
    parts = split(node, value, (1,) * count, 3)
    rows = (reshaped(node, part, (batch, length, heads, size)) for part in parts)
    return tuple(transposed(node, row, (0, 2, 1, 3)) for row in rows)


def _by_heads(node: Node, value: Value, bias: Value | None, heads: int) -> Value:
    if bias is not None:
        value = binary(node, BinaryOperation.ADD, value, bias)
    return apart(node, value, heads)


def _mask(node: Node, mask: Value | None, keys: Sequence[int]) -> Value | None:
    """Mask of the keys that each query sees: (batch, 1, 1 or queries, keys)."""
    if mask is None:
        return None
    batch, length, shape = keys[0], keys[2], mask.info.known_shape
    if shape == (batch,) and shape != (3 * batch + 2,):  # lengths
        places = node.cast(counted(node, length), mask.info.data_type)
        lengths = reshaped(node, mask, (batch, 1, 1, 1))
        less = Comparison(ComparisonOperation.LESS)
        return node.layer(less, reshaped(node, places, (1, 1, 1, length)), lengths)
    if shape in ((batch, length), (1, length)):
        marks = reshaped(node, mask, (shape[0], 1, 1, length))
    elif len(shape) == 3 and shape[0] in (1, batch) and shape[2] == length:
        marks = reshaped(node, mask, (shape[0], 1, *shape[1:]))
    elif len(shape) == 4:
        marks = mask
    else:
        raise node.error(
            "the mask has a shape that is not supported",
            expected=f"({batch}), ({batch}, {length}) or ({batch}, queries, {length})",
            actual=shape,
        )
    return node.cast(marks, DataType.BOOLEAN)


def _with_bias(node: Node, mask: Value | None, bias: Value | None, query: Value) -> Value | None:
    """A mask and the scores' bias, as one operand."""
    if bias is None:
        return mask
    bias = node.cast(bias, query.info.data_type)
    if mask is None:
        return bias
    return selected(node, mask, bias, -np.inf)


def _group_query_attention(node: Node) -> Sequence[Value]:
    """Several heads of queries per head of keys, with a past and rotated operands."""
    heads, groups = _heads(node, "num_heads"), _heads(node, "kv_num_heads")
    for index in (14, 15, 16):
        _refuse(node, index, "normalised keys and padded queries are not supported")
    if node.flag("sliding_window_cache"):
        raise node.error("a cache of a window's size is not supported (sliding_window_cache)")
    if node.data.num_outputs > 3:
        raise node.error("the output of the scores is not supported")
    query, key, value = _grouped(node, heads, groups)
    length, total = query.info.known_shape[2], node.whole_number(6)
    num_past = total - length
    _check_past(node, num_past)
    last = _last_keys(node, total) if num_past else None
    if last is None:
        places = reshaped(node, counted(node, length, num_past), (1, length))
    else:
        before = reshaped(node, counted(node, length, 1 - length), (1, length))
        places = binary(node, BinaryOperation.ADD, reshaped(node, last, (-1, 1)), before)
    if node.flag("do_rotary"):
        query, key = (
            rotated(
                node,
                part,
                node.value(7),
                node.value(8),
                node.input(9) or places,
                node.flag("rotary_interleaved"),
                _rotated_size(node),
            )
            for part in (query, key)
        )
    scales = _cache_scale(node, "k_quant_type", 12), _cache_scale(node, "v_quant_type", 13)
    present_key, present_value = (
        _present(node, index, _stored(node, part, scale), total, None if last is None else places)
        for index, part, scale in ((3, key, scales[0]), (4, value, scales[1]))
    )
    window = node.integer("local_window_size", -1)
    operation = Attention(
        scale=node.real("scale", 0.0),
        softcap=node.real("softcap", 0.0),
        is_causal=node.flag("causal", True),
        left_window=window - 1 if window > 0 else -1,
        num_past=num_past,
    )
    bias = node.input(10)
    if bias is not None:
        bias = taken(node, node.cast(bias, query.info.data_type), 3, 0, total)
    lengths = None if last is None else binary(node, BinaryOperation.ADD, last, 1)
    keys, values = (
        _restored(node, taken(node, part, 2, 0, total), scale, query.info.data_type)
        for part, scale in ((present_key, scales[0]), (present_value, scales[1]))
    )
    operands = query, keys, values, bias, lengths
    if node.has(11) or node.flag("smooth_softmax"):
        attention = _with_sinks(node, operation, operands)
    else:
        attention = node.layer(operation, *operands)
    return together(node, attention), present_key, present_value


def _cache_scale(node: Node, name: str, index: int) -> Value | None:
    """Scale of a cache of integers, which broadcasts to it; None for a cache of floats."""
    kind = node.choice(name, "NONE", {k: k for k in ("NONE", "PER_TENSOR", "PER_CHANNEL")})
    if kind == "NONE":
        return None
    scale, bits = node.value(index), node.integer("kv_cache_bit_width", 8)
    wanted = _cache_type(node.data, [_type(v) for v in node.inputs])
    if wanted is not _CACHE_TYPES.get(bits):
        raise node.error(
            "the cache has another type than its number of bits says (kv_cache_bit_width)",
            expected="SIGNED8 of 8 bits, or UNSIGNED8 of 4",
            actual=f"{wanted.name} of {bits}",
        )
    groups, size = _heads(node, "kv_num_heads"), scale.info.num_elements
    shape = (1, 1, 1, 1) if size == 1 else (1, groups, 1, size // groups)
    return reshaped(node, node.cast(scale, DataType.FLOAT32), shape)


_CACHE_TYPES = {8: DataType.SIGNED8, 4: DataType.UNSIGNED8}
"""Types of caches of integers by their bits; those of 4 bits lie in pairs, the first one low."""

_MIDDLE_OF_4_BITS = 8


def _type(value: Value | None) -> DataType | None:
    return None if value is None else value.info.data_type


def _cache_type(data: NodeData, types: Sequence[DataType | None]) -> DataType:
    """Data type of the present keys and values: that of the past ones, if there are any."""
    if len(types) > 3 and types[3] is not None:
        return types[3]
    if data.attribute("k_quant_type", "NONE") != "NONE":
        return _CACHE_TYPES.get(data.attribute("kv_cache_bit_width", 8), DataType.SIGNED8)
    return types[0] or DataType.FLOAT32


def _stored(node: Node, value: Value, scale: Value | None) -> Value:
    """Keys or values as a cache has them: integers if it has a scale."""
    if scale is None:
        return value
    steps = binary(node, BinaryOperation.DIV, node.cast(value, DataType.FLOAT32), scale)
    if node.integer("kv_cache_bit_width", 8) == 8:
        return rounded(node, steps, None, DataType.SIGNED8)
    middle = node.constant(np.int8(_MIDDLE_OF_4_BITS))
    steps = binary(node, BinaryOperation.MINIMUM, steps, _MIDDLE_OF_4_BITS - 1)
    numbers = rounded(node, steps, middle, DataType.UNSIGNED8)
    *outer, size = numbers.info.known_shape
    low, high = split(node, reshaped(node, numbers, (*outer, size // 2, 2)), (1, 1), len(outer) + 1)
    pairs = binary(
        node, BinaryOperation.BITWISE_OR, low, binary(node, BinaryOperation.SHIFT_LEFT, high, 4)
    )
    return reshaped(node, pairs, (*outer, size // 2))


def _restored(node: Node, stored: Value, scale: Value | None, wanted: DataType) -> Value:
    """Keys or values of a cache as floats."""
    if scale is None:
        return stored
    real = stored
    if node.integer("kv_cache_bit_width", 8) == 4:
        *outer, size = stored.info.known_shape
        pairs = reshaped(node, stored, (*outer, size, 1))
        low = binary(node, BinaryOperation.BITWISE_AND, pairs, 15)
        high = binary(node, BinaryOperation.SHIFT_RIGHT, pairs, 4)
        numbers = reshaped(node, joined(node, (low, high), len(outer) + 1), (*outer, 2 * size))
        real = node.cast(numbers, DataType.FLOAT32)
        real = binary(node, BinaryOperation.SUB, real, _MIDDLE_OF_4_BITS)
    return node.cast(
        binary(node, BinaryOperation.MUL, node.cast(real, DataType.FLOAT32), scale), wanted
    )


def _with_sinks(node: Node, operation: Attention, operands: Sequence[Value | None]) -> Value:
    """Attention whose softmax has one more score per head, a sink, which has no value.

    Without sinks (input 11) they are 0: a smoothed softmax.

    Notes
    -----
    A softmax with a sink is the one without it, times the share of the other scores:
    ``sum(exp(scores)) / (sum(exp(scores)) + exp(sink))``. Computed in float32, and rounded once.

    References
    ----------
    Xiao et al., "Efficient Streaming Language Models with Attention Sinks", 2024.
    """
    query = operands[0]
    assert query is not None
    wide = [
        part if part is None or index == 4 else node.cast(part, DataType.FLOAT32)
        for index, part in enumerate(operands)
    ]
    attention, scores = node.layers(replace(operation, scores=AttentionScores.MASKED), wide)
    sinks = node.like(scores, 0)
    if node.has(11):
        heads = query.info.known_shape[1]
        sinks = reshaped(node, node.cast(node.value(11), DataType.FLOAT32), (heads, 1, 1))
    largest = reduced(node, ReduceOperation.MAX, scores, (3,), keep_dims=True)
    largest = binary(node, BinaryOperation.MAXIMUM, largest, sinks)
    powers = unary(node, UnaryOperation.EXP, binary(node, BinaryOperation.SUB, scores, largest))
    others = reduced(node, ReduceOperation.SUM, powers, (3,), keep_dims=True)
    sink = unary(node, UnaryOperation.EXP, binary(node, BinaryOperation.SUB, sinks, largest))
    share = binary(
        node, BinaryOperation.DIV, others, binary(node, BinaryOperation.ADD, others, sink)
    )
    product = binary(node, BinaryOperation.MUL, attention, share)
    return node.cast(product, query.info.data_type)


def _grouped(node: Node, heads: int, groups: int) -> tuple[Value, Value, Value]:
    """Queries, keys and values by heads; the first input may hold all of them."""
    if node.has(1):
        return (
            apart(node, node.value(0), heads),
            apart(node, node.value(1), groups),
            apart(node, node.value(2), groups),
        )
    count = heads + 2 * groups
    parts = split(node, apart(node, node.value(0), count), (heads, groups, groups), 1)
    return parts[0], parts[1], parts[2]


def _rotated_size(node: Node) -> int:
    """Return how many features are rotated: two per cosine."""
    return 2 * node.shape(7)[1]


def _check_past(node: Node, num_past: int) -> None:
    """Check that keys of earlier calls are there if there were such calls."""
    lengths = [node.shape(index)[2] if node.has(index) else 0 for index in (3, 4)]
    if num_past < 0 or min(lengths) < num_past:
        raise node.error("the past has too few keys", expected=f"{num_past} keys", actual=lengths)


def _last_keys(node: Node, total: int) -> Value | None:
    """Position of each sequence's last key, int64 (batch); None if all are the last of `total`."""
    last = node.value(5)
    # Element by element, as traced sizes stay.
    if last.is_constant and all(number == total - 1 for number in node.ints(5)):
        return None
    return node.cast(reshaped(node, last, (-1,)), DataType.SIGNED64)


def _present(node: Node, index: int, value: Value, total: int, places: Value | None) -> Value:
    """Keys or values for the next call: in a buffer of the past's size, if that is more.

    Parameters
    ----------
    value : Value, shape (batch, heads, sequence, size)
        Keys or values of this call.
    places : Value or None, shape (batch, sequence)
        Where they are written; None to follow the first keys of the past.
    """
    past = node.input(index)
    if past is None:
        return value
    size, length = past.info.known_shape[2], value.info.known_shape[2]
    if places is None:
        whole = with_past(node, taken(node, past, 2, 0, total - length), value)
        return joined(node, (whole, *_rest(node, past, total)), 2)
    whole = past if size >= total else taken(node, joined(node, (past, value), 2), 2, 0, total)
    return written_at(node, whole, reshaped(node, places, (-1, 1, length, 1)), value, 2)


def _rest(node: Node, past: Value, total: int) -> Sequence[Value]:
    """Return what follows `total` keys in a buffer, if anything does."""
    size = past.info.known_shape[2]
    return (taken(node, past, 2, total, size),) if size > total else ()


def _rotary_embedding(node: Node) -> Value:
    """Convert RotaryEmbedding, whose positions may be given all or only the first one."""
    value, shape = node.value(0), node.shape(0)
    if node.flag("is_packed_batching") or node.real("scale", 1.0) != 1:
        raise node.error("packed batches and a scale are not supported")
    length = node.integer("rotary_embedding_dim", 0)
    if len(shape) == 4:
        by_heads = value
    else:
        heads = node.integer("num_heads", 0)
        size = 2 * node.shape(2)[1]
        by_heads = apart(node, value, heads or shape[2] // size)
    positions, count = node.value(1), by_heads.info.known_shape[2]
    if positions.info.num_elements == 1 and len(positions.info.known_shape) < 2:
        offsets = reshaped(node, counted(node, count), (1, count))
        offsets = node.cast(offsets, positions.info.data_type)
        positions = binary(node, BinaryOperation.ADD, offsets, reshaped(node, positions, (1, 1)))
    interleaved = node.flag("interleaved")
    turned = rotated(node, by_heads, node.value(2), node.value(3), positions, interleaved, length)
    return turned if len(shape) == 4 else together(node, turned)


def _heads(node: Node, name: str) -> int:
    heads = node.integer(name)
    if heads < 1:
        raise node.error(
            f"the attribute '{name}' is not positive", expected="1 or more", actual=heads
        )
    return heads


def _refuse(node: Node, index: int, reason: str) -> None:
    if node.has(index):
        raise node.error(reason)


OPERATORS: OperatorTable = {
    "com.microsoft.Attention": Operator(_attention),
    "com.microsoft.MultiHeadAttention": Operator(_multi_head_attention),
    "com.microsoft.GroupQueryAttention": Operator(
        _group_query_attention, decides=(6,), types=(0, _cache_type)
    ),
    "com.microsoft.RotaryEmbedding": Operator(_rotary_embedding, rounds_once=True),
}
