"""Micro-kernels of a vector of bytes times a matrix."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from armpy.records import dataclass
from armpy_numba_acc.llvm.pointers import load_i64
from armpy_numba_acc.llvm.values import Code
from armpy_numba_acc.llvm.vectors import F32, I8, I32, I64, load, splat, vector
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.vector_matrix import AT_ONCE
from armpy_numba_acc.tiles.exact_scaling import ExactScaling
from armpy_numba_acc.tiles.product import rows_in_line
from armpy_numba_acc.tiles.requantize import BytePacker, ByteStore, part_of
from armpy_numba_acc.tiles.vector_matrix import (
    TOGETHER,
    ByteProducts,
    panel_sums,
    row_sums,
    vector_sums,
)

KERNEL_ARGUMENTS = (
    "input",
    "output",
    "weights",
    "scales",
    "nudges",
    "exact",
    "factor_step",
    "flip",
    "depth",
    "steps",
    "columns",
    "correction",
    "zero_point",
    "low",
    "high",
    "out_flip",
)
"""Those that kernels begin with. For `factor_step` and `out_flip` see `_Output`, for `flip`
`armpy_numba_acc.tiles.vector_matrix.ByteProducts`. The sum of the input's `depth` elements times
`correction` is added to all sums."""

_OUTPUT = types.UniTuple(types.int64, 10)


@njit(inline="always")
def output_of(args, first, count):
    """What `_Output` wants to know of columns, as a tuple.

    Parameters
    ----------
    args : int
        Address of a kernel's arguments.
    first, count : int
        Number of the first column, and how many are wanted.
    """
    factor_step = load_i64(args, 6)
    skipped = 4 * first * factor_step
    return (
        load_i64(args, 3) + skipped,
        load_i64(args, 4) + skipped,
        load_i64(args, 5) + 2 * skipped,
        factor_step,
        load_i64(args, 1) + first,
        count,
        load_i64(args, 12),
        load_i64(args, 13),
        load_i64(args, 14),
        load_i64(args, 15),
    )


@dataclass(frozen=True)
class Traits:
    """What a kernel can leave out.

    Parameters
    ----------
    has_correction : bool
        Whether a number is added to all sums.
    has_nudges : bool
        Whether not all nudges are 0.
    has_large_scales : bool
        As of `ExactScaling`.
    """

    has_correction: bool
    has_nudges: bool
    has_large_scales: bool


def column_vectors_u8(isa: Isa, vectors: int, traits: Traits):
    """Make the function that computes the columns of some vectors.

    Parameters
    ----------
    isa : Isa
    vectors : int
        A multiple of four: all of their columns are wanted. One: it may be the last.
    traits : Traits

    Returns
    -------
    callable
        ``compute(source, flip, steps, weights, correction, output)`` for code that Numba
        compiles. See `armpy_numba_acc.tiles.vector_matrix.ByteProducts` for `flip`; `steps` is
        the number of groups; `weights` the address of each vector's bias and then the lines;
        `output` comes from `output_of`.
    """

    @intrinsic
    def compute(typingctx, source, flip, steps, weights, correction, output):
        signature = types.void(*(types.int64,) * 5, _OUTPUT)

        def generate(context, builder, signature, args):
            source, flip, steps, weights, correction, output = args
            products = ByteProducts(isa, builder, flip)
            first = [load(builder, weights, products.kind, I64(j)) for j in range(vectors)]
            first = _corrected(builder, first, correction, traits)
            lines = builder.add(weights, I64(vectors * isa.vector_bytes))
            if vectors > 1:
                totals = panel_sums(builder, products, first, source, steps, lines)
            else:
                totals = [vector_sums(builder, products, first[0], source, steps, lines)]
            _Output(isa, traits, *cgutils.unpack_tuple(builder, output)).write(builder, totals)
            return context.get_dummy_value()

        return signature, generate

    return compute


def row_sums_u8(isa: Isa):
    """Make the function that computes the sums of up to `TOGETHER` outputs.

    Returns
    -------
    callable
        ``compute(source, flip, steps, weights, pitch, count, sums)`` for code that Numba
        compiles: see `column_vectors_u8` for the first ones, and
        `armpy_numba_acc.tiles.vector_matrix_f32.row_sums_f32` for the others.
    """

    @intrinsic
    def compute(typingctx, source, flip, steps, weights, pitch, count, sums):
        signature = types.void(*(types.int64,) * 7)

        def generate(context, builder, signature, args):
            source, flip, steps, weights, pitch, count, sums = args
            of = Code(builder).of
            found = rows_in_line(of(weights), of(pitch), of(count), TOGETHER)
            rows = [row.value for row in found]
            row_sums(builder, ByteProducts(isa, builder, flip), source, steps, rows, sums)
            return context.get_dummy_value()

        return signature, generate

    return compute


def finish_u8(isa: Isa, traits: Traits):
    """Make the function that makes outputs of a vector's sums.

    Returns
    -------
    callable
        ``finish(sums, bias, correction, output)``; see `column_vectors_u8`.
    """

    @intrinsic
    def finish(typingctx, sums, bias, correction, output):
        signature = types.void(*(types.int64,) * 3, _OUTPUT)

        def generate(context, builder, signature, args):
            sums, bias, correction, output = args
            kind = vector(I32, isa.lanes)
            total = builder.add(load(builder, sums, kind), load(builder, bias, kind))
            totals = _corrected(builder, [total], correction, traits)
            _Output(isa, traits, *cgutils.unpack_tuple(builder, output)).write(builder, totals)
            return context.get_dummy_value()

        return signature, generate

    return finish


def _corrected(builder, sums, correction, traits):
    """Sums with the correction."""
    if not traits.has_correction:
        return sums
    added = splat(builder, builder.trunc(correction, I32), sums[0].type.count)
    return [builder.add(total, added) for total in sums]


@dataclass(frozen=True)
class _Output:
    """How sums become outputs, and where these go.

    Parameters
    ----------
    isa : Isa
    traits : Traits
    scales, nudges, exact : ir.Value, int64
        Addresses of the columns' factors, see `armpy_numba_acc.packing.factors`.
    factor_step : ir.Value, int64
        1, or 0 if all columns have those of the first vector; of `exact`, of the first four.
    target, count : ir.Value, int64
        Address of the first output; how many are wanted where there is one vector.
    zero_point, low, high : ir.Value, int64
    out_flip : ir.Value, int64
        What every byte is changed by in the end.
    """

    isa: Isa
    traits: Traits
    scales: ir.Value
    nudges: ir.Value
    exact: ir.Value
    factor_step: ir.Value
    target: ir.Value
    count: ir.Value
    zero_point: ir.Value
    low: ir.Value
    high: ir.Value
    out_flip: ir.Value

    def write(self, builder, totals):
        """Requantise sums and store them."""
        lanes = self.isa.lanes
        flip = splat(builder, builder.trunc(self.out_flip, I8), self.isa.vector_bytes)
        for first in range(0, len(totals), AT_ONCE):
            some = totals[first : first + AT_ONCE]
            offset = builder.mul(self.factor_step, I64(first * lanes * 8))
            # All can do what few layers need and what costs little.
            of = Code(builder).of
            exact = ExactScaling(
                of(self.exact) + of(offset),
                lanes,
                len(some),
                of(self.zero_point).narrowed(I32),
                has_negatives=True,
                is_vague=True,
                has_large_scales=self.traits.has_large_scales,
            )
            packer = BytePacker(
                self.isa, exact.missing, of(self.low), of(self.high), has_bounds=True
            )
            numbers = range(first, first + len(some))
            scales = self._factors(builder, self.scales, numbers)
            nudges = [None] * len(some)
            if self.traits.has_nudges:
                nudges = self._factors(builder, self.nudges, numbers)
            steps = exact.steps([of(total) for total in some], scales, nudges)
            packed = packer.elements(steps) ^ of(flip)
            place = builder.add(self.target, I64(first * lanes))
            if len(some) == AT_ONCE:
                of(place).store(packed)
            else:
                value = part_of(packed, 0, lanes)
                ByteStore(self.isa, of(self.count), lanes).store(value, of(place))

    def _factors(self, builder, base, numbers):
        """Some vectors of columns' factors."""
        kind = vector(F32, self.isa.lanes)
        place, step = Code(builder).of(base), Code(builder).of(self.factor_step)
        return [place.load(kind, step * n) for n in numbers]
