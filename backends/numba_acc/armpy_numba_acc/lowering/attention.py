"""Attention, in one command: scores are kept of some keys at a time only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from armpy.core.symbolic import computed
from armpy.graph import Layer, Value
from armpy.ops import Attention, AttentionScores
from armpy.ops.operands import Operands
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.elementwise import check_types
from armpy_numba_acc.lowering.moves import Side, emit_move, stand_in
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.lowering.stand_ins import stand_in_of
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.calls.attention import KEYS_AT_ONCE, MOST_VECTORS
from armpy_numba_acc.machine.memory import Address, Buffer
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule

_ALL = 1 << 30
"""A window that is wider than any sequence."""


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32, a mask of float32 or truth values, no scores."""
    attention, operands = expect(operation, Attention), Operands(operation, inputs)
    if attention.scores is not AttentionScores.NONE:
        return "the scores as an output are not supported"
    data = [operands[name] for name in ("query", "key", "value")]
    if reason := check_types((*data, *outputs), (DataType.FLOAT32,)):
        return reason
    mask = inputs[3] if len(inputs) > 3 else None
    if mask is None:
        return ""
    if mask.known_shape[-1:] != data[1].known_shape[2:3]:
        return "a mask that is repeated along the keys is not supported"
    return check_types((mask,), (DataType.FLOAT32, DataType.BOOLEAN))


def lower(emit: Emitter, layer: Layer) -> None:
    """One command, after one that turns a mask of single queries round."""
    operation = expect(layer.operation, Attention)
    query, key, value = (layer[name] for name in ("query", "key", "value"))
    batches, heads, layer_queries, size = query.info.known_shape
    groups, keys = key.info.known_shape[1:3]
    queries_at, query_pitches = _source(emit, query)
    keys_at, key_pitches = _source(emit, key)
    values_at, value_pitches = _source(emit, value)
    target, target_pitches = _target(emit, layer.output)
    value_size = value.info.known_shape[3]
    mask, lengths = (*layer.inputs[3:], None, None)[:2]
    vectors = 1 if layer_queries <= emit.isa.lanes else MOST_VECTORS
    kind, marks, mask_pitches = _mask(emit, mask, vectors, layer.name)
    low = -operation.left_window if operation.left_window >= 0 else -_ALL
    high = operation.right_window if operation.right_window >= 0 else _ALL
    high = min(high, 0) if operation.is_causal else high
    of_group = heads // groups
    queries = layer_queries
    is_single = 1 < of_group <= emit.isa.lanes and queries == 1 and mask_pitches[1] == 0
    if is_single:  # the heads that share keys are queries at one position
        heads, queries = groups, of_group
        query_pitches, target_pitches = (
            (batch, head * of_group, head) for batch, head, _ in (query_pitches, target_pitches)
        )
    is_bounded = not is_single and (low, high) != (-_ALL, _ALL)
    line = vectors * emit.isa.vector_bytes
    pitch = (size + value_size + 3 + KEYS_AT_ONCE) * line + KEYS_AT_ONCE * value_size * 4
    num_rows = _num_rows(emit, layer, queries) if is_single or layer_queries == 1 else 0
    if num_rows:
        pitch += (size + 2 * value_size) * line
    scale = float(operation.scale or size**-0.5)
    query_scale, scale = (1.0, scale) if operation.scales_products else (scale, 1.0)
    call = calls.Attention(
        mask_kind=kind,
        num_vectors=vectors,
        is_bounded=int(is_bounded),
        is_capped=int(operation.softcap > 0),
        length_bytes=0 if lengths is None else lengths.info.data_type.size_bytes,
        num_rows=num_rows,
        query=queries_at,
        key=keys_at,
        value=values_at,
        mask=marks,
        lengths=0 if lengths is None else emit.source(lengths),
        target=target,
        scratch=emit.scratch(pitch * emit.num_threads),
        scratch_pitch=pitch,
        query_batch=query_pitches[0],
        query_head=query_pitches[1],
        query_row=query_pitches[2],
        key_batch=key_pitches[0],
        key_head=key_pitches[1],
        key_row=key_pitches[2],
        value_batch=value_pitches[0],
        value_head=value_pitches[1],
        value_row=value_pitches[2],
        mask_batch=mask_pitches[0],
        mask_head=mask_pitches[1],
        mask_row=mask_pitches[2],
        target_batch=target_pitches[0],
        target_head=target_pitches[1],
        target_row=target_pitches[2],
        batches=batches,
        heads=heads,
        heads_per_group=1 if is_single else of_group,
        queries=queries,
        keys=keys,
        size=size,
        value_size=value_size,
        num_past=operation.num_past,
        advance=int(not is_single),
        low=low,
        high=high,
        query_scale=query_scale,
        scale=scale,
        cap=float(operation.softcap),
    )
    num_operations = 2 * batches * heads * queries * keys * (size + value_size)
    emit(call, layer.name, num_operations=num_operations)


