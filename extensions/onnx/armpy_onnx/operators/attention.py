"""Attention, and what rotates its operands."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Value
from armpy.ops.attention import Attention, AttentionScores
from armpy.ops.movement import Pad
from armpy.types import DataType
from armpy_onnx.heads import apart, rotated, together, with_past
from armpy_onnx.node import Node, Operator, OperatorTable


def _attention(node: Node) -> Sequence[Value]:
    past, lengths = (node.input(4), node.input(5)), node.input(6)
    if (past[0] is None) != (past[1] is None):
        raise node.error("past_key and past_value do not come together")
    if past[0] is not None and lengths is not None:
        raise node.error("there are lengths of keys besides keys of the past")
    query, key, value = (_by_heads(node, index) for index in range(3))
    key, value = with_past(node, past[0], key), with_past(node, past[1], value)
    data_type = query.info.data_type
    num_past = past[0].info.known_shape[2] if past[0] is not None else 0
    scale = node.real("scale", 0.0)
    operation = Attention(
        scale=scale,
        softcap=node.real("softcap", 0.0),
        is_causal=node.flag("is_causal"),
        left_window=node.integer("left_window_size", -1),
        right_window=node.integer("right_window_size", -1),
        num_past=num_past,
        scores=_scores(node),
        # ONNX multiplies queries and keys by the root of the scale, against overflow.
        scales_products=scale > 1,
    )
    mask = _mask(node, key.info.known_shape[2], data_type)
    operands = query, node.cast(key, data_type), node.cast(value, data_type), mask, lengths
    output, *scores = node.layers(operation, operands)
    if node.rank(0) == 3:
        output = together(node, output)
    return output, key, value, *scores


def _by_heads(node: Node, index: int) -> Value:
    """An operand as (batch, heads, sequence, size)."""
    rank = node.rank(index)
    if rank == 4:
        return node.value(index)
    return apart(node, node.value(index), node.integer("kv_num_heads" if index else "q_num_heads"))


def _scores(node: Node) -> AttentionScores:
    """Return the fourth output."""
    if node.data.num_outputs < 4:
        return AttentionScores.NONE
    number = node.integer("qk_matmul_output_mode", 0)
    if not 0 <= number <= 3:
        raise node.error(
            "the attribute 'qk_matmul_output_mode' has an unknown value",
            expected="0 to 3",
            actual=number,
        )
    return AttentionScores(number)


def _mask(node: Node, num_keys: int, data_type: DataType) -> Value | None:
    """The mask with as many elements along its last axis as there are keys."""
    mask = node.input(3)
    if mask is None:
        return None
    shape = mask.info.known_shape
    is_boolean = mask.info.data_type is DataType.BOOLEAN
    if not is_boolean:
        mask = node.cast(mask, data_type)
    if not shape or shape[-1] >= num_keys:
        return mask
    pads = (*((0, 0),) * (len(shape) - 1), (0, num_keys - shape[-1]))
    fill = node.constant(False) if is_boolean else node.like(mask, -float("inf"))
    return node.layer(Pad(pads), mask, fill)


def _rotary_embedding(node: Node) -> Value:
    value, shape = node.value(0), node.shape(0)
    by_heads = value
    if len(shape) == 3:
        by_heads = apart(node, value, node.integer("num_heads"))
    elif len(shape) != 4:
        raise node.error("the input has the wrong rank", expected="rank 3 or 4", actual=shape)
    turned = rotated(
        node,
        by_heads,
        node.value(1),
        node.value(2),
        node.input(3),
        node.flag("interleaved"),
        node.integer("rotary_embedding_dim", 0),
    )
    return together(node, turned) if len(shape) == 3 else turned


OPERATORS: OperatorTable = {
    "Attention": Operator(_attention, types=(0, 1, 2, 0)),
    "RotaryEmbedding": Operator(_rotary_embedding, rounds_once=True),
}
