"""The product engine: tiles of a matrix product, whatever is multiplied and whatever becomes of it.

Notes
-----
A tile is some rows (pixels) by some vectors (of columns) of a product. Its result is put
together from two things:

- `Products` say how operands are multiplied: how many bytes of a row a step takes, how they are
  spread, how a line of weights is laid out and loaded, and how products are added to the sums. By
  default all sums are in registers while a loop over taps and steps adds to them; a class whose
  sums are elsewhere overrides `Products.sums`.
- A `Finish` defines the sums' initial values and their conversion: bias, residual, clamping,
  scaling, and how they are stored, all columns or the first ones.

`product_definitions` writes two functions of them, which are linked with the one walk over tiles
and panels, `armpy_numba_acc.tiles.products.pixels.walk_tiles`. Each kernel names its record, its
products and its finish, no more.

A matrix unit's sums are in tiles of its own: `armpy_numba_acc.tiles.products.matrix_unit` computes
and walks over them otherwise, and ends with the same finishes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

from armpy.core.dataclass import dataclass
from armpy_numba_acc.llvm.calls import CallFields
from armpy_numba_acc.llvm.control import loop, loop_while, repeat, when
from armpy_numba_acc.llvm.primitives import Definition, defined, linked
from armpy_numba_acc.llvm.values import (
    I64,
    Code,
    CodeValue,
    Kind,
    choose,
    element_bytes,
    first_lanes,
    vector,
)
from armpy_numba_acc.machine.calls.products import ProductCall
from armpy_numba_acc.machine.isa import Isa

_TILE, _BEGIN = "armpy_product_tile", "armpy_begin_rows"

call_tile = linked(_TILE, 7)
"""``(args, address, room, pixel, count, first, last)`` computes a tile's columns of some panels."""

call_begin_rows = linked(_BEGIN, 5)
"""``(args, address, room, pixel, count)`` is called for each tile before its panels."""

