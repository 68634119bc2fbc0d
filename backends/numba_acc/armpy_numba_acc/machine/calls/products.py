"""Calls of kernels that multiply patches of elements with constant weights, and add up."""

from __future__ import annotations

from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.call import Call, Pointer
from armpy_numba_acc.machine.work import WorkKind


@dataclass(frozen=True, slots=True)
class ProductCall(Call):
    """Arguments at the head of every product: convolutions and matrix products, tile by tile."""

    parameters: ClassVar[tuple[str, ...]] = ("tile_rows", "tile_vectors")
    named_by: ClassVar[str] = "kernel_name"

    # A matrix unit and vector instructions, for example, have kernels with the same record.
    kernel_name: str
    source: Pointer  # elements that are multiplied, and those that are computed
    target: Pointer
    # Panels of `panel_bytes`: what belongs to a panel's columns, then a line for each step of each
    # tap.
    weights: Pointer
    # Byte offsets that are added to a pixel's address in the source one after the other.
    taps: Pointer
    num_taps: int  # of these, and how many groups of elements are taken from each
    steps: int
    columns: int  # of the target
    num_pixels: int  # of the target: of all images, and of each
    out_height: int
    out_width: int
    image_pitch: int  # bytes of the source from one image, row and pixel of the target to the next
    row_pitch: int
    pixel_pitch: int
    out_pitch: int  # bytes of the target from one pixel to the next
    panel_bytes: int
    skipped_bytes: int  # of a panel's lines, in front of those of the first tap
    panels_at_once: int  # panels that are used for all pixels before the next ones
    rows: int  # pixels and columns of a tile
    width: int
    has_table: int  # whether tiles go on in the next row of the target where one ends
    # Where a matrix unit computes the product: its configuration, and a `MatrixWalk`; else 0.
    walk: Pointer
    scratch: Pointer  # working memory to gather rows; 0 where they are read in place
    tile_rows: int  # pixels and registers of columns of a tile, which the kernel is made for
    tile_vectors: int


@dataclass(frozen=True, slots=True)
class MatrixWalk(Call):
    """Walk of a matrix unit over a product, as its numbers in memory: no call of its own."""

    first_rows: int  # of a tile's rows that are in the first of two tiles of the unit
    # Taps of `blocks` each, of so many bytes of each row: those that are gathered are one.
    num_taps: int
    blocks: int
    block_bytes: int
    # From the first pixel to the last one, with what lies between rows of the output.
    positions: int
    # From one image and row of the output to the next; 0 if there is nothing in between.
    image_positions: int
    line_positions: int
    tap_bytes: int  # bytes of a tap, and from one to the next where they are gathered
    tap_pitch: int
    # Bytes from one gathered row to the next, and of all that a thread gathers at once.
    gathered_pitch: int
    gathered_bytes: int


@dataclass(frozen=True, slots=True)
class ConvolutionF32(ProductCall):
    """Products of float32 that become floats: ``clamp(bias + sum + residual, low, high)``."""

    parameters: ClassVar[tuple[str, ...]] = (
        "tile_rows",
        "tile_vectors",
        "half_vectors",
        "has_residual",
    )

    low: float
    high: float
    residual: Pointer  # the addend, if any, and bytes from one pixel to the next
    residual_pitch: int
    half_vectors: int  # halves of registers of columns after the whole ones
    has_residual: int


@dataclass(frozen=True, slots=True)
class ConvolutionBf16(ProductCall):
    """Products of bfloat16, two at a time, added up in float32."""

    parameters: ClassVar[tuple[str, ...]] = (
        "tile_rows",
        "tile_vectors",
        "is_odd",
        "residual_format",
        "output_format",
    )
    work = WorkKind.PAIRS

    low: float  # as of `ConvolutionF32`
    high: float
    residual: Pointer
    residual_pitch: int
    is_odd: int  # whether each tap has one more element after its pairs
    residual_format: str  # how elements are stored; empty where there is no residual
    output_format: str


@dataclass(frozen=True, slots=True)
class ConvolutionBf16Matrix(ProductCall):
    """The same by a matrix unit; parameters as of `ConvolutionBf16`."""

    parameters: ClassVar[tuple[str, ...]] = (
        "tile_rows",
        "tile_vectors",
        "residual_format",
        "output_format",
    )
    work = WorkKind.PAIRS

    low: float
    high: float
    residual: Pointer
    residual_pitch: int
    residual_format: str
    output_format: str


