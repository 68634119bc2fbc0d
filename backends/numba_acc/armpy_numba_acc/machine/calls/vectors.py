"""Calls of kernels that multiply one vector by a matrix."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.call import Call, Pointer
from armpy_numba_acc.machine.work import WorkKind


@dataclass(frozen=True, slots=True)
class VectorMatrix(Call):
    """Arguments at the head of every kernel that multiplies a vector by a matrix."""

    source: Pointer
    target: Pointer
    # `pitch` is in bytes: by columns from one vector of them to the next, with its bias in front;
    # by rows from one output's weights to the next one's.
    weights: Pointer
    pitch: int
    bias: Pointer  # by rows; by columns it lies with the weights
    steps: int  # elements of the input, or groups of four bytes, and elements of the output
    columns: int


@dataclass(frozen=True, slots=True)
class VectorMatrixF32(Call):
    """Multiply a float32 vector by a matrix; between two bounds."""

    parameters = ("layout",)
    work: ClassVar[WorkKind] = WorkKind.WEIGHTS

    layout: str  # how weights lie: see `armpy_numba_acc.packing.vector_matrix`
    matrix: VectorMatrix
    residual: Pointer  # the output's addend; 0 for none
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class VectorMatrixU8(Call):
    """Multiply a vector of bytes by a matrix, and requantise the sums."""

    parameters = (
        "layout",
        "has_signed_bytes",
        "has_correction",
        "has_nudges",
        "has_large_scales",
    )
    work: ClassVar[WorkKind] = WorkKind.BYTE_WEIGHTS

    layout: str  # how weights lie: see `armpy_numba_acc.packing.vector_matrix`
    # Whether elements are signed and weights bytes where products are of 16-bit integers otherwise:
    # see `armpy_numba_acc.llvm.arithmetic.dots.SignedByteProducts`.
    has_signed_bytes: int
    # Whether `correction` or any nudge is not 0; the third as for
    # `armpy_numba_acc.tiles.finish.exact_scaling.ExactScaling`.
    has_correction: int
    has_nudges: int
    has_large_scales: int
    matrix: VectorMatrix
    depth: int  # the sum of the input's `depth` elements times `correction` is added to all sums
    correction: int
    # A vector that the input's elements are changed by, see
    # `armpy_numba_acc.tiles.vector_matrix.u8.VectorByteProducts`.
    flip: Pointer
    scales: Pointer  # the columns' factors, see `armpy_numba_acc.packing.factors`
    nudges: Pointer
    exact: Pointer
    # 1, or 0 if all columns have those of the first vector; of `exact`, of the first four.
    factor_step: int
    zero_point: int  # of the output
    low: int
    high: int
    out_flip: int  # what every byte is changed by in the end


@dataclass(frozen=True, slots=True)
class QuantizeBlocks(Call):
    """Quantise blocks of float32 to signed bytes, symmetrically, each by its range."""

    parameters = ("block",)

    block: int  # elements of each
    source: Pointer
    # Of every 8 elements those with even numbers, then those with odd ones: as 4-bit numbers lie
    # in the lower and the upper halves of bytes.
    target: Pointer
    ranges: Pointer  # 8 bytes of each block: the float32 scale, the int32 sum of elements, negated
    blocks: int


@dataclass(frozen=True, slots=True)
class BlockProduct(Call):
    """Multiply rows by numbers of few bits, which have a scale for each block.

    Weights lie in panels of as many units as a vector has lanes; of each block, first the units'
    scales, then the first 32 bits of every unit, and so on.
    """

    parameters = ("bits", "block", "has_points", "has_bias", "form")

    bits: int  # of each number
    block: int  # numbers in each block
    has_points: int  # whether there are zero points; else they are the middle of the range
    has_bias: int
    form: str  # of the source: "floats", or "bytes" as of `QuantizeBlocks`
    source: Pointer
    ranges: Pointer  # of blocks of bytes
    target: Pointer
    weights: Pointer
    points: Pointer  # bytes in the order of the scales
    bias: Pointer
    rows: int
    units: int  # elements of each row of the target
    blocks: int  # of each row of the source


VectorCall: TypeAlias = VectorMatrixF32 | VectorMatrixU8
"""A call whose record begins with a `VectorMatrix`."""
