"""Recurrent cells over sequences: one product for the inputs, one command for the steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.graph import Layer
from armpy_numba_acc.lowering.patches import Patches
from armpy_numba_acc.lowering.tiles import F32
from armpy_numba_acc.lowering.weighted_real import UNBOUNDED, Rows, emit_real, pack_real
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.packing.recurrent import ROWS, packed_panels, panel_line, side_by_side
from armpy_numba_acc.program.emitter import Emitter

Floats: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with its weights, gate by gate as `armpy.ops.RecurrentCell` orders them."""

    kind: str  # of `calls.RecurrentSequence`
    functions: tuple[str, ...]
    weights: Floats  # ndarray, float32, shape (gates * units, depth), (gates * units, units)
    recurrent: Floats
    bias: Floats | None = None  # ndarray, float32, shape (gates * units), or None
    recurrent_bias: Floats | None = None
    peephole: Floats | None = None  # ndarray, float32, shape (3 * units), or None


def emit_cell(
    emit: Emitter,
    layer: Layer,
    cell: Cell,
    steps: int,
    record: Callable[..., calls.RecurrentSequence],
) -> None:
    """Add the commands of a cell.

    Parameters
    ----------
    steps
        Of all batches together.
    record : callable
        Makes the record, whose fields it knows but for those that come from the cell.
    """
    units, lanes = cell.recurrent.shape[1], emit.isa.lanes
    num_gates = split = len(cell.recurrent) // units
    width = candidate_line = -(-units // lanes) * lanes
    weights, recurrent = (
        side_by_side([part.T for part in np.split(matrix, num_gates)], width)
        for matrix in (cell.weights, cell.recurrent)
    )
    begun = _row(cell.recurrent_bias, num_gates, width)
    candidate: Buffer | int = 0
    if cell.kind == "GRU":  # its candidate's product is one of its own
        split, candidate_line = num_gates - 1, panel_line(width, lanes)
        candidate = emit.constant(packed_panels(recurrent[:, split * width :], lanes))
    line = panel_line(split * width, lanes)
    first = np.zeros(line + candidate_line, np.float32)
    first[: split * width] = begun[: split * width]
    first[line : line + len(begun) - split * width] = begun[split * width :]
    pitch = (2 * width + candidate_line + line) * 4
    call = record(
        cell=cell.kind,
        functions=" ".join(cell.functions),
        share=emit_inputs_share(emit, layer, weights, _row(cell.bias, num_gates, width)),
        recurrent=emit.constant(packed_panels(recurrent[:, : split * width], lanes)),
        candidate=candidate,
        first=emit.constant(first),
        peephole=emit.constant(_row(cell.peephole, 3, width)),
        scratch=emit.scratch(ROWS * pitch * emit.num_threads),
        scratch_pitch=ROWS * pitch,
        row_pitch=pitch,
        num_gates=num_gates,
        units=units,
        width=width,
        line=line,
        candidate_line=candidate_line,
    )
    emit(call, layer.name, num_operations=2 * steps * recurrent.size)


def emit_inputs_share(
    emit: Emitter,
    layer: Layer,
    weights: npt.NDArray[np.float32],
    bias: npt.NDArray[np.float32],
) -> Buffer:
    """Multiply the inputs of all times and batches with their weights, by one command.

    Parameters
    ----------
    weights : ndarray, float32, shape (depth, columns)
    bias : ndarray, float32, shape (columns)

    Returns
    -------
    Buffer
        A row of columns for each row of the input.
    """
    source, (depth, columns) = layer["input"], weights.shape
    rows = source.info.num_elements // depth
    share = emit.scratch(rows * columns * 4)
    patches = Patches(emit.source(source), 1, 1, rows, 0, 0, depth * 4, (0,), depth)
    packed = pack_real(emit, F32, patches, weights.T[:, np.newaxis], bias)
    emit_real(emit, patches, packed, Rows(share, columns), UNBOUNDED, layer.name)
    return share


def _row(elements: Floats | None, count: int, width: int) -> Floats:
    if elements is None:
        return np.zeros(count * width, np.float32)
    row = side_by_side([part[np.newaxis] for part in np.split(elements, count)], width)
    return row.reshape(-1)
