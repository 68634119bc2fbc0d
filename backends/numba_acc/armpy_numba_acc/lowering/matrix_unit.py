"""Plans products for a matrix unit: how its tiles walk over patches, and what that costs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from armpy.ops.operation import Array
from armpy_numba_acc.lowering.patches import Patches
from armpy_numba_acc.lowering.tiles import ProductKind, Tile, fastest_ns
from armpy_numba_acc.machine.calls.products import MatrixWalk
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.processors.matrix_unit import ROW_BYTES, ROWS, configuration
from armpy_numba_acc.machine.space import Space
from armpy_numba_acc.packing.panels import with_depth
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.program.emitter import Emitter

COLUMNS = 32
"""Of a panel."""

_GROUP_BYTES = 4
_PAIRS = 4
"""Of the unit's tiles that are multiplied for each block: two by two."""

_MOST_ROWS = 2 * ROWS

# Estimates for processors with AMX; of none of them is a measurement on record.
_HALF_PANEL = 0.6
"""Time of a panel of which one of two tiles is used, by the time of a whole panel."""

_WEIGHTS_IN_THE_OPEN = 0.5
"""Share of the time for weights from the second level that multiplying does not hide."""

_GATHER_CYCLES = 3.0
"""Cycles for a gathered row, and again for each of its taps."""

_GATHER_LINE_CYCLES = 1.5
"""Cycles for each cache line of a tap that is copied."""


