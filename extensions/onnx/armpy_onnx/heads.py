"""Attention with several heads, as ONNX and its exporters write it."""

from __future__ import annotations

from armpy.graph import Value
from armpy.ops.elementwise import BinaryOperation
from armpy_onnx.blocks import binary, gathered, joined, reshaped, split, taken, transposed
from armpy_onnx.node import Node


def apart(node: Node, value: Value, heads: int) -> Value:
    """(batch, sequence, heads * size) as (batch, heads, sequence, size)."""
    shape = value.info.known_shape
    if len(shape) != 3 or heads < 1 or shape[2] % heads:
        raise node.error(
            "the features do not split into heads",
            expected=f"rank 3, and a multiple of {heads} features",
            actual=shape,
        )
    rows = reshaped(node, value, (*shape[:2], heads, shape[2] // heads))
    return transposed(node, rows, (0, 2, 1, 3))


def together(node: Node, value: Value) -> Value:
    """(batch, heads, sequence, size) as (batch, sequence, heads * size)."""
    batch, heads, length, size = value.info.known_shape
    rows = transposed(node, value, (0, 2, 1, 3))
    return reshaped(node, rows, (batch, length, heads * size))


def with_past(node: Node, past: Value | None, value: Value) -> Value:
    """Return the past of earlier calls followed by this call's part, along the sequence."""
    return value if past is None else joined(node, (past, value), axis=2)


def rotated(
    node: Node,
    value: Value,
    cosines: Value,
    sines: Value,
    positions: Value | None,
    interleaved: bool,
    length: int = 0,
) -> Value:
    """Rotary embedding of (batch, heads, sequence, size), of the first `length` features.

    Parameters
    ----------
    cosines, sines : Value
        (positions, length / 2), or (batch, sequence, length / 2) if `positions` is None.
    positions : Value or None
        (batch, sequence).
    interleaved : bool
        Whether features are rotated with their neighbours instead of those of the other half.
    length : int
        0 for all features.

    References
    ----------
    Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021.
    """
    shape = value.info.known_shape
    length = length or shape[3]
    if length % 2 or not 0 < length <= shape[3]:
        raise node.error(
            "the number of features to rotate is odd, 0 or too large",
            expected=f"an even number, at most {shape[3]}",
            actual=length,
        )
    if positions is not None:
        cosines, sines = (gathered(node, table, positions) for table in (cosines, sines))
    expected = (shape[0], shape[2], length // 2)
    tables = []
    for table in (cosines, sines):
        table_shape = table.info.known_shape
        fits = (
            len(table_shape) == 3
            and table_shape[1:] == expected[1:]
            and table_shape[0] in (1, expected[0])
        )
        if not fits:
            raise node.error(
                "the cosines or sines have the wrong shape",
                expected=str(expected),
                actual=table_shape,
            )
        tables.append(reshaped(node, table, (table_shape[0], 1, *table_shape[1:])))
    rotating = taken(node, value, 3, 0, length)
    pairs = (*shape[:3], length // 2)
    if interleaved:
        both = reshaped(node, rotating, (*pairs, 2))
        first, other = (reshaped(node, part, pairs) for part in split(node, both, (1, 1), 4))
    else:
        first, other = split(node, rotating, (length // 2,) * 2, 3)
    cosine, sine = tables
    mul, sub, add = BinaryOperation.MUL, BinaryOperation.SUB, BinaryOperation.ADD
    real = binary(node, sub, binary(node, mul, first, cosine), binary(node, mul, other, sine))
    imaginary = binary(node, add, binary(node, mul, first, sine), binary(node, mul, other, cosine))
    if interleaved:
        columns = [reshaped(node, part, (*pairs, 1)) for part in (real, imaginary)]
        turned = reshaped(node, joined(node, columns, 4), (*pairs[:3], length))
    else:
        turned = joined(node, (real, imaginary), 3)
    if length == shape[3]:
        return turned
    return joined(node, (turned, taken(node, value, 3, length, shape[3])), 3)
