"""Kinds of products, and which tile each is computed by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple, TypeAlias

from armpy.core.dataclass import dataclass
from armpy.core.symbolic import computed, current, is_traced
from armpy_numba_acc.lowering.patches import Patches
from armpy_numba_acc.machine.cost_model.model import MachineModel
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.program.choices import Choices


class Tile(NamedTuple):
    """Tile of a product: the part that is computed at once."""

    rows: int  # pixels, and registers of channels
    vectors: int
    # Whether it goes on in the next row of the output where one ends: that needs a table of
    # addresses, and leaves no registers idle.
    has_table: bool = False
    half_vectors: int = 0  # halves of registers of channels after the whole ones

    def __str__(self) -> str:
        half = f"+{self.half_vectors}/2" if self.half_vectors else ""
        return f"{self.rows}x{self.vectors}{half}{' with table' if self.has_table else ''}"

    def width(self, isa: Isa) -> int:
        """Channels."""
        return self.vectors * isa.lanes + self.half_vectors * (isa.lanes // 2)


Tiles: TypeAlias = Callable[[Isa], Sequence[Tile]]
"""Tiles that the registers of an instruction set hold, without tables."""

Cost: TypeAlias = Callable[[MachineModel, Isa, Tile], tuple[float, float]]
"""Nanoseconds of a step, and of what follows a panel's steps."""