class MatrixPlan(NamedTuple):
    """One way to compute a product."""

    rows: int  # positions that are computed at once
    # Whether rows are copied together first, or read as they lie: then what lies between rows of
    # the output is computed, too.
    gathers: bool
    blocks: int  # of each tap, or of all that is gathered; groups of four bytes
    block_groups: int
    positions: int  # as of a `MatrixWalk`
    image_positions: int
    line_positions: int
    group: int  # elements of a group

    @property
    def first_rows(self) -> int:
        """Rows of the first of two tiles of the unit."""
        return -(-self.rows // 2)

    @property
    def block_bytes(self) -> int:
        """Bytes of a row that are multiplied at once."""
        return self.block_groups * _GROUP_BYTES

    @property
    def pitch_bytes(self) -> int:
        """Distance of gathered rows: rows that lie 4 KiB apart would evict each other."""
        lines = -(-self.blocks * self.block_bytes // ROW_BYTES)
        return (lines | 1) * ROW_BYTES

    @property
    def gathered_bytes(self) -> int:
        """Bytes of all rows, with those written after the last one."""
        return self.rows * self.pitch_bytes + 2 * ROW_BYTES if self.gathers else 0

    def tile(self, isa: Isa) -> Tile:
        """Return the tile that kernels are made for."""
        return Tile(_MOST_ROWS, COLUMNS // isa.lanes, self.gathers)

    def arranged(self, values: Array) -> Array:
        """Weights (columns, taps, depth), padded with zeros to the unit's blocks."""
        group = self.group
        columns, _, depth = values.shape
        if self.gathers:
            values = with_depth(values, -(-depth // group) * group).reshape(columns, 1, -1)
        return with_depth(values, self.blocks * self.block_groups * group)

    def words(self, emit: Emitter, patches: Patches, element_bytes: int) -> Array:
        """The configuration and the walk as kernels read them."""
        tap_bytes = patches.depth * element_bytes
        walk = MatrixWalk(
            first_rows=self.first_rows,
            num_taps=1 if self.gathers else len(patches.taps),
            blocks=self.blocks,
            block_bytes=self.block_bytes,
            positions=self.positions,
            image_positions=self.image_positions,
            line_positions=self.line_positions,
            tap_bytes=tap_bytes,
            tap_pitch=-(-tap_bytes // _GROUP_BYTES) * _GROUP_BYTES,
            gathered_pitch=self.pitch_bytes,
            gathered_bytes=self.gathered_bytes,
        )
        setting = configuration(self.first_rows, self.rows - self.first_rows, self.block_bytes)
        return np.concatenate([np.frombuffer(setting, np.int64), np.array(walk.words, np.int64)])


def plan_of(
    emit: Emitter, kind: ProductKind, vectors: ProductKind, patches: Patches, columns: int
) -> MatrixPlan | None:
    """The best way to compute a product by the matrix unit; None if vectors are faster.

    What emulates a unit is always used: it is there for that.

    Parameters
    ----------
    kind, vectors
        Of the unit and of vectors.
    columns
        Channels of the output.
    """
    choices, unit = emit.choices, emit.isa.matrix_unit
    plans = _plans(choices, kind, patches)
    if not plans:
        return None
    shape = (*patches.layout[:3], columns, len(patches.taps), patches.depth)

    def duration_ns(plan: MatrixPlan) -> float:
        return _duration_ns(choices, kind, plan, patches, columns)

    plan = choices.choose(f"{kind.name} plan", shape, plans, duration_ns)
    if unit == "emulated":
        return plan
    times = {1: duration_ns(plan), 0: fastest_ns(choices, vectors, patches, columns)}
    (has_unit,) = choices.choose(
        f"{kind.name} or vectors", shape, [(1,), (0,)], lambda option: times[option[0]]
    )
    return plan if has_unit else None


def least_unit_ns(choices: Choices, kind: ProductKind, patches: Patches, columns: int) -> float:
    """About how long a product takes the unit, at best; infinite where there is none for it."""
    plans = _plans(choices, kind, patches)
    times = [_duration_ns(choices, kind, plan, patches, columns) for plan in plans]
    return min(times, default=float("inf"))


def _plans(choices: Choices, kind: ProductKind, patches: Patches) -> list[MatrixPlan]:
    """All ways to compute a product by the unit; none if it cannot."""
    isa = choices.isa
    has_products = isa.has_matrix_unit if kind.element_bytes == 1 else isa.has_unit_bfloat16
    if not has_products or patches.num_pixels < 2:
        return []
    return [plan for plan in (_as_they_lie(kind, patches), _gathered(kind, patches)) if plan]


def _blocks(groups: int) -> tuple[int, int]:
    """Return how many blocks some groups make, and groups of each."""
    blocks = -(-groups // ROWS)
    return blocks, -(-groups // blocks)


def _rows(positions: int) -> int:
    """Positions that are computed at once: as many as there are tiles for, all alike."""
    tiles = -(-positions // _MOST_ROWS)
    return -(-positions // tiles)


def _as_they_lie(kind: ProductKind, patches: Patches) -> MatrixPlan | None:
    """The plan that copies nothing; None if rows are not at one distance, or end too early."""
    num_pixels, height, width, image_pitch, row_pitch, pixel_pitch = patches.layout
    images, line_positions, image_positions = num_pixels // (height * width), 0, 0
    positions = num_pixels
    if images * height > 1:
        if pixel_pitch <= 0 or row_pitch % pixel_pitch or image_pitch % pixel_pitch:
            return None
        line_positions, image_positions = row_pitch // pixel_pitch, image_pitch // pixel_pitch
        positions = (images - 1) * image_positions + (height - 1) * line_positions + width
        if images == 1:
            image_positions = positions
    depth_bytes = patches.depth * kind.element_bytes
    blocks, groups = _blocks(-(-depth_bytes // _GROUP_BYTES))
    excess_bytes = blocks * groups * _GROUP_BYTES - depth_bytes
    # Zeros times what lies after a tap are zeros, unless it is NaN.
    if excess_bytes and (kind.splits_odd or patches.source.root.space is Space.TENSORS):
        return None
    sizes = blocks, groups, positions
    return MatrixPlan(_rows(positions), False, *sizes, image_positions, line_positions, kind.group)


def _gathered(kind: ProductKind, patches: Patches) -> MatrixPlan:
    """The plan that copies rows together."""
    groups = len(patches.taps) * -(-patches.depth * kind.element_bytes // _GROUP_BYTES)
    num_pixels = patches.num_pixels
    return MatrixPlan(_rows(num_pixels), True, *_blocks(groups), num_pixels, 0, 0, kind.group)


def _duration_ns(
    choices: Choices, kind: ProductKind, plan: MatrixPlan, patches: Patches, columns: int
) -> float:
    """About how long one takes, in nanoseconds.

    A block is multiplied by each pair of the unit's tiles, in a cycle for each row; half of the
    time that weights take from the second level of the cache is not hidden. Sums are stored and
    finished from there.
    """
    model, taps, unit = choices.model, len(patches.taps), choices.model.unit
    whole, rest = divmod(columns, COLUMNS)
    panels = float(whole)
    if rest > COLUMNS // 2:
        panels += 1.0
    elif rest:
        panels += _HALF_PANEL
    pace = model.pace("tdpbusd" if kind.element_bytes == 1 else "tdpbf16ps", ROW_BYTES)
    rows_ns = _PAIRS * pace.step_ns * (plan.rows + _MOST_ROWS) / 4
    weights_ns = 2 * ROWS * ROW_BYTES / model.levels[1].bytes_per_ns
    block_ns = rows_ns + _WEIGHTS_IN_THE_OPEN * weights_ns
    store_ns = unit.store_ns if unit is not None else ROWS * model.cycle_ns
    blocks = plan.blocks * (1 if plan.gathers else taps)
    finished = plan.rows * patches.num_pixels / plan.positions
    finish_ns = model.finish(kind.finish).after_steps_ns(plan.rows, 2) * finished / plan.rows
    duration = panels * (_PAIRS * store_ns + blocks * block_ns + finish_ns)
    if plan.gathers:
        tap_bytes = patches.depth * kind.element_bytes
        tap_cycles = _GATHER_CYCLES + _GATHER_LINE_CYCLES * tap_bytes / ROW_BYTES
        cycles = _GATHER_CYCLES + taps * tap_cycles
        duration += plan.rows * cycles * model.cycle_ns
    return -(-plan.positions // plan.rows) * duration
