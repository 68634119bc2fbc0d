"""The 8-bit micro-kernel of convolutions and matrix products."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from armpy_numba_acc.codegen.byte_sum import define_byte_sum
from armpy_numba_acc.codegen.dots import dot_products
from armpy_numba_acc.codegen.exact_scaling import ExactScaling
from armpy_numba_acc.codegen.isa import Isa
from armpy_numba_acc.codegen.requantize import ByteStore, Requantizer, part_of
from armpy_numba_acc.codegen.vectors import F32, I32, I64, load, splat, store, vector
from armpy_numba_acc.codegen.walk import rows_in_line, rows_of_table, walk

_NAME = "armpy_tile_u8"
_TYPE = ir.FunctionType(ir.VoidType(), (I64,) * 14)


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
        Of the output.
    """
    signature = types.void(*(types.int64,) * 14)

    def generate(context, builder, signature, args):
        function = cgutils.get_or_insert_function(builder.module, _TYPE, _NAME)
        builder.call(function, args)
        return context.get_dummy_value()

    return signature, generate


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
        As for `Requantizer`.

    Returns
    -------
    str
        In LLVM's language; parameters as for `call_tile_u8`. There is `define_byte_sum`'s
        function, too.

    Notes
    -----
    ``clamp(round((bias + correction + sum) * scale ± nudge) + zero_point, low, high)``. Sums are
    exact in int32 (and wrap); see `Requantizer` for the rest.
    """
    lanes = isa.lanes
    line = lanes * vectors * 4
    dots = dot_products(isa)

    def start(builder, weights, corrections):
        """The accumulators' first values."""
        bias = [load(builder, weights, vector(I32, lanes), I64(j)) for j in range(vectors)]
        if not has_corrections:
            return bias * rows
        given = [load(builder, corrections, I32, I64(row)) for row in range(rows)]
        added = [splat(builder, correction, lanes) for correction in given]
        return [builder.add(first, correction) for correction in added for first in bias]

    def step(builder, pointers, at_line, totals):
        """Four lines of weights times four elements of every row."""
        lines = [dots.weights(builder, at_line, j) for j in range(vectors)]
        result = []
        for row in range(rows):
            word = splat(builder, load(builder, pointers[row], I32, align=1), lanes)
            elements = dots.elements(builder, word)
            for j in range(vectors):
                total = totals[row * vectors + j]
                result.append(dots.add(builder, total, elements, lines[j]))
        return result

    module = ir.Module()
    function = ir.Function(module, _TYPE, _NAME)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    inputs, input_pitch, corrections, taps, num_taps, steps, weights = function.args[:7]
    output, pitch, count, columns = function.args[7:11]
    if has_table:
        pointers = rows_of_table(builder, inputs, rows)
    else:
        pointers = rows_in_line(builder, inputs, input_pitch, count, rows)
    totals = walk(
        builder,
        pointers,
        taps,
        num_taps,
        steps,
        builder.add(weights, I64(5 * line)),
        I64(vectors * dots.bytes_per_vector),
        start(builder, weights, corrections),
        step,
    )
    factors = builder.add(weights, I64(3 * line))
    exact = ExactScaling(builder, lanes, factors, vectors)
    requantizer = Requantizer(isa, builder, exact, *function.args[11:], **flags)
    kind = vector(F32, lanes)
    scales, nudges = (
        [load(builder, weights, kind, I64(which * vectors + j)) for j in range(vectors)]
        for which in (1, 2)
    )
    places = rows_in_line(builder, output, pitch, count, rows)
    elements = _elements(builder, requantizer, totals, scales, nudges, rows)
    _write(isa, builder, elements, places, columns)
    builder.ret_void()
    define_byte_sum(module, isa)
    return str(module)


def _elements(builder, requantizer, totals, scales, nudges, rows):
    """Each row's elements as one vector of bytes."""
    vectors = len(scales)
    together = 4 // vectors
    lanes = scales[0].type.count
    result = []
    for first in range(0, rows, together):
        group = min(together, rows - first)
        some = totals[first * vectors : (first + group) * vectors]
        packed = requantizer.elements(some, scales * group, nudges * group)
        width = vectors * lanes
        result += [part_of(builder, packed, row * width, width) for row in range(group)]
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
