"""Adds elementwise kernels, whatever way their inputs broadcast."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from armpy.graph import Value
from armpy.types import DataType
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.formats import FORMAT_BYTES
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.packing.quantized import zero_point_of
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.estimate import num_pieces

MAX_INPUTS = 3

KINDS: dict[DataType, str] = {
    DataType.FLOAT32: "f32",
    DataType.FLOAT16: "u16",
    DataType.QASYMM_U8: "u8",
    DataType.QASYMM_S8: "u8",
    DataType.QSYMM_S8: "i8",
    DataType.QSYMM_S16: "i16",
    DataType.QASYMM_U16: "u16",
    DataType.UNSIGNED8: "u8",
    DataType.SIGNED8: "i8",
    DataType.UNSIGNED16: "u16",
    DataType.SIGNED16: "i16",
    DataType.SIGNED32: "i32",
    DataType.SIGNED64: "i64",
    DataType.BOOLEAN: "bool",
}
"""How the elements of a type are handed to expressions."""

Axis = tuple[int, tuple[int, ...]]
"""Size of the output along it, and elements from one of each input to its next."""


def emit_elementwise(
    emit: Emitter,
    expression: str,
    inputs: Sequence[Value],
    output: Value,
    label: str,
    parameters: Sequence[float] = (),
    kinds: Sequence[str] = (),
) -> None:
    """Add the command that computes an expression with broadcasting.

    Parameters
    ----------
    expression
        See `armpy_numba_acc.tiles.elementwise.expressions`.
    parameters
        The expression's.
    kinds
        How inputs and output are handed over, if not as `KINDS` says.
    """
    sources = [emit.source(value) if kinds else emit.source_as_kept(value) for value in inputs]
    kinds = kinds or [_kind(emit, value) for value in (*inputs, output)]
    shapes = [value.info.known_shape for value in inputs]
    emit_on_buffers(
        emit, expression, sources, shapes, output, label, parameters=parameters, kinds=kinds
    )


def emit_quantized(
    emit: Emitter,
    expression: str,
    inputs: Sequence[Value],
    output: Value,
    label: str,
    parameters: Callable[..., Sequence[float]],
) -> None:
    """The same for an expression that receives zero points; the caller's tensors are not flipped.

    Parameters
    ----------
    parameters : callable
        Takes the zero points of the inputs and of the output; gives the expression's parameters.
    """
    sources, kinds, zero_points = [], [], []
    for value in inputs:
        source, is_given = emit.flipped_source(value)
        sources.append(source)
        kinds.append("i8" if is_given else KINDS[value.info.data_type])
        zero_points.append(value.info.zero_point if is_given else zero_point_of(value.info))
    target, is_given = emit.flipped_target(output)
    kinds.append("i8" if is_given else _kind(emit, output))
    zero_points.append(output.info.zero_point if is_given else zero_point_of(output.info))
    emit_on_buffers(
        emit,
        expression,
        sources,
        [value.info.known_shape for value in inputs],
        output,
        label,
        parameters=parameters(*map(float, zero_points)),
        kinds=kinds,
        target=target,
    )


def _kind(emit: Emitter, value: Value) -> str:
    """Return how a tensor is kept."""
    data_type = value.info.data_type
    return emit.kind_of(value) if data_type is DataType.FLOAT32 else KINDS[data_type]


def emit_on_buffers(
    emit: Emitter,
    expression: str,
    sources: Sequence[Buffer],
    shapes: Sequence[tuple[int, ...]],
    output: Value,
    label: str,
    *,
    parameters: Sequence[float] = (),
    kinds: Sequence[str],
    target: Buffer | None = None,
) -> None:
    """The same for inputs that are not tensors of the graph; parameters as above."""
    axes = collapsed(shapes, output.info.known_shape)
    columns, steps = axes[-1]
    rows, row_pitches = axes[-2] if len(axes) > 1 else (1, (0,) * len(sources))
    outer, sizes = axes[:-2], [FORMAT_BYTES[kind] for kind in kinds]
    input_rows = zip(sources, row_pitches, steps, sizes, strict=False)
    inputs = [
        calls.ElementwiseInput(place, row * n, step * n) for place, row, step, n in input_rows
    ]
    missing = [0] * (MAX_INPUTS - len(inputs))
    table = [
        [size, *(p * n for p, n in zip(pitches, sizes, strict=False)), *missing]
        for size, pitches in outer
    ]
    first, second, third = (*inputs, *[calls.ElementwiseInput()] * len(missing))
    call = calls.Elementwise(
        expression,
        formats="x".join(kinds),
        patterns="".join("v" if step else "s" for step in steps),
        first=first,
        second=second,
        third=third,
        output=target or emit.target(output),
        output_step=sizes[-1],
        columns=columns,
        rows=rows,
        planes=math.prod(size for size, _ in outer),
        num_outer=len(outer),
        outer=emit.table(list(zip(*table, strict=True))) if outer else 0,
        numbers=tuple(map(float, parameters)),
    )
    num_bytes = sum(source.size_bytes for source in sources) + output.info.size_bytes
    emit(
        call,
        label,
        num_operations=output.info.num_elements,
        num_pieces=num_pieces(call.work, emit.choices, 0, num_bytes),
    )


def collapsed(shapes: Sequence[tuple[int, ...]], output: tuple[int, ...]) -> list[Axis]:
    """The output's axes, with those joined that every input runs along alike.

    Parameters
    ----------
    shapes
        Of the inputs; they broadcast to the output's.

    Returns
    -------
    list of Axis
        Outermost first; at least one.
    """
    rank = len(output)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    axes: list[tuple[int, tuple[bool, ...]]] = []
    for number, size in enumerate(output):
        if size == 1:
            continue
        runs = tuple(shape[number] != 1 for shape in padded)
        if axes and axes[-1][1] == runs:
            axes[-1] = (axes[-1][0] * size, runs)
        else:
            axes.append((size, runs))
    if not axes:
        return [(1, (1,) * len(shapes))]
    result: list[Axis] = []
    pitches = [1] * len(shapes)
    for size, runs in reversed(axes):
        result.append((size, tuple(p if run else 0 for p, run in zip(pitches, runs, strict=True))))
        pitches = [p * size if run else p for p, run in zip(pitches, runs, strict=True)]
    return result[::-1]
