"""Calls of kernels that multiply patches of elements with constant weights, and add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from armpy_numba_acc.machine.call import Call, Pointer
from armpy_numba_acc.machine.work import WorkKind


@dataclass(frozen=True, slots=True)
class ProductCall(Call):
    """Arguments at the head of every product: convolutions and matrix products, tile by tile.

    Parameters
    ----------
    kernel_name : str
        A matrix unit and vector instructions, for example, have kernels with the same record.
    source, target : Pointer
        Elements that are multiplied, and those that are computed.
    weights : Pointer
        Panels of `panel_bytes`: what belongs to a panel's columns, then a line for each step of
        each tap.
    taps : Pointer
        Byte offsets that are added to a pixel's address in the source one after the other.
    num_taps, steps : int
        Of these, and how many groups of elements are taken from each.
    columns : int
        Of the target.
    num_pixels, out_height, out_width : int
        Of the target: of all images, and of each.
    image_pitch, row_pitch, pixel_pitch : int
        Bytes of the source from one image, row and pixel of the target to the next.
    out_pitch : int
        Bytes of the target from one pixel to the next.
    panels_at_once : int
        Panels that are used for all pixels before the next ones.
    rows, width : int
        Pixels and columns of a tile.
    has_table : int
        Whether tiles go on in the next row of the target where one ends.
    walk : Pointer
        Where a matrix unit computes the product: its configuration, and a `MatrixWalk`; else 0.
    scratch : Pointer
        What it needs to gather rows; 0 where they are read as they lie.
    tile_rows, tile_vectors : int
        Pixels and registers of columns of a tile, which the kernel is made for.
    """

    parameters: ClassVar[tuple[str, ...]] = ("tile_rows", "tile_vectors")
    named_by: ClassVar[str] = "kernel_name"

    kernel_name: str
    source: Pointer
    target: Pointer
    weights: Pointer
    taps: Pointer
    num_taps: int
    steps: int
    columns: int
    num_pixels: int
    out_height: int
    out_width: int
    image_pitch: int
    row_pitch: int
    pixel_pitch: int
    out_pitch: int
    panel_bytes: int
    panels_at_once: int
    rows: int
    width: int
    has_table: int
    walk: Pointer
    scratch: Pointer
    tile_rows: int
    tile_vectors: int


@dataclass(frozen=True, slots=True)
class MatrixWalk(Call):
    """Walk of a matrix unit over a product, as its numbers in memory: no call of its own.

    Parameters
    ----------
    first_rows : int
        Of a tile's rows that are in the first of two tiles of the unit.
    num_taps, blocks, block_bytes : int
        Taps of `blocks` each, of so many bytes of each row: those that are gathered are one.
    positions : int
        From the first pixel to the last one, with what lies between rows of the output.
    image_positions, line_positions : int
        From one image and row of the output to the next; 0 if there is nothing in between.
    tap_bytes, tap_pitch : int
        Bytes of a tap, and from one to the next where they are gathered.
    gathered_pitch, gathered_bytes : int
        Bytes from one gathered row to the next, and of all that a thread gathers at once.
    num_pieces : int
        Of the command: threads are numbered in pieces.
    """

    first_rows: int
    num_taps: int
    blocks: int
    block_bytes: int
    positions: int
    image_positions: int
    line_positions: int
    tap_bytes: int
    tap_pitch: int
    gathered_pitch: int
    gathered_bytes: int
    num_pieces: int


@dataclass(frozen=True, slots=True)
class ConvolutionF32(ProductCall):
    """Products of float32 that become floats: ``clamp(bias + sum + residual, low, high)``.

    Parameters
    ----------
    low, high : float
    residual, residual_pitch : Pointer, int
        What is added, if anything, and bytes from one pixel to the next.
    half_vectors : int
        Halves of registers of columns behind the whole ones.
    has_residual : int
    """

    parameters: ClassVar[tuple[str, ...]] = (
        "tile_rows",
        "tile_vectors",
        "half_vectors",
        "has_residual",
    )

    low: float
    high: float
    residual: Pointer
    residual_pitch: int
    half_vectors: int
    has_residual: int


@dataclass(frozen=True, slots=True)
class ConvolutionBf16(ProductCall):
    """Products of bfloat16, two at a time, added up in float32.

    Parameters
    ----------
    low, high, residual, residual_pitch : float, float, Pointer, int
        As of `ConvolutionF32`.
    is_odd : int
        Whether each tap has one more element behind its pairs.
    residual_format, output_format : {"f32", "bf16", ""}
        How elements are stored; empty where there is no residual.
    """

    parameters: ClassVar[tuple[str, ...]] = (
        "tile_rows",
        "tile_vectors",
        "is_odd",
        "residual_format",
        "output_format",
    )
    work = WorkKind.PAIRS

    low: float
    high: float
    residual: Pointer
    residual_pitch: int
    is_odd: int
    residual_format: str
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
    """The same of two rows with two columns, four at a time: rows are even in number.

    Parameters
    ----------
    low, high, residual, residual_pitch : float, float, Pointer, int
        As of `ConvolutionF32`.
    rest : int
        How many elements each tap has behind its steps.
    residual_format, output_format : {"f32", "bf16", ""}
        As of `ConvolutionBf16`.
    """

    parameters: ClassVar[tuple[str, ...]] = (
        "tile_rows",
        "tile_vectors",
        "rest",
        "residual_format",
        "output_format",
    )
    work = WorkKind.PAIRS

    low: float
    high: float
    residual: Pointer
    residual_pitch: int
    rest: int
    residual_format: str
    output_format: str


@dataclass(frozen=True, slots=True)
class ConvolutionDynamic(ProductCall):
    """Products of bytes that become floats by the ranges that their rows happened to have.

    Parameters
    ----------
    ranges : Pointer
        8 bytes for `pixels_per_range` pixels each, as `QuantizeRows` writes them.
    low, high : float
    """

    work = WorkKind.BYTES

    ranges: Pointer
    pixels_per_range: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ConvolutionI16(ProductCall):
    """Products of 16-bit elements, added up exactly and rescaled.

    Parameters
    ----------
    heads, head_bytes : Pointer, int
        How sums are rescaled, and bytes from one panel's to the next.
    taps_at_once : int
        How many taps are added up in 32 bits.
    zero_point, low, high : int
        Of the target; bounds count from the zero point.
    has_pieces, is_depthwise : int
        Whether sums of all taps may not fit 32 bits; whether each column is that of one channel,
        and sees no other.
    output_format : {"i32", "i16", "u8"}
    rounding : {"plain", "signed", "real"}
        See `armpy_numba_acc.tiles.finish.rescaling.Rescaling`.
    """

    parameters: ClassVar[tuple[str, ...]] = (
        "tile_rows",
        "tile_vectors",
        "has_pieces",
        "is_depthwise",
        "output_format",
        "rounding",
    )
    work = WorkKind.PAIRS

    heads: Pointer
    head_bytes: int
    taps_at_once: int
    zero_point: int
    low: int
    high: int
    has_pieces: int
    is_depthwise: int
    output_format: str
    rounding: str


@dataclass(frozen=True, slots=True)
class ConvolutionU8(ProductCall):
    """Products of bytes, added up exactly and scaled to bytes.

    Parameters
    ----------
    depth : int
        Elements of each tap.
    correction : int
        What the sum of all elements of a row is multiplied by, and added to the row's sums.
    zero_point, low, high : int
        Of what is computed.
    residual, sum : Pointer
        Elements that are added, laid out as the target, and how: see
        `armpy_numba_acc.tiles.finish.residual.ResidualSum`.
    has_corrections, has_negatives, has_bounds, has_large_scales, is_imprecise : int
        See `armpy_numba_acc.tiles.finish.byte_finish.ByteFinish`.
    has_residual : int
        Whether there is a residual.
    """

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

    depth: int
    correction: int
    zero_point: int
    low: int
    high: int
    residual: Pointer
    sum: Pointer
    has_corrections: int
    has_negatives: int
    has_bounds: int
    has_large_scales: int
    is_imprecise: int
    has_residual: int


@dataclass(frozen=True, slots=True)
class ConvolutionSums(ProductCall):
    """Products of bytes, added up exactly in int32.

    Parameters
    ----------
    depth, correction, has_corrections : int
        As of `ConvolutionU8`.
    """

    parameters: ClassVar[tuple[str, ...]] = ("tile_rows", "tile_vectors", "has_corrections")
    work = WorkKind.BYTES

    depth: int
    correction: int
    has_corrections: int


@dataclass(frozen=True, slots=True)
class QuantizeRows(Call):
    """Quantise rows of floats by the range that each happens to have.

    Parameters
    ----------
    ranges : Pointer
        8 bytes per row: the float32 scale and, for bytes, an int32 that the weights' sum is to be
        multiplied with before products of the bytes are added.
    written : {"u8", "f32"}
        Bytes, which are 128 more than the signed integers; or the floats that these stand for.
    is_asymmetric : int
        Whether there is a zero point.
    """

    parameters: ClassVar[tuple[str, ...]] = ("written", "is_asymmetric")

    source: Pointer
    target: Pointer
    ranges: Pointer
    rows: int
    length: int
    written: str
    is_asymmetric: int


@dataclass(frozen=True, slots=True)
class ProductI16(Call):
    """Products of two matrices of 16-bit elements, added up in 64 bits.

    Parameters
    ----------
    x, y, target : Pointer
        Row by row.
    scratch, scratch_bytes : Pointer, int
        For 8 bytes of every column, and how many bytes each thread has.
    factor, addend, shift : int
        A sum becomes ``(sum * factor + addend) >> shift``.
    """

    x: Pointer
    y: Pointer
    target: Pointer
    rows: int
    depth: int
    columns: int
    scratch: Pointer
    scratch_bytes: int
    factor: int
    addend: int
    shift: int
