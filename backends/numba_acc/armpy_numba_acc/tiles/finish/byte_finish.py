"""Requantisation of a tile's sums of bytes to bytes in memory, or to the sums themselves."""

from __future__ import annotations

from armpy.core.dataclass import dataclass
from armpy_numba_acc.llvm.control import loop, when
from armpy_numba_acc.llvm.primitives import Definition
from armpy_numba_acc.llvm.values import F32, I32, I64, CodeValue, smaller
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.elementwise.elements import store_elements
from armpy_numba_acc.tiles.finish.byte_sum import NAME, byte_sum_definition
from armpy_numba_acc.tiles.finish.exact_scaling import ExactScaling
from armpy_numba_acc.tiles.finish.requantize import BytePacker, ByteStore, part_of
from armpy_numba_acc.tiles.finish.residual import ResidualSum
from armpy_numba_acc.tiles.products.engine import Finish, Shape, Tile


@dataclass(frozen=True, slots=True)
class SumsFinish(Finish):
    """``bias + correction + sum`` in int32.

    A panel's head is its bias as int32. Sums are exact, and wrap.
    """

    # Whether every row has a number that is added to its sums: that of its elements times a factor.
    has_corrections: bool

    @property
    def begins_with_bias(self) -> bool:
        return not self.has_corrections

    def head_bytes(self, shape: Shape) -> int:
        return 4 * shape.width

    def definitions(self, isa: Isa) -> tuple[Definition, ...]:
        return (byte_sum_definition(isa),) if self.has_corrections else ()

    def begin_rows(self, tile: Tile) -> None:
        """Keep each row's correction."""
        if not self.has_corrections:
            return
        code, call = tile.code, tile.call
        taps, depth, last = call.taps, call.depth, tile.count - 1

        def correct(row: CodeValue, carried: list[CodeValue]) -> list[CodeValue]:
            wanted = smaller(row, last)

            def in_table() -> list[CodeValue]:
                return [tile.address.load(I64, wanted)]

            def in_line() -> list[CodeValue]:
                return [tile.address + wanted * call.pixel_pitch]

            (first,) = when(call.has_table.differs(0), in_table, in_line)

            def add(tap: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
                return [totals[0] + code.call(NAME, I64, first + taps.load(I64, tap), depth)]

            (total,) = loop(code, call.num_taps, [code.integer(0)], add)
            tile.room.store((total * call.correction).narrowed(I32), row * 2)
            return carried

        loop(code, code.integer(tile.rows), [], correct)

    def first(self, tile: Tile) -> list[CodeValue]:
        bias = tile.line(tile.weights, I32)
        if not self.has_corrections:
            return bias * tile.rows
        sums = [tile.room.load(I32, 2 * row) for row in range(tile.rows)]
        return [total.splat(first.count) + first for total in sums for first in bias]

    def write(self, tile: Tile, totals: list[CodeValue]) -> None:
        rows = tile.by_row(totals)
        places = tile.places(tile.call.target, tile.call.out_pitch, 4)

        def write(masks: list[CodeValue | None]) -> None:
            for place, sums in zip(places, rows, strict=True):
                for total, column, mask in zip(sums, tile.shape.starts, masks, strict=True):
                    store_elements(total, place, "i32", column, mask)

        tile.write(write)


@dataclass(frozen=True, slots=True)
class ByteFinish(SumsFinish):
    """``clamp(round((bias + correction + sum) * scale ± nudge) + zero_point, low, high)``.

    A panel's head is its bias as int32, its scales and nudges as float32 and its exact factors of
    8 bytes. Sums are exact in int32 (and wrap); see `ExactScaling` for the rest.

    Parameters
    ----------
    has_corrections : bool
        As for `SumsFinish`.
    """

    has_negatives: bool  # as for `ExactScaling`
    has_bounds: bool  # as for `BytePacker`
    has_large_scales: bool
    is_imprecise: bool
    has_residual: bool  # whether elements of another tensor are added; see `ResidualSum`

    def head_bytes(self, shape: Shape) -> int:
        return 20 * shape.width

    def write(self, tile: Tile, totals: list[CodeValue]) -> None:
        places = tile.places(tile.call.target, tile.call.out_pitch, 1)
        elements = self._elements(tile, totals, places)
        width, columns = tile.shape.width, tile.call.columns - tile.panel * tile.shape.width

        def whole() -> list[CodeValue]:
            for value, place in zip(elements, places, strict=True):
                place.store(value)
            return []

        def part() -> list[CodeValue]:
            store = ByteStore(tile.isa, columns, width)
            for value, place in zip(elements, places, strict=True):
                store.store(value, place)
            return []

        when(columns >= width, whole, part)

    def _elements(
        self, tile: Tile, totals: list[CodeValue], places: list[CodeValue]
    ) -> list[CodeValue]:
        """Each row's elements as one vector of bytes; they will be written to `places`."""
        call, lanes, vectors = tile.call, tile.isa.lanes, len(tile.shape.widths)
        size = 4 * tile.shape.width
        scales, nudges = (tile.line(tile.weights + line * size, F32) for line in (1, 2))
        scaling = ExactScaling(
            tile.weights + 3 * size,
            lanes,
            vectors,
            call.zero_point.narrowed(I32),
            has_negatives=self.has_negatives,
            is_imprecise=self.is_imprecise,
            has_large_scales=self.has_large_scales,
        )
        missing, low, high = scaling.missing, call.low, call.high
        residual = None
        if self.has_residual:
            bounds = low.narrowed(I32), high.narrowed(I32)
            residual = ResidualSum(call.sum, lanes, missing, *bounds)
            missing = missing.like(0)
            low, high = (call.sum.load(I32, number).unsigned(I64) for number in (3, 4))
        packer = BytePacker(tile.isa, missing, low, high, has_bounds=self.has_bounds)
        distance, width, together = call.residual - call.target, tile.shape.width, 4 // vectors
        result = []
        for first in range(0, tile.rows, together):
            group = places[first : first + together]
            some = totals[first * vectors : (first + len(group)) * vectors]
            steps = scaling.steps(some, scales * len(group), nudges * len(group))
            if residual is not None:
                others = [place + distance + j * lanes for place in group for j in range(vectors)]
                steps = residual.steps(steps, others)
            packed = packer.elements(steps)
            result += [part_of(packed, row * width, width) for row in range(len(group))]
        return result
