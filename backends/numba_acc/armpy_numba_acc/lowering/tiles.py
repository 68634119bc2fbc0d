"""Kinds of products, and which tile each is computed by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from armpy.records import dataclass
from armpy_numba_acc.lowering.patches import Patches
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.program.choices import Choices


class Tile(NamedTuple):
    """What is computed at once.

    Parameters
    ----------
    rows, vectors : int
        Pixels, and registers of channels.
    has_table : bool
        Whether it goes on in the next row of the output where one ends: that needs a table
        of addresses, and leaves no registers idle.
    half_vectors : int
        Halves of registers of channels behind the whole ones.
    """

    rows: int
    vectors: int
    has_table: bool = False
    half_vectors: int = 0

    def __str__(self) -> str:
        half = f"+{self.half_vectors}/2" if self.half_vectors else ""
        return f"{self.rows}x{self.vectors}{half}{' with table' if self.has_table else ''}"

    def width(self, isa: Isa) -> int:
        """Channels."""
        return self.vectors * isa.lanes + self.half_vectors * (isa.lanes // 2)


Sizes: TypeAlias = dict[str, tuple[Tile, ...]]
"""Tiles by the name of an instruction set."""

Cost: TypeAlias = Callable[[Isa, Tile], tuple[float, float]]
"""Cycles of a step, and of what follows a panel's steps."""