def _num_rows(emit: Emitter, layer: Layer, queries: int) -> int:
    """Return the parameter of `calls.Attention` for queries at one position."""
    lanes, num_rows = emit.isa.lanes, 1 << (queries - 1).bit_length()
    sizes = [layer[name].info.known_shape[3] for name in ("query", "value")]
    return num_rows if num_rows < lanes and all(size % lanes == 0 for size in sizes) else 0


_Place: TypeAlias = tuple[Address, tuple[int, int, int]]
"""Where a tensor begins; bytes from batch to batch, head to head, and row to row."""


def _source(emit: Emitter, value: Value) -> _Place:
    """Return where an operand is read; it may lie in another tensor."""
    view = emit.arrangement.views.of.get(value)
    if view is None:
        return emit.source(value).at(0), _pitches(stand_in(value.info))
    return Side(emit.source(view.whole), view.base, view.part).address(), _pitches(view.part)


def _target(emit: Emitter, value: Value) -> _Place:
    """Return where the output is written, in the same way."""
    view = emit.arrangement.views.of.get(value)
    if view is None:
        return emit.target(value).at(0), _pitches(stand_in(value.info))
    return Side(emit.target(view.whole), view.base, view.part).address(), _pitches(view.part)


def _pitches(part: Array) -> tuple[int, int, int]:
    """Bytes from one to the next along the first three axes."""
    return part.strides[0], part.strides[1], part.strides[2]


def _mask(
    emit: Emitter, mask: Value | None, vectors: int, label: str
) -> tuple[str, Buffer | int, tuple[int, int, int]]:
    """The kind of a mask, where it is, and bytes from batch, head and key to the next."""
    if mask is None:
        return "", 0, (0, 0, 0)
    kind = "bool" if mask.info.data_type is DataType.BOOLEAN else "f32"
    item = mask.info.data_type.size_bytes
    given_shape = mask.info.known_shape
    shape = (1,) * (4 - len(given_shape)) + given_shape
    batches, heads, queries, keys = shape
    source = emit.source(mask)
    if queries == 1:
        of_batch, of_head = (0 if n == 1 else 1 for n in (batches, heads))
        return f"{kind} keys", source, (of_batch * heads * keys * item, of_head * keys * item, item)
    block = vectors * emit.isa.lanes
    array = stand_in(mask.info)
    turned = stand_in_of((batches, heads, keys, computed(max, queries, block)), item)
    places = turned[..., :queries]
    scratch = emit.scratch(turned.nbytes)
    swapped = array.reshape(shape).swapaxes(-1, -2)
    emit_move(emit, Side(source, array, swapped), Side(scratch, turned, places), label)
    pitches = tuple(0 if n == 1 else s for n, s in zip(shape, turned.strides, strict=True))
    return kind, scratch, (pitches[0], pitches[1], turned.strides[2])


LOWERINGS = {Attention: LoweringRule(check, lower)}