@dataclass(frozen=True, slots=True)
class ConvolutionBf16Pairs(ProductCall):
    """The same of two rows with two columns, four at a time: rows are even in number."""

    parameters: ClassVar[tuple[str, ...]] = (
        "tile_rows",
        "tile_vectors",
        "rest",
        "residual_format",
        "output_format",
    )
    work = WorkKind.PAIRS

    low: float  # as of `ConvolutionF32`
    high: float
    residual: Pointer
    residual_pitch: int
    rest: int  # how many elements each tap has after its steps
    residual_format: str  # as of `ConvolutionBf16`
    output_format: str


@dataclass(frozen=True, slots=True)
class ConvolutionDynamic(ProductCall):
    """Products of bytes that become floats by the ranges that their rows happened to have."""

    work = WorkKind.BYTES

    ranges: Pointer  # 8 bytes for `pixels_per_range` pixels each, as `QuantizeRows` writes them
    pixels_per_range: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ConvolutionI16(ProductCall):
    """Products of 16-bit elements, added up exactly and rescaled."""

    parameters: ClassVar[tuple[str, ...]] = (
        "tile_rows",
        "tile_vectors",
        "has_pieces",
        "is_depthwise",
        "output_format",
        "rounding",
    )
    work = WorkKind.PAIRS

    heads: Pointer  # how sums are rescaled, and bytes from one panel's to the next
    head_bytes: int
    taps_at_once: int  # how many taps are added up in 32 bits
    zero_point: int  # of the target; bounds count from the zero point
    low: int
    high: int
    # Whether sums of all taps may not fit 32 bits; whether each column is that of one channel, and
    # sees no other.
    has_pieces: int
    is_depthwise: int
    output_format: str
    rounding: str  # see `armpy_numba_acc.tiles.finish.rescaling.Rescaling`


@dataclass(frozen=True, slots=True)
class ConvolutionU8(ProductCall):
    """Products of bytes, added up exactly and scaled to bytes."""

    parameters: ClassVar[tuple[str, ...]] = (
        "tile_rows",
        "tile_vectors",
        "has_corrections",
        "has_negatives",
        "has_bounds",
        "has_large_scales",
        "is_imprecise",
        "has_residual",
    )
    work = WorkKind.BYTES

    depth: int  # elements of each tap
    # The factor of the sum of all elements of a row, which is added to the row's sums.
    correction: int
    zero_point: int  # of the output
    low: int
    high: int
    # Elements that are added, laid out as the target, and how: see
    # `armpy_numba_acc.tiles.finish.residual.ResidualSum`.
    residual: Pointer
    sum: Pointer
    has_corrections: int  # see `armpy_numba_acc.tiles.finish.byte_finish.ByteFinish`
    has_negatives: int
    has_bounds: int
    has_large_scales: int
    is_imprecise: int
    has_residual: int  # whether there is a residual


@dataclass(frozen=True, slots=True)
class ConvolutionSums(ProductCall):
    """Products of bytes, added up exactly in int32."""

    parameters: ClassVar[tuple[str, ...]] = ("tile_rows", "tile_vectors", "has_corrections")
    work = WorkKind.BYTES

    depth: int  # as of `ConvolutionU8`
    correction: int
    has_corrections: int


@dataclass(frozen=True, slots=True)
class QuantizeRows(Call):
    """Quantise rows of floats by the range that each happens to have."""

    parameters: ClassVar[tuple[str, ...]] = ("written", "is_asymmetric")

    source: Pointer
    target: Pointer
    # 8 bytes per row: the float32 scale and, for bytes, an int32 that the weights' sum is to be
    # multiplied with before products of the bytes are added.
    ranges: Pointer
    rows: int
    length: int
    # Bytes, which are 128 more than the signed integers; or the floats that these stand for.
    written: str
    is_asymmetric: int  # whether there is a zero point


@dataclass(frozen=True, slots=True)
class ProductI16(Call):
    """Products of two matrices of 16-bit elements, added up in 64 bits."""

    x: Pointer  # row by row
    y: Pointer
    target: Pointer
    rows: int
    depth: int
    columns: int
    scratch: Pointer  # for 8 bytes of every column, and how many bytes each thread has
    scratch_bytes: int
    factor: int  # a sum becomes ``(sum * factor + addend) >> shift``
    addend: int
    shift: int


@dataclass(frozen=True, slots=True)
class ProductsF32(Call):
    """Products of pairs of float32 matrices, which lie row by row."""

    x: Pointer
    y: Pointer
    target: Pointer
    pairs: int
    x_pitch: int  # bytes from one matrix to the next; 0 for one that all pairs have
    y_pitch: int
    rows: int
    depth: int
    columns: int
    scratch: Pointer  # for a vector for each line of y, and how many bytes each thread has
    scratch_bytes: int