@dataclass(frozen=True, eq=False, slots=True)
class ProductKind:
    """A kind of product, as lowerings know it.

    Parameters
    ----------
    name : str
        Of the kernel.
    group : int
        Elements of a row that a step multiplies.
    element_bytes : int
    sizes : Sizes
        The tiles that were fastest. Accumulators and the weights of a step must fit the registers.
    more_sizes : Sizes
        Those that a measurement can prefer: they suit small images, or other caches.
    cost : callable
        See `Cost`.
    cached_bytes : int
        Of weights that are used for all pixels before the next ones, as the model of the cost says.
    tile_name : str
        What tiles are chosen by; that of the kernel if left out.
    row_cost : float
        Cycles of a tile for each of its rows.
    is_line : bool
        Whether tiles always go on in the next row, so that the output is one long row.
    splits_odd : bool
        Whether what is left of a tap behind its steps is added by itself.
    """

    name: str
    group: int
    element_bytes: int
    sizes: Sizes
    more_sizes: Sizes
    cost: Cost
    cached_bytes: int = 256 << 10
    tile_name: str = ""
    row_cost: float = 0.0
    is_line: bool = False
    splits_odd: bool = False

    def steps(self, patches: Patches) -> int:
        """Of all taps, with what is left behind the last whole one of each."""
        return len(patches.taps) * -(-patches.depth // self.group)


def _of_integers(finish_of_vector: float) -> Cost:
    """Cost of dot products of integers.

    Notes
    -----
    A step multiplies once per accumulator, or loads an element per row and its weights: these
    come from the second level of the cache, at half a register per cycle. What follows the
    steps was measured: it is more where rows of the output are single registers.
    """

    def cost(isa: Isa, tile: Tile) -> tuple[float, float]:
        rows, vectors = tile.rows, tile.vectors
        step = max(rows * vectors, rows + vectors, 2 * vectors)
        return step, 8 + finish_of_vector * rows * vectors + rows * (2 if vectors == 1 else 0.8)

    return cost


_SPLIT_REGISTERS = ("znver4",)
"""Processors that compute a register of 64 bytes as two halves, in twice the time of one."""


def _of_f32(isa: Isa, tile: Tile) -> tuple[float, float]:
    """Cost of float32.

    Notes
    -----
    A step multiplies once per accumulator, broadcasts an element per row, or loads its
    weights, from the second level of the cache at half a register per cycle. What follows the
    steps overlaps with the next tile's, unless it is too long.
    """
    half_cost = 0.53 if isa.cpu in _SPLIT_REGISTERS else 1
    rows, vectors = tile.rows, tile.vectors + tile.half_vectors * half_cost
    step = max(rows * vectors, 0.55 * rows + vectors, 2 * vectors)
    return step, max(rows * vectors, 5 * rows * vectors - 34)


def _of_bf16(isa: Isa, tile: Tile) -> tuple[float, float]:
    """Cost of bfloat16; what follows the steps takes longer where a row has several vectors."""
    rows, vectors = tile.rows, tile.vectors
    step = max(rows * vectors, 2 * vectors)
    return step, rows * vectors * (2.6 if vectors == 1 else 3.2) + 5


def _sizes(**sizes: tuple[tuple[int, int], ...]) -> Sizes:
    """Rows and vectors by instruction set."""
    return {name: tuple(Tile(*size) for size in some) for name, some in sizes.items()}


_BYTES = _sizes(
    avx512vnni=((16, 1), (14, 2), (8, 2), (7, 3), (5, 4), (1, 4)),
    avx512=((20, 1), (8, 2), (4, 4), (1, 4)),
    avx2vnni=((12, 1), (6, 2), (3, 4), (1, 4)),
    avx2=((8, 1), (4, 2), (1, 4)),
    neon=((24, 1), (12, 2), (6, 4), (1, 4)),
    portable=((4, 2), (1, 4)),
)
_BYTES["avx512amx"] = _BYTES["amx-emulated"] = _BYTES["avx512vnni"]
_MORE_BYTES = _sizes(
    avx512vnni=((14, 1), (7, 1), (7, 2), (7, 4), (10, 2), (4, 4), (2, 4)),
    avx512=((10, 1), (7, 2), (4, 2), (2, 4)),
    avx2vnni=((7, 1), (4, 2), (2, 4)),
    avx2=((7, 1), (2, 2), (2, 4)),
    neon=((14, 1), (7, 2), (3, 4)),
    portable=((7, 1), (2, 2)),
)
_MORE_BYTES["avx512amx"] = _MORE_BYTES["amx-emulated"] = _MORE_BYTES["avx512vnni"]


def _of_registers(
    wide: Sequence[tuple[int, ...]],
    narrow: Sequence[tuple[int, ...]],
    short: Sequence[tuple[int, ...]],
) -> Sizes:
    """Rows, vectors and half vectors for registers of 64, 32 and 16 bytes."""
    by_name = {"avx512vnni": wide, "avx512": wide, "avx2vnni": narrow, "avx2": narrow}
    by_name |= {"avx512amx": wide, "amx-emulated": wide, "neon": short, "portable": short}
    return {
        name: tuple(Tile(rows, vectors, half_vectors=half) for rows, vectors, half in some)
        for name, some in by_name.items()
    }


F32 = ProductKind(
    "convolution_f32",
    group=1,
    element_bytes=4,
    # 7 by 4 of 64 bytes spill. The fewest accumulators that keep the processor busy are best, as
    # it begins with the next tile while it stores one. NEON could have twice as many.
    sizes=_of_registers(
        ((7, 1, 0), (9, 1, 0), (7, 2, 1), (9, 0, 3), (10, 0, 1), (1, 8, 0)),
        ((6, 2, 0), (12, 1, 0), (4, 3, 0), (1, 8, 0)),
        ((4, 2, 0), (8, 1, 0), (1, 4, 0)),
    ),
    more_sizes=_of_registers(
        ((14, 2, 0), (14, 1, 0), (7, 2, 0), (9, 2, 0), (7, 3, 0), (6, 4, 0), (3, 3, 0), (2, 8, 0)),
        ((7, 1, 0), (4, 2, 0), (5, 2, 0), (2, 4, 0)),
        ((7, 1, 0), (3, 2, 0), (2, 4, 0)),
    ),
    cost=_of_f32,
    cached_bytes=512 << 10,
    row_cost=5.0,
    is_line=True,
)
"""Products of float32."""

_PAIRS = ((14, 1), (14, 2), (7, 3), (6, 4), (5, 5), (1, 8))
_MORE_PAIRS = ((13, 2), (7, 1), (7, 2), (10, 2), (4, 4), (2, 8))
_WITH_PAIRS = ("avx512vnni", "avx512amx", "amx-emulated")

BF16 = ProductKind(
    "convolution_bf16",
    group=2,
    element_bytes=2,
    sizes=_sizes(**dict.fromkeys(_WITH_PAIRS, _PAIRS)),
    more_sizes=_sizes(**dict.fromkeys(_WITH_PAIRS, _MORE_PAIRS)),
    cost=_of_bf16,
    cached_bytes=512 << 10,
    splits_odd=True,
)
"""Products of bfloat16, two at a time."""

U8 = ProductKind("convolution_u8", 4, 1, _BYTES, _MORE_BYTES, _of_integers(1.5))
"""Products of bytes, four at a time."""

U8_MATRIX = ProductKind("convolution_u8_matrix", 4, 1, {}, {}, _of_integers(1.5))
"""The same by a matrix unit."""

DYNAMIC = ProductKind(
    "convolution_dynamic",
    4,
    1,
    _BYTES,
    _MORE_BYTES,
    _of_integers(1.5),
    tile_name="convolution_u8",
    is_line=True,
)
"""Products of bytes that become floats."""

DYNAMIC_MATRIX = ProductKind("convolution_dynamic_matrix", 4, 1, {}, {}, _of_integers(1.5))
"""The same by a matrix unit."""

I16 = ProductKind("convolution_i16", 2, 2, _BYTES, _MORE_BYTES, _of_integers(10.0))
"""Products of 16-bit elements, two at a time. Accumulators are as many as for bytes; what follows
the steps takes 64 bits, and longer."""


def tile_of(choices: Choices, kind: ProductKind, patches: Patches, columns: int) -> Tile:
    """The tile that computes a product fastest.

    Parameters
    ----------
    choices : Choices
    kind : ProductKind
    patches : Patches
        What is multiplied.
    columns : int
        Channels of the output.
    """
    isa, steps = choices.isa, kind.steps(patches)
    num_pixels, _, width, *_ = patches.layout
    lines = num_pixels // width
    key: tuple[int, ...] = (lines, width, columns, steps)
    if kind.is_line:
        lines, width = 1, num_pixels
        key = (num_pixels, columns, steps) if kind is F32 else (lines, width, columns, steps)
    tile = choices.choose(
        f"{kind.tile_name or kind.name} tile",
        key,
        _with_tables(kind.sizes[isa.name], lines),
        lambda tile: _cycles(kind, isa, tile, (lines, width, columns, steps)),
        _with_tables(kind.more_sizes[isa.name], lines),
    )
    return tile._replace(has_table=patches.layout[1] > 1) if kind.is_line else tile


def _with_tables(sizes: Sequence[Tile], lines: int) -> list[Tile]:
    """Tiles of some sizes, with a table and without one where that makes a difference."""
    return [
        size._replace(has_table=has_table)
        for size in sizes
        for has_table in (False, True)
        if not has_table or lines > 1
    ]


def _cycles(kind: ProductKind, isa: Isa, tile: Tile, shape: tuple[int, int, int, int]) -> float:
    """About how long a product takes with a tile; what a table costs was measured."""
    (lines, width, columns, steps), rows = shape, tile.rows
    step, finish = kind.cost(isa, tile)
    panels = -(-columns // tile.width(isa))
    if tile.has_table:
        return -(-lines * width // rows) * (panels * (steps * step + finish + rows) + 3 * rows)
    return lines * -(-width // rows) * (panels * (steps * step + finish) + kind.row_cost * rows)


def rows_of_channels(isa: Isa, width: int) -> int:
    """How many pixels of a depthwise layer of 16-bit elements are computed at once.

    Parameters
    ----------
    width : int
        Pixels of a row of the output.
    """
    sizes = (8, 7, 6, 5, 4, 3, 2, 1) if isa.num_registers > 16 else (6, 5, 4, 3, 2, 1)
    return min(sizes, key=lambda rows: -(-width // rows) * (rows + 2))


_CACHED_BYTES = (128 << 10, 256 << 10, 512 << 10, 1 << 20)
"""Amounts of weights that may be used for all pixels before the next ones are."""


def panels_at_once(
    choices: Choices, kind: ProductKind, shape: Sequence[int], panel_bytes: int
) -> int:
    """How many panels of weights are used for all pixels before the next ones.

    Parameters
    ----------
    choices : Choices
    kind : ProductKind
    shape : sequence of int
        Pixels, panels and steps.
    panel_bytes : int
    """
    num_panels = shape[1]
    modelled = min(max(kind.cached_bytes // panel_bytes, 1), num_panels)
    sizes = [min(max(size // panel_bytes, 1), num_panels) for size in _CACHED_BYTES]
    options = [(size,) for size in dict.fromkeys((modelled, *sizes, num_panels))]
    (chosen,) = choices.choose(
        f"{kind.name} panels at once", shape, options, lambda option: option != (modelled,)
    )
    return chosen
