"""The 8-bit micro-kernel of convolutions and matrix products."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from llvmlite import ir
from numba.extending import intrinsic

from armpy_numba_acc.llvm.dots import dot_products, step_of_dots
from armpy_numba_acc.llvm.linked import call_of
from armpy_numba_acc.llvm.vectors import F32, I32, I64, load, splat, store, vector
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.byte_sum import define_byte_sum
from armpy_numba_acc.tiles.exact_scaling import ExactScaling
from armpy_numba_acc.tiles.requantize import BytePacker, ByteStore, part_of
from armpy_numba_acc.tiles.residual import ResidualSum
from armpy_numba_acc.tiles.walk import rows_in_line, rows_of_tile, walk

_NAME = "armpy_tile_u8"
_TYPE = ir.FunctionType(ir.VoidType(), (I64,) * 16)


@intrinsic
def call_tile_u8(
    typingctx,
    inputs,
    input_pitch,
    corrections,
    taps,
    num_taps,
    steps,
    weights,
    output,
    pitch,
    count,
    columns,
    zero_point,
    low,
    high,
    distance,
    parameters,
):
    """Call the function that `tile_definition_u8` writes; whoever calls it links that.

    Parameters
    ----------
    inputs, input_pitch : int
        Address of the first row, and bytes from one to the next; or else address of one address
        per row.
    corrections : int
        Address of one int32 per row, which is added to its sums.
    taps, num_taps : int
        Address and number of byte offsets that are added to the inputs' rows one after the
        other.
    steps : int
        Groups of four elements that are taken from each.
    weights : int
        Address of the bias as int32, the scales and nudges as float32, exact factors of 8 bytes,
        then the lines as `armpy_numba_acc.packing.weights_u8` packs them.
    output, pitch : int
        Address of the first row, and bytes from one to the next.
    count, columns : int
        How many rows, and how many elements of each are wanted: at least one.
    zero_point, low, high : int
        Of what is computed.
    distance, parameters : int
        Bytes from the output to elements that are added, and the address of how: see
        `armpy_numba_acc.tiles.residual`.
    """
    return call_of(_NAME, _TYPE)


def tile_definition_u8(
    isa: Isa,
    rows: int,
    vectors: int,
    *,
    has_table: bool,
    has_corrections: bool,
    **flags: bool,
) -> str:
    """Write the function that computes one tile of ``rows`` by ``vectors * lanes`` elements.

    Parameters
    ----------
    isa : Isa
    rows, vectors : int
        ``rows * vectors`` accumulators, and the vectors of one step, must fit the registers.
    has_table : bool
        Whether the addresses of the inputs' rows are in memory; it is slower.
    has_corrections : bool
        Whether every row has a number that is added to its sums.
    **flags : bool
        As for `_Finish`.

    Returns
    -------
    str
        In LLVM's language; parameters as for `call_tile_u8`. There is `define_byte_sum`'s
        function, too.

    Notes
    -----
    ``clamp(round((bias + correction + sum) * scale ± nudge) + zero_point, low, high)``. Sums are
    exact in int32 (and wrap); see `ExactScaling` for the rest.
    """
    module = ir.Module()
    function = ir.Function(module, _TYPE, _NAME)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    inputs, input_pitch, corrections, taps, num_taps, steps, weights = function.args[:7]
    output, pitch, count, columns = function.args[7:11]
    pointers = rows_of_tile(builder, inputs, input_pitch, count, rows, has_table)
    bias = [load(builder, weights, vector(I32, isa.lanes), I64(j)) for j in range(vectors)]
    totals = bias * rows
    if has_corrections:
        given = [load(builder, corrections, I32, I64(row)) for row in range(rows)]
        added = [splat(builder, correction, isa.lanes) for correction in given]
        totals = [builder.add(first, correction) for correction in added for first in bias]
    dots = dot_products(isa)
    totals = walk(
        builder,
        pointers,
        taps,
        num_taps,
        steps,
        builder.add(weights, I64(5 * vectors * isa.vector_bytes)),
        I64(vectors * dots.bytes_per_vector),
        totals,
        step_of_dots(dots, vectors),
    )
    places = rows_in_line(builder, output, pitch, count, rows)
    finish = _Finish(isa, builder, vectors, weights, *function.args[11:], **flags)
    _write(isa, builder, finish.rows(totals, places), places, columns)
    builder.ret_void()
    define_byte_sum(module, isa)
    return str(module)


class _Finish:
    """Makes bytes of a tile's sums.

    Parameters
    ----------
    isa : Isa
    builder : ir.IRBuilder
    vectors : int
        Of a row.
    weights, zero_point, low, high, distance, parameters : ir.Value, int64
        As for `call_tile_u8`.
    has_residual, sum_has_negatives : bool
        Whether elements of another tensor are added; the second as for `ResidualSum`.
    has_bounds : bool
        As for `BytePacker`.
    **flags : bool
        As for `ExactScaling`.
    """

    def __init__(
        self,
        isa: Isa,
        builder,
        vectors,
        weights,
        zero_point,
        low,
        high,
        distance,
        parameters,
        *,
        has_residual,
        sum_has_negatives,
        has_bounds,
        **flags,
    ):
        self._builder, self._lanes, self._vectors = builder, isa.lanes, vectors
        self._distance, self._sum = distance, None
        kind = vector(F32, isa.lanes)
        self._scales, self._nudges = (
            [load(builder, weights, kind, I64(which * vectors + j)) for j in range(vectors)]
            for which in (1, 2)
        )
        factors = builder.add(weights, I64(3 * vectors * isa.vector_bytes))
        zero_point = builder.trunc(zero_point, I32)
        self._exact = ExactScaling(builder, isa.lanes, factors, vectors, zero_point, **flags)
        missing = self._exact.missing
        if has_residual:
            bounds = [builder.trunc(bound, I32) for bound in (low, high)]
            self._sum = ResidualSum(
                builder, isa.lanes, parameters, missing, *bounds, has_negatives=sum_has_negatives
            )
            missing = self._sum.missing
            low, high = (load(builder, parameters, I32, I64(index)) for index in (5, 6))
            low, high = (builder.zext(bound, I64) for bound in (low, high))
        self._packer = BytePacker(isa, builder, missing, low, high, has_bounds=has_bounds)

    def rows(self, totals, places):
        """Each row's elements as one vector of bytes; they will be written to `places`."""
        builder, vectors, width = self._builder, self._vectors, self._vectors * self._lanes
        together = 4 // vectors
        result = []
        for first in range(0, len(places), together):
            group = places[first : first + together]
            size = len(group)
            some = totals[first * vectors : (first + size) * vectors]
            steps = self._exact.steps(some, self._scales * size, self._nudges * size)
            if self._sum is not None:
                others = [
                    builder.add(builder.add(place, self._distance), I64(j * self._lanes))
                    for place in group
                    for j in range(vectors)
                ]
                steps = self._sum.steps(steps, others)
            packed = self._packer.elements(steps)
            result += [part_of(builder, packed, row * width, width) for row in range(size)]
        return result


def _write(isa, builder, elements, places, columns):
    """Store what is wanted of every row."""
    width = elements[0].type.count
    is_whole = builder.icmp_signed(">=", columns, I64(width))
    with builder.if_else(is_whole) as (whole, part):
        with whole:
            for value, place in zip(elements, places, strict=True):
                store(builder, value, place)
        with part:
            part_store = ByteStore(isa, builder, columns, width)
            for value, place in zip(elements, places, strict=True):
                part_store.store(value, place)
