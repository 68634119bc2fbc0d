"""Moves elements between two tensors that are cut up, turned round or repeated.

Notes
-----
Which element goes where is said with views of NumPy arrays: of arrays that stand for the
tensors, are as large, and are never read. What slicing, transposing and broadcasting do to
their strides is all that matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_numba_acc.lowering.stand_ins import offset_within, stand_in_of
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Address, Buffer
from armpy_numba_acc.program.emitter import Emitter

_STREAMS = (2, 3, 4)
"""How many streams are interleaved at once."""


@dataclass(frozen=True, slots=True)
class Side:
    """A part of a tensor that elements are taken from or put into."""

    buffer: Buffer  # the whole tensor
    whole: Array  # stands for it
    part: Array  # a view of `whole`, with the part's strides

    @property
    def offset_bytes(self) -> int:
        """Offset in bytes of the part's first element."""
        return offset_within(self.part, self.whole)

    def address(self) -> Address:
        """Address of the part's first element, as an argument of a command."""
        return self.buffer.at(self.offset_bytes)


@dataclass(frozen=True, slots=True)
class Loop:
    """One of nested loops."""

    length: int
    source: int  # bytes from one turn to the next
    target: int


def stand_in(info: TensorInfo, part: TensorInfo | None = None, begin: Sequence[int] = ()) -> Array:
    """An array that stands for a tensor; its elements mean nothing.

    Parameters
    ----------
    part, begin
        The part taken of it, and where that begins.
    """
    others = (*begin, *(() if part is None else part.known_shape))
    return stand_in_of(info.known_shape, info.data_type.size_bytes, *others)


def emit_move(emit: Emitter, source: Side, target: Side, label: str) -> None:
    """Add the command that moves elements.

    Parameters
    ----------
    source, target
        Parts of one shape and element size. The source may be repeated (stride 0) or go
        backwards; the two may lie in one buffer, but not overlap.
    """
    size = source.part.itemsize
    loops = nested(source.part, target.part)
    run = size
    if loops and loops[-1].source == loops[-1].target == size:
        run = size * loops.pop().length
    places = source.address(), target.address()
    if not loops:
        emit(calls.Copy(*places, run), label)
    elif run > size or size not in (1, 2, 4, 8):
        emit(_runs(emit, places, loops, run), label)
    elif not (
        _emit_streams(emit, places, loops, size, label)
        or _emit_tiles(emit, places, loops, size, label)
    ):
        emit(_runs(emit, places, loops, size, size), label)


def is_run(source: Array, target: Array) -> bool:
    """Return whether the elements of two parts lie side by side in the same order."""
    loops, size = nested(source, target), source.itemsize
    return not loops or (len(loops) == 1 and loops[0].source == loops[0].target == size)


def nested(source: Array, target: Array) -> list[Loop]:
    """The fewest loops that walk over both parts, in the target's order."""
    loops = [
        Loop(*entry)
        for entry in zip(target.shape, source.strides, target.strides, strict=True)
        if entry[0] != 1
    ]
    merged: list[Loop] = []
    for loop in sorted(loops, key=lambda loop: -loop.target):
        outer = merged[-1] if merged else None
        inner = loop.length
        if outer and (outer.source, outer.target) == (inner * loop.source, inner * loop.target):
            merged[-1] = Loop(outer.length * inner, loop.source, loop.target)
        else:
            merged.append(loop)
    return merged


def _outer_words(
    emit: Emitter, places: tuple[Address, Address], loops: Sequence[Loop]
) -> tuple[Address, Address, Buffer, int, int]:
    """Return the first words of calls of moves."""
    return (*places, *emit_table(emit, loops))


def emit_table(emit: Emitter, loops: Sequence[Loop]) -> tuple[Buffer, int, int]:
    """A constant that describes loops, how many there are, and how often they turn."""
    rows = [(loop.length, loop.source, loop.target) for loop in loops] or [(1, 0, 0)]
    return emit.table(rows), len(loops), prod(loop.length for loop in loops)


def _runs(
    emit: Emitter, places: tuple[Address, Address], loops: Sequence[Loop], run: int, size: int = 0
) -> calls.MoveRuns:
    padded = [*[Loop(1, 0, 0)] * (2 - len(loops)), *loops]
    rows, columns = padded[-2:]
    return calls.MoveRuns(
        *_outer_words(emit, places, padded[:-2]),
        rows=rows.length,
        source_row=rows.source,
        target_row=rows.target,
        columns=columns.length,
        source_column=columns.source,
        target_column=columns.target,
        run=run,
        size=size,
    )


def _emit_streams(
    emit: Emitter,
    places: tuple[Address, Address],
    loops: Sequence[Loop],
    size: int,
    label: str,
) -> bool:
    """Interleave a few streams, or separate them, if the inner loops do that."""
    if len(loops) < 2:
        return False
    *others, last = loops
    for loop in others:
        if (last.target, loop.source) != (size, size):
            continue
        if last.length in _STREAMS and loop.target == last.length * size:
            direction, streams, along, pitch = "in", last, loop, last.source
        elif loop.length in _STREAMS and last.source == loop.length * size:
            direction, streams, along, pitch = "out", loop, last, loop.target
        else:
            continue
        call = calls.ZipStreams(
            *_outer_words(emit, places, [other for other in others if other is not loop]),
            size=size,
            count=streams.length,
            direction=direction,
            length=along.length,
            pitch=pitch,
        )
        emit(call, label)
        return True
    return False


def _emit_tiles(
    emit: Emitter,
    places: tuple[Address, Address],
    loops: Sequence[Loop],
    size: int,
    label: str,
) -> bool:
    """Transpose tiles, if source and target run along different loops that are long enough."""
    *others, last = loops
    length = min(emit.isa.vector_bytes, 32 if size >= 4 else 16) // size
    if last.target != size or last.length < length:
        return False
    for loop in others:
        if loop.source == size and loop.length >= length:
            call = calls.MoveTiles(
                *_outer_words(emit, places, [other for other in others if other is not loop]),
                size=size,
                length=length,
                width=loop.length,
                target_pitch=loop.target,
                height=last.length,
                source_pitch=last.source,
            )
            emit(call, label)
            return True
    return False