@dataclass(frozen=True, eq=False, slots=True)
class ProductKind:
    """A kind of product, as lowerings know it."""

    name: str  # of the kernel
    group: int  # elements of a row that a step multiplies
    element_bytes: int
    finish: str  # the machine model's name of the work after the steps
    tiles: Tiles  # see `Tiles`
    cost: Cost  # see `Cost`
    # Share of the second level of the cache for weights that are used for all pixels before the
    # next ones; an estimate.
    cached_share: float = 0.25
    tile_name: str = ""  # what tiles are chosen by; that of the kernel if left out
    # Whether tiles always go on in the next row, so that the output is one long row.
    is_line: bool = False
    splits_odd: bool = False  # whether the rest of a tap after its steps is added by itself

    def steps(self, patches: Patches) -> int:
        """Steps of all taps, with the rest after the last whole one of each."""
        return len(patches.taps) * -(-patches.depth // self.group)


# Which tiles there are

_ROWS = (7, 14, 9, 12, 6, 4)
"""Pixels of tiles. Images are multiples of seven or eight wide, more often than not."""

_LEAST_SHARE = 0.5
"""Of the pixels that fit: with fewer, registers that keep the processor busy are left empty."""


def tiles_that_fit(
    isa: Isa, rows: Sequence[int] = _ROWS, widest: int = 8, weights: int = 1, others: int = 1
) -> list[Tile]:
    """Tiles whose sums and operands fit the registers, without tables.

    Parameters
    ----------
    rows
        Pixels that tiles may have; of tiles that cost the same, the first ones are chosen.
    widest
        Registers of channels of tiles for one pixel or two; others have four at most.
    weights
        Registers of weights for each one of channels, but for tiles of one pixel, which use each
        once.
    others
        Registers for elements and intermediate values.
    """

    def most_rows(vectors: int) -> int:
        return (isa.num_registers - others - weights * vectors) // vectors

    fitting_tiles = []
    for vectors in range(1, 5):
        fitting = [number for number in rows if number <= most_rows(vectors)]
        least = _LEAST_SHARE * max(fitting, default=0)
        fitting_tiles += [Tile(number, vectors) for number in fitting if number >= least]
    few = [Tile(2, widest if most_rows(widest) >= 2 else widest // 2), Tile(1, widest)]
    return list(dict.fromkeys((*fitting_tiles, *few)))


def _f32_tiles(isa: Isa) -> list[Tile]:
    """Tiles of float32; some of them with halves of registers, for few channels."""
    tiles = tiles_that_fit(isa)
    if isa.num_registers > 16:
        tiles += [Tile(rows, whole, half_vectors=half) for rows, whole, half in _HALVES]
    return tiles


_HALVES = ((7, 2, 1), (9, 0, 3), (10, 0, 1))
"""Pixels, registers of channels, and halves of them."""


# What they cost


def _of_registers(kind: str) -> Cost:
    """Cost of products whose sums are in registers.

    A step multiplies once per register of sums, or broadcasts an element per pixel and loads its
    weights. It is never shorter than the time after which the same sums can be added to again.

    Parameters
    ----------
    kind
        As `MachineModel.products` and `MachineModel.finish` take it.
    """

    def cost(model: MachineModel, isa: Isa, tile: Tile) -> tuple[float, float]:
        pace, width = model.products(kind, isa), model.width(isa.vector_bytes)
        half_ns = model.products(kind, isa, isa.vector_bytes // 2).step_ns
        vectors = tile.vectors + tile.half_vectors * half_ns / pace.step_ns
        lines = 2 if kind == "u8" and not isa.dot else 1
        finish = model.finish(kind)
        step_ns = max(
            tile.rows * vectors * pace.step_ns + finish.turn_ns,
            tile.rows * width.broadcast_ns + lines * vectors * width.load_ns,
            pace.latency_ns,
        )
        return step_ns, finish.after_steps_ns(tile.rows, vectors)

    return cost


def _byte_tiles(isa: Isa) -> list[Tile]:
    """Tiles of integers; products of 16 bits take two registers for what bytes take one for."""
    rows = (14, 7, 16, 8, 5) if isa.num_registers > 16 else (6, 12, 4, 8, 3)
    if isa.dot == "sdot":  # a register holds four steps' elements of a row
        tiles = tiles_that_fit(isa, (*rows, 4, 6), widest=4)
        return [t for t in tiles if t.rows * (t.vectors + 1) + 3 <= isa.num_registers]
    others = {} if isa.dot else {"weights": 2, "others": 3}
    # Wide tiles ask the fewest times where their pixels are.
    return sorted(tiles_that_fit(isa, rows, widest=4, **others), key=lambda tile: -tile.vectors)


F32 = ProductKind(
    "convolution_f32",
    group=1,
    element_bytes=4,
    finish="f32",
    tiles=_f32_tiles,
    cost=_of_registers("f32"),
    cached_share=0.5,
    is_line=True,
)
"""Products of float32."""

BF16 = ProductKind(
    "convolution_bf16",
    group=2,
    element_bytes=2,
    finish="bf16",
    tiles=tiles_that_fit,
    cost=_of_registers("bf16"),
    cached_share=0.5,
    splits_odd=True,
)
"""Products of bfloat16, two at a time."""

BF16_MATRIX = replace(BF16, name="convolution_bf16_matrix")
"""The same by a matrix unit."""

U8 = ProductKind(
    "convolution_u8",
    group=4,
    element_bytes=1,
    finish="u8",
    tiles=_byte_tiles,
    cost=_of_registers("u8"),
)
"""Products of bytes, four at a time."""


def _paired_tiles(isa: Isa) -> list[Tile]:
    """Tiles of two rows at a time: elements take half a register for each."""
    sizes = ((6, 4), (4, 4), (8, 3), (6, 3), (10, 2), (8, 2), (16, 1), (8, 1), (2, 4))
    registers = isa.num_registers
    return [Tile(*size) for size in sizes if size[0] * size[1] + size[0] // 2 + 2 <= registers]


def _of_pairs(instruction: str, kind: str) -> Cost:
    """Cost of products of two rows and two columns: elements of each two rows are joined first."""

    def cost(model: MachineModel, isa: Isa, tile: Tile) -> tuple[float, float]:
        # An instruction without a measurement is taken for as slow as a dot product.
        is_known, width = model.has(instruction), model.width(isa.vector_bytes)
        pace = model.pace(instruction, isa.vector_bytes)
        pace, finish = pace if is_known else model.products(kind, isa), model.finish(kind)
        step_ns = max(
            (tile.rows * tile.vectors + tile.rows / 2) * pace.step_ns + finish.turn_ns,
            (tile.rows + 2 * tile.vectors) * width.load_ns,
            pace.latency_ns,
        )
        return step_ns, finish.after_steps_ns(tile.rows, tile.vectors)

    return cost


U8_PAIRED = replace(
    U8, name="convolution_u8_paired", group=8, tiles=_paired_tiles, cost=_of_pairs("usmmla", "u8")
)
"""Products of bytes of two rows with two columns, eight at a time."""

BF16_PAIRED = replace(
    BF16,
    name="convolution_bf16_paired",
    group=4,
    tiles=_paired_tiles,
    cost=_of_pairs("bfmmla", "bf16"),
)
"""Products of bfloat16 of two rows with two columns, four at a time."""

U8_SORTED = replace(U8, name="convolution_u8_sorted")
"""Products of bytes, those of small weights added up in 16 bits."""

U8_MATRIX = replace(U8, name="convolution_u8_matrix")
"""The same by a matrix unit."""

SUMS = replace(U8, name="convolution_sums", tile_name="convolution_u8", is_line=True)
"""Products of bytes whose sums are the output."""

SUMS_MATRIX = replace(U8, name="convolution_sums_matrix")
"""The same by a matrix unit."""

DYNAMIC = replace(U8, name="convolution_dynamic", tile_name="convolution_u8", is_line=True)
"""Products of bytes that become floats."""

DYNAMIC_MATRIX = replace(U8, name="convolution_dynamic_matrix")
"""The same by a matrix unit."""

I16 = replace(
    U8,
    name="convolution_i16",
    group=2,
    element_bytes=2,
    finish="i16",
    cost=_of_registers("i16"),
)
"""Products of 16-bit elements, two at a time; what follows the steps takes 64 bits, and longer."""

I16_NARROW = replace(
    I16,
    tiles=lambda isa: [tile for tile in _byte_tiles(isa) if tile.vectors == 1],
    tile_name="convolution_i16 narrow",
)
"""The same in panels as wide as a register."""


_MOST_WORSE = 1.6
"""How many times as long a tile may seem to take for a measurement to try it."""

_AS_GOOD = 1.008
"""How many times as long as the best one a tile may seem to take to be as good: of these the first
is chosen, whatever the noise in a machine's figures."""

_MOST_TRIED = 12
"""Tiles that a measurement tries: a kernel is compiled for each."""


def tile_of(choices: Choices, kind: ProductKind, patches: Patches, columns: int) -> Tile:
    """The tile that computes a product fastest.

    Parameters
    ----------
    patches
        The operands.
    columns
        Channels of the output.
    """
    steps, (num_pixels, _, width, *_) = kind.steps(patches), patches.layout
    if is_traced(num_pixels, width, columns, steps):
        tile = _modelled_tile(choices, kind, patches, columns)
        return tile._replace(has_table=patches.layout[1] > 1) if kind.is_line else tile
    costs = _costs(choices, kind, patches, columns)
    key: tuple[int, ...] = (num_pixels // width, width, columns, steps)
    if kind.is_line:
        key = (num_pixels, columns, steps) if kind is F32 else (1, num_pixels, columns, steps)
    if _is_crowded(patches):
        key = (*key, 1)
    best = sorted(costs, key=costs.__getitem__)[:_MOST_TRIED]
    least_ns = costs[best[0]]
    tile = choices.choose(
        f"{kind.tile_name or kind.name} tile",
        key,
        [tile for tile in costs if tile in best and costs[tile] <= _MOST_WORSE * least_ns],
        lambda tile: max(costs[tile], _AS_GOOD * least_ns),
    )
    return tile._replace(has_table=patches.layout[1] > 1) if kind.is_line else tile


def fastest_ns(choices: Choices, kind: ProductKind, patches: Patches, columns: int) -> float:
    """About how long a product takes one thread by the best tile; parameters as for `tile_of`."""
    return min(_costs(choices, kind, patches, columns).values())


_SET_BYTES = 4096
"""Addresses that differ by a multiple of it share a place in the first level of the cache, which
has as many lines there as its size has such parts: it is looked up by the part of an address that
pages leave as it is."""


def _is_crowded(patches: Patches) -> bool:
    """Return whether all rows of a tile share a place in the first level of the cache."""
    pitch = patches.pixel_pitch
    return not is_traced(pitch) and pitch % _SET_BYTES == 0


def _shape_of(kind: ProductKind, patches: Patches, columns: int) -> tuple[int, int, int, int, bool]:
    """Return the argument of `product_ns`."""
    num_pixels, _, width, *_ = patches.layout
    lines, width = (1, num_pixels) if kind.is_line else (num_pixels // width, width)
    return lines, width, columns, kind.steps(patches), _is_crowded(patches)


def _costs(
    choices: Choices, kind: ProductKind, patches: Patches, columns: int
) -> dict[Tile, float]:
    """Return how long every tile takes."""
    shape = _shape_of(kind, patches, columns)
    known = choices.costs.get((kind, shape))
    if known is None:
        tiles = _with_tables(kind.tiles(choices.isa), shape[0])
        known = {tile: product_ns(choices, kind, tile, shape) for tile in tiles}
        choices.costs[kind, shape] = known
    return known


def _modelled_tile(choices: Choices, kind: ProductKind, patches: Patches, columns: int) -> Tile:
    """Return the answer of `tile_of` without measurements, for sizes that are traced.

    It is the best one in the mean of sizes like these. Where a product had to be computed by nearly
    the best tile, a network of many layers would have another program for each small size.
    """
    lines, width, columns, steps, is_crowded = _shape_of(kind, patches, columns)
    has_lines, is_narrow = lines > 1, _is_narrow(choices, kind, (lines, width, columns, steps))
    sizes = [tile for tile in kind.tiles(choices.isa) if not is_narrow or _as_vectors(tile)]
    tiles = _with_tables(sizes, 2 if has_lines else 1)
    figures = [figures_of(choices, kind, tile) for tile in tiles]
    some_columns = (current(columns), *(_SOME_COLUMNS if is_traced(columns) else ()))
    losses = [0.0] * len(tiles)
    some_rows = range(2, _FEW_ROWS + 1) if is_narrow else _rows_like(width)
    for rows, number in product(some_rows, some_columns):
        shape = current(lines), rows, number, current(steps), is_crowded
        costs = [f.product_ns(*shape) for f in figures]
        least_ns = min(costs)
        losses = [loss + ns / least_ns for loss, ns in zip(losses, costs, strict=True)]
    most = _AS_GOOD * min(losses)
    return next(tile for tile, loss in zip(tiles, losses, strict=True) if loss <= most)


_FEW_ROWS = 16
"""Rows of which a product with many weights takes about as long by any tile."""

_SOME_COLUMNS = (8, 24, 64, 160)
"""Numbers of columns that a tile has to be good for where their number is traced."""

_LEAST_ROWS = (_FEW_ROWS + 1, 5, 2)
"""Numbers of rows from which on programs for traced sizes have another tile."""


def _rows_like(rows: int) -> list[int]:
    """Numbers of rows that have the same tile as one, which is the last of them."""
    end = 4 * _FEW_ROWS
    for least in _LEAST_ROWS if is_traced(rows) else ():
        if rows >= least:  # a condition of the program
            return [*range(least, end, 1 + least // 4), current(rows)]
        end = least
    return [current(rows)]


def figures_of(choices: Choices, kind: ProductKind, tile: Tile) -> TileFigures:
    """The figures of a tile, which stay the same as long as choices do."""
    known: dict[Any, Any] = choices.costs.setdefault(kind, {})  # Any: of two kinds
    if tile not in known:
        known[tile] = TileFigures.of(choices, kind, tile)
    figures: TileFigures = known[tile]
    return figures


def _is_narrow(choices: Choices, kind: ProductKind, shape: tuple[int, int, int, int]) -> bool:
    """Return whether weights are packed as for a single row, as other programs pack them.

    They do in panels as wide as a register. Products that read far away for few rows are made by
    such tiles as fast as by others.
    """
    lines, width, columns, steps = shape
    if kind is not F32 or lines != 1 or is_traced(columns, steps):
        return False
    if 4 * columns * steps <= choices.model.levels[1].size_bytes:
        return False
    return width <= _FEW_ROWS


def _as_vectors(tile: Tile) -> bool:
    """Return whether a tile is as wide as a register."""
    return tile.vectors == 1 and not tile.half_vectors


_SHARE_BESIDE_PRODUCTS = 0.5
"""Of the speed at which the second level is read, for weights that the first one cannot hold."""


class TileFigures(NamedTuple):
    """Figures of a tile, by which products are reckoned."""

    rows: int
    width: int
    step_ns: float
    finish_ns: float
    line_ns: float
    cycle_ns: float
    has_table: bool
    near_bytes: int  # weights that the first level holds
    far_ns: float  # of a step, at least, with more weights
    crowded_ns: float  # more of a step whose rows share a place in the first level

    @classmethod
    def of(cls, choices: Choices, kind: ProductKind, tile: Tile) -> TileFigures:
        """The figures of a tile by the cost model."""
        isa, model = choices.isa, choices.model
        step_ns, finish_ns = kind.cost(model, isa, tile)
        line_ns = model.finish(kind.finish).line_ns * tile.rows
        cycle_ns, has_table = model.cycle_ns, tile.has_table
        near, far = model.levels[:2]
        width = tile.width(isa)
        far_ns = 4 * width / (_SHARE_BESIDE_PRODUCTS * far.bytes_per_ns)
        crowding = max(tile.rows - near.size_bytes // _SET_BYTES, 0)  # rows without a line
        return cls(
            rows=tile.rows,
            width=width,
            step_ns=step_ns,
            finish_ns=finish_ns,
            line_ns=line_ns,
            cycle_ns=cycle_ns,
            has_table=has_table,
            near_bytes=near.size_bytes,
            far_ns=far_ns,
            crowded_ns=cycle_ns * crowding,  # about a cycle for each row, on Zen 4
        )

    def product_ns(
        self, lines: int, width: int, columns: int, steps: int, is_crowded: int = False
    ) -> float:
        """About how long a product takes; parameters as for `product_ns`."""
        rows, width_of_panel, step_ns, finish_ns, line_ns, cycle_ns, has_table, *_ = self
        if 4 * columns * steps > self.near_bytes:
            step_ns = max(step_ns, self.far_ns)
        if is_crowded:
            step_ns += self.crowded_ns
        panels, panel_ns = -(-columns // width_of_panel), steps * step_ns + finish_ns
        if not has_table:
            return lines * -(-width // rows) * (panels * panel_ns + line_ns)
        panel_ns += rows * cycle_ns
        return -(-lines * width // rows) * (panels * panel_ns + 3 * rows * cycle_ns)


def _with_tables(sizes: Sequence[Tile], lines: int) -> list[Tile]:
    """Tiles of some sizes, with a table and without one where that makes a difference."""
    return [
        size._replace(has_table=has_table)
        for size in sizes
        for has_table in (False, True)
        if not has_table or lines > 1
    ]


def product_ns(choices: Choices, kind: ProductKind, tile: Tile, shape: tuple[int, ...]) -> float:
    """About how long a product takes one thread.

    What a table costs was measured: a cycle for each pixel and panel, three more for each
    pixel.

    Parameters
    ----------
    shape
        Rows of the output, pixels of each, channels, and steps; whether all rows of a tile share a
        place in the first level of the cache.
    """
    return figures_of(choices, kind, tile).product_ns(*shape)


def rows_of_channels(isa: Isa, width: int) -> int:
    """Return how many pixels of a depthwise layer of 16-bit elements are computed at once.

    Parameters
    ----------
    width
        Pixels of a row of the output.
    """
    sizes = (8, 7, 6, 5, 4, 3, 2, 1) if isa.num_registers > 16 else (6, 5, 4, 3, 2, 1)
    return min(sizes, key=lambda rows: -(-width // rows) * (rows + 2))


_CACHED_SHARES = (0.125, 0.25, 0.5, 1.0)
"""Of the second level of the cache, for weights that may be used for all pixels at once."""


def panels_at_once(
    choices: Choices, kind: ProductKind, shape: Sequence[int], panel_bytes: int
) -> int:
    """Return how many panels of weights are used for all pixels before the next ones.

    Parameters
    ----------
    shape
        Pixels, panels and steps.
    """
    num_panels = shape[1]
    if is_traced(*shape, panel_bytes):  # nothing is measured
        share = int(kind.cached_share * choices.model.levels[1].size_bytes)
        return computed(_panels_in, share, panel_bytes, num_panels)
    cache_bytes = choices.model.levels[1].size_bytes
    shares = [int(share * cache_bytes) for share in (kind.cached_share, *_CACHED_SHARES)]
    modelled, *sizes = (_panels_in(share, panel_bytes, num_panels) for share in shares)
    options = [(size,) for size in dict.fromkeys((modelled, *sizes, num_panels))]
    (chosen,) = choices.choose(
        f"{kind.name} panels at once", shape, options, lambda option: option != (modelled,)
    )
    return chosen


def _panels_in(share_bytes: int, panel_bytes: int, num_panels: int) -> int:
    """Return how many panels fit a share of a cache."""
    return min(max(share_bytes // panel_bytes, 1), num_panels)
