"""The micro-kernel of convolutions and matrix products of 16-bit elements."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from functools import partial

from llvmlite import ir
from numba.extending import intrinsic

from armpy_numba_acc.llvm.dots import PairProducts, step_of_channels, step_of_dots
from armpy_numba_acc.llvm.linked import call_of
from armpy_numba_acc.llvm.vectors import (
    I8,
    I16,
    I32,
    I64,
    lane_mask,
    load,
    masked_store,
    splat,
    store,
    vector,
)
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.rescaling import Rescaling
from armpy_numba_acc.tiles.walk import repeat, rows_in_line, rows_of_tile, walk

_NAME = "armpy_tile_i16"
_TYPE = ir.FunctionType(ir.VoidType(), (I64,) * 15)

_STORED = {"i16": I16, "u8": I8}


@intrinsic
def call_tile_i16(
    typingctx,
    inputs,
    input_pitch,
    taps,
    num_taps,
    taps_at_once,
    steps,
    weights,
    head,
    output,
    pitch,
    count,
    columns,
    zero_point,
    low,
    high,
):
    """Call the function that `tile_definition_i16` writes; whoever calls it links that.

    Parameters
    ----------
    inputs, input_pitch : int
        Address of the first row, and bytes from one to the next; or else address of one address
        per row.
    taps, num_taps : int
        Address and number of byte offsets that are added to the inputs' rows one after the
        other.
    taps_at_once : int
        How many of them are added up in 32 bits.
    steps : int
        Pairs of elements that are taken from each; of channels that stay apart, 1.
    weights, head : int
        Addresses of the lines as `armpy_numba_acc.packing.weights_i16` packs them, and of how
        sums are rescaled: see `Rescaling`.
    output, pitch : int
        Address of the first row, and bytes from one to the next.
    count, columns : int
        How many rows, and how many elements of each are wanted: at least one.
    zero_point, low, high : int
        Of the output; bounds count from the zero point.
    """
    return call_of(_NAME, _TYPE)


def tile_definition_i16(
    isa: Isa,
    rows: int,
    vectors: int,
    *,
    has_table: bool,
    has_pieces: bool,
    is_depthwise: bool,
    output_kind: str,
    rounding: str,
) -> str:
    """Write the function that computes one tile of ``rows`` by ``vectors * lanes`` elements.

    Parameters
    ----------
    isa : Isa
    rows, vectors : int
        ``rows * vectors`` accumulators, and the vectors of one step, must fit the registers.
    has_table : bool
        Whether the addresses of the inputs' rows are in memory; it is slower.
    has_pieces : bool
        Whether sums of all taps may not fit 32 bits.
    is_depthwise : bool
        Whether each column is that of one channel, and sees no other.
    output_kind : {"i16", "u8"}
        How elements are stored.
    rounding : {"plain", "signed", "real"}
        See `Rescaling`.

    Returns
    -------
    str
        In LLVM's language; parameters as for `call_tile_i16`.

    Notes
    -----
    Sums are exact: those of the taps of one piece in int32, those of the pieces in int64.
    """
    lanes = isa.lanes
    line = I64(vectors * isa.vector_bytes)
    dots = PairProducts(isa)
    step = step_of_channels(isa, vectors) if is_depthwise else step_of_dots(dots, vectors)
    module = ir.Module()
    function = ir.Function(module, _TYPE, _NAME)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    inputs, input_pitch, taps, num_taps, taps_at_once, steps, weights, head = function.args[:8]
    output, pitch, count, columns, zero_point, low, high = function.args[8:]
    zeros = [ir.Constant(vector(I32, lanes), None)] * (rows * vectors)
    pointers = rows_of_tile(builder, inputs, input_pitch, count, rows, has_table)
    add_up = partial(walk, builder, pointers)
    if has_pieces:
        totals = _sum_of_pieces(
            builder, add_up, (taps, num_taps, taps_at_once), steps, weights, line, zeros, step
        )
    else:
        totals = add_up(taps, num_taps, steps, weights, line, zeros, step)
    places = rows_in_line(builder, output, pitch, count, rows)
    rescaling = Rescaling(builder, head, lanes, vectors, (low, high), rounding=rounding)
    stored = vector(_STORED[output_kind], lanes)
    offset = splat(builder, builder.trunc(zero_point, stored.element), lanes)
    elements = [
        builder.add(rescaling.rescaled(total, number % vectors, stored), offset)
        for number, total in enumerate(totals)
    ]
    _write(builder, elements, places, columns)
    builder.ret_void()
    return str(module)


def _sum_of_pieces(builder, add_up, parts, steps, weights, line, zeros, step):
    """Vectors of int64: the sums of all pieces.

    Parameters
    ----------
    add_up : callable
        `walk` over one piece.
    parts : tuple
        Address of the taps, how many there are, and how many of them make a piece.
    """
    taps, num_taps, at_once = parts
    lanes, size = zeros[0].type.count, len(zeros)
    wide = vector(I64, lanes)
    with builder.goto_entry_block():
        room = builder.ptrtoint(builder.alloca(wide, size), I64)
    for number in range(size):
        store(builder, ir.Constant(wide, None), room, I64(number))

    def piece(builder, number, values):
        """Add up some taps, and add that to what the others have given."""
        (at_line,) = values
        first = builder.mul(number, at_once)
        left = builder.sub(num_taps, first)
        count = builder.select(builder.icmp_signed("<", left, at_once), left, at_once)
        at_taps = builder.add(taps, builder.mul(first, I64(8)))
        totals = add_up(at_taps, count, steps, at_line, line, zeros, step)
        for k, total in enumerate(totals):
            before = load(builder, room, wide, I64(k))
            store(builder, builder.add(before, builder.sext(total, wide)), room, I64(k))
        return [builder.add(at_line, builder.mul(builder.mul(count, steps), line))]

    more = builder.add(num_taps, builder.sub(at_once, I64(1)))
    repeat(builder, builder.sdiv(more, at_once), [weights], piece)
    return [load(builder, room, wide, I64(number)) for number in range(size)]


def _write(builder, elements, places, columns):
    """Store what is wanted of every row."""
    lanes, vectors = elements[0].type.count, len(elements) // len(places)
    is_whole = builder.icmp_signed(">=", columns, I64(vectors * lanes))
    with builder.if_else(is_whole) as (whole, part):
        with whole:
            for number, value in enumerate(elements):
                store(builder, value, places[number // vectors], I64(number % vectors))
        with part:
            masks = [
                lane_mask(builder, builder.sub(columns, I64(j * lanes)), lanes)
                for j in range(vectors)
            ]
            size = lanes * elements[0].type.element.width // 8
            for number, value in enumerate(elements):
                row, j = divmod(number, vectors)
                masked_store(builder, value, builder.add(places[row], I64(j * size)), masks[j])