ROOM_BYTES = 8
"""What a finish may keep for each row of a tile while its panels are computed."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Shape of a tile."""

    rows: int
    widths: tuple[int, ...]  # columns of each vector of a row

    @classmethod
    def of(cls, isa: Isa, rows: int, vectors: int, half_vectors: int = 0) -> Shape:
        """Rows by whole registers, and after them halves of registers."""
        return cls(rows, (isa.lanes,) * vectors + (isa.lanes // 2,) * half_vectors)

    @property
    def width(self) -> int:
        """Columns."""
        return sum(self.widths)

    @property
    def starts(self) -> tuple[int, ...]:
        """The first column of each vector."""
        return tuple(sum(self.widths[:number]) for number in range(len(self.widths)))


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile under construction."""

    isa: Isa
    code: Code
    call: CallFields  # the kernel's call
    shape: Shape
    address: CodeValue  # of the first row of the source, or of a table with the address of each
    room: CodeValue  # address of `ROOM_BYTES` for each row, which a finish has filled
    # Number of the first pixel, and how many rows are wanted: at least one. Those after are
    # computed as if they were the last one.
    pixel: CodeValue
    count: CodeValue
    panel: CodeValue
    sources: list[CodeValue]  # addresses of the rows in the source

    @property
    def rows(self) -> int:
        """Pixels."""
        return self.shape.rows

    @property
    def weights(self) -> CodeValue:
        """Address of the panel."""
        weights: CodeValue = self.call.weights
        panel_bytes: CodeValue = self.call.panel_bytes
        return weights + self.panel * panel_bytes

    def line(self, address: CodeValue, element: Kind) -> list[CodeValue]:
        """Vectors of a number for each column."""
        size = element_bytes(element)
        return [
            (address + size * start).load(vector(element, width))
            for start, width in zip(self.shape.starts, self.shape.widths, strict=True)
        ]

    def by_row(self, values: Sequence[CodeValue]) -> list[Sequence[CodeValue]]:
        """A row's vectors together."""
        size = len(self.shape.widths)
        return [values[first : first + size] for first in range(0, len(values), size)]

    def places(self, start: CodeValue, pitch: CodeValue, element_bytes: int) -> list[CodeValue]:
        """Addresses of the tile's rows in a tensor laid out as the target."""
        columns = self.panel * (self.shape.width * element_bytes)
        return rows_in_line(start + self.pixel * pitch + columns, pitch, self.count, self.rows)

    def write(self, write: Callable[[list[CodeValue | None]], None]) -> None:
        """Write rows with a mask for each vector: None where all columns are wanted."""
        left = self.call.columns - self.panel * self.shape.width

        def whole() -> list[CodeValue]:
            write([None] * len(self.shape.widths))
            return []

        def part() -> list[CodeValue]:
            numbered = zip(self.shape.starts, self.shape.widths, strict=True)
            write([first_lanes(left - start, width) for start, width in numbered])
            return []

        when(left >= self.shape.width, whole, part)


class Products(ABC):
    """Products of operands, and how they are added up.

    Attributes
    ----------
    step_bytes : int
        Of a row's elements that a step multiplies.
    has_rest : bool
        Whether something is left of a tap after its steps.
    steps_at_once : int
        Steps whose elements are loaded together, as long as there are so many.
    """

    step_bytes: ClassVar[int] = 4
    has_rest: bool = False
    steps_at_once: int = 1

    @abstractmethod
    def line_bytes(self, shape: Shape) -> int:
        """Bytes of the weights of a step."""

    @abstractmethod
    def weights(self, line: CodeValue, shape: Shape) -> list[Any]:
        """A step's weights for each vector, in whatever form `add` takes."""

    def elements(self, place: CodeValue, shape: Shape) -> list[Any]:
        """A row's elements of a step for each vector, in whatever form `add` takes."""
        # The same for all columns, unless a kind of product keeps channels apart.
        return _for_each_width(self.spread, place, shape)

    def spread(self, place: CodeValue, lanes: int) -> Any:
        """A row's elements of a step, the same for every lane; unless `elements` is overridden."""
        raise NotImplementedError

    def several_spread(self, place: CodeValue, lanes: int) -> list[Any]:
        """The same of each of `steps_at_once` steps, if these are several."""
        raise NotImplementedError

    def last_spread(self, place: CodeValue, lanes: int) -> Any:
        """The same of the rest of a tap after its steps, if `has_rest`."""
        raise NotImplementedError

    @abstractmethod
    def add(self, total: CodeValue, elements: Any, weights: Any) -> CodeValue:
        """Sums with a step's products added."""

    def sums(self, tile: Tile, line: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
        """The sums of all taps.

        Parameters
        ----------
        line
            Address of the panel's first line of weights.
        totals
            What sums begin with: a vector for each of a row's vectors, row by row.
        """
        call = tile.call
        return self.sums_of_taps(tile, tile.sources, call.taps, call.num_taps, line, totals)

    def sums_of_taps(
        self,
        tile: Tile,
        rows: Sequence[CodeValue],
        taps: CodeValue,
        num_taps: CodeValue,
        line: CodeValue,
        totals: list[CodeValue],
    ) -> list[CodeValue]:
        """Add products in the order of taps and steps, with the sums in registers.

        Parameters
        ----------
        rows
            Addresses of the tile's rows.
        taps, num_taps
            Address of the taps' offsets, and how many there are: at least one.
        """
        code, shape = tile.code, tile.shape
        line_bytes = self.line_bytes(shape)
        step_bytes = tile.call.steps * self.step_bytes

        def add(
            elements: Callable[[CodeValue], list[Any]],
            index: CodeValue,
            line: CodeValue,
            sums: list[CodeValue],
        ) -> list[CodeValue]:
            """One line of weights times a step's elements of every row."""
            factors, result = self.weights(line, shape), []
            # Rows are addressed by one index: too few registers to move a pointer for each.
            places = [row + index for row in rows]
            for place, some in zip(places, tile.by_row(sums), strict=True):
                result += list(map(self.add, some, elements(place), factors))
            return result

        def several(_: CodeValue, carried: list[CodeValue]) -> list[CodeValue]:
            """Some steps; weights are used for all rows before the next ones are needed."""
            index, line, *sums = carried
            rows_elements = [self.several_spread(row + index, shape.widths[0]) for row in rows]
            for number in range(self.steps_at_once):
                for j, factor in enumerate(self.weights(line, shape)):
                    for row, elements in enumerate(rows_elements):
                        at = row * len(shape.widths) + j
                        sums[at] = self.add(sums[at], elements[number], factor)
                line = line + line_bytes
            return [index + self.steps_at_once * self.step_bytes, line, *sums]

        def steps(offset: CodeValue, line: CodeValue, sums: list[CodeValue]) -> list[CodeValue]:
            turn = partial(step, end=offset + step_bytes)
            if self.steps_at_once == 1:
                return loop_while(code, [offset, line, *sums], turn)
            begun = loop(code, tile.call.steps / self.steps_at_once, [offset, line, *sums], several)
            is_left = (tile.call.steps % self.steps_at_once).differs(0)
            return when(is_left, lambda: loop_while(code, begun, turn), lambda: begun)

        def step(carried: list[CodeValue], end: CodeValue) -> tuple[CodeValue, list[CodeValue]]:
            index, line, *sums = carried
            results = add(lambda place: self.elements(place, shape), index, line, sums)
            following = index + self.step_bytes
            return following < end, [following, line + line_bytes, *results]

        def tap(carried: list[CodeValue]) -> tuple[CodeValue, list[CodeValue]]:
            number, line, *sums = carried
            offset = taps.load(I64, number)
            index, line, *sums = steps(offset, line, sums)
            if self.has_rest:
                last = partial(_for_each_width, self.last_spread, shape=shape)
                sums = add(last, index, line, sums)
                line = line + line_bytes
            following = number + 1
            return following < num_taps, [following, line, *sums]

        return loop_while(code, [code.integer(0), line, *totals], tap)[2:]


def _for_each_width(
    spread: Callable[[CodeValue, int], Any], place: CodeValue, shape: Shape
) -> list[Any]:
    """Return the spread values in vectors of several widths, for each vector."""
    by_width = {lanes: spread(place, lanes) for lanes in dict.fromkeys(shape.widths)}
    return [by_width[lanes] for lanes in shape.widths]


class Finish(ABC):
    """Start and end of sums: their initial values, and their conversion to elements."""

    @property
    def begins_with_bias(self) -> bool:
        """Return whether sums begin with what a panel's head begins with, in every row."""
        return False

    @abstractmethod
    def head_bytes(self, shape: Shape) -> int:
        """Bytes of a panel in front of its lines."""

    def begin_rows(self, tile: Tile) -> None:
        """Fill the room of a tile's rows, which has no panel yet; with nothing if left out."""
        return

    @abstractmethod
    def first(self, tile: Tile) -> list[CodeValue]:
        """Return the start of sums: a vector for each of a row's vectors, row by row."""

    @abstractmethod
    def write(self, tile: Tile, totals: list[CodeValue]) -> None:
        """Convert the sums to elements and store them."""

    def definitions(self, isa: Isa) -> tuple[Definition, ...]:
        """Functions that are called besides."""
        return ()


def product_definitions(
    isa: Isa, record: type[ProductCall], shape: Shape, products: Products, finish: Finish
) -> str:
    """Write the functions that compute a tile, for `walk_tiles`.

    Parameters
    ----------
    record
        Of the kernel's calls.
    shape
        An accumulator for each row and vector, and the vectors of one step, must fit the
        registers.

    Returns
    -------
    str
        In LLVM's language.
    """

    def tile(
        code: Code,
        args: CodeValue,
        address: CodeValue,
        room: CodeValue,
        pixel: CodeValue,
        count: CodeValue,
        first: CodeValue,
        last: CodeValue,
    ) -> None:
        call = CallFields(record, args)
        sources = _sources(call, address, count, shape.rows)

        def compute(number: CodeValue, carried: list[CodeValue]) -> list[CodeValue]:
            panel = first + number
            tile_made = Tile(isa, code, call, shape, address, room, pixel, count, panel, sources)
            line = tile_made.weights + call.skipped_bytes + finish.head_bytes(shape)
            finish.write(tile_made, products.sums(tile_made, line, finish.first(tile_made)))
            return carried

        repeat(code, last - first, [], compute)

    def begin_rows(
        code: Code,
        args: CodeValue,
        address: CodeValue,
        room: CodeValue,
        pixel: CodeValue,
        count: CodeValue,
    ) -> None:
        call, panel = CallFields(record, args), code.integer(0)
        finish.begin_rows(Tile(isa, code, call, shape, address, room, pixel, count, panel, []))

    return defined(
        *finish.definitions(isa),
        Definition(_BEGIN, 5, begin_rows),
        Definition(_TILE, 7, tile),
    )


def _sources(call: CallFields, address: CodeValue, count: CodeValue, rows: int) -> list[CodeValue]:
    def table() -> list[CodeValue]:
        return [address.load(I64, row) for row in range(rows)]

    def line() -> list[CodeValue]:
        return rows_in_line(address, call.pixel_pitch, count, rows)

    return when(call.has_table.differs(0), table, line)


def rows_in_line(
    first: CodeValue, pitch: CodeValue, count: CodeValue, rows: int
) -> list[CodeValue]:
    """Addresses of rows at one distance from each other; those after the last repeat it."""
    if rows == 1:
        return [first]

    def whole() -> list[CodeValue]:
        return [first + pitch * row for row in range(1, rows)]

    def part() -> list[CodeValue]:
        places = [first]
        for row in range(1, rows):
            step = choose(first.like(row) < count, pitch, 0)
            places.append(places[-1] + step)
        return places[1:]

    return [first, *when(count >= rows, whole, part, likely=True)]
