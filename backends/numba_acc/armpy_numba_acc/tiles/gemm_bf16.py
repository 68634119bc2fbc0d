"""The micro-kernel of convolutions and matrix products of bfloat16 elements."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from llvmlite import ir
from numba.extending import intrinsic

from armpy_numba_acc.llvm.bfloat16 import add_products
from armpy_numba_acc.llvm.linked import call_of
from armpy_numba_acc.llvm.vectors import (
    F32,
    I16,
    I32,
    I64,
    extreme,
    lane_mask,
    load,
    splat,
    vector,
)
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.span import load_elements, store_elements
from armpy_numba_acc.tiles.walk import rows_in_line, rows_of_tile, walk

_NAME = "armpy_tile_bf16"
_TYPE = ir.FunctionType(ir.VoidType(), (I64,) * 14)


@intrinsic
def call_tile_bf16(
    typingctx,
    inputs,
    input_pitch,
    taps,
    num_taps,
    steps,
    weights,
    output,
    pitch,
    residual,
    residual_pitch,
    count,
    columns,
    low,
    high,
):
    """Call the function that `tile_definition_bf16` writes; whoever calls it links that.

    Parameters
    ----------
    inputs, input_pitch : int
        Address of the first row, and bytes from one to the next; or else address of one address
        per row.
    taps, num_taps : int
        Address and number of byte offsets that are added to the inputs' rows one after the
        other.
    steps : int
        Pairs of elements that are taken from each; at least one.
    weights : int
        Address of the bias as float32, then of the lines as
        `armpy_numba_acc.packing.weights_bf16` packs them.
    output, pitch, residual, residual_pitch : int
        Address of the first row, and bytes from one to the next.
    count, columns : int
        How many rows, and how many elements of each are wanted: at least one.
    low, high : int
        Bits of the bounds as float32.
    """
    return call_of(_NAME, _TYPE)


def tile_definition_bf16(
    isa: Isa,
    rows: int,
    vectors: int,
    *,
    has_table: bool,
    is_odd: bool,
    residual_kind: str,
    output_kind: str,
) -> str:
    """Write the function that computes one tile of ``rows`` by ``vectors * lanes`` elements.

    Parameters
    ----------
    isa : Isa
        With dot products of bfloat16.
    rows, vectors : int
        ``rows * vectors`` accumulators, and the vectors of one step, must fit the registers.
    has_table : bool
        Whether the addresses of the inputs' rows are in memory; it is slower.
    is_odd : bool
        Whether each tap has one more element behind its pairs.
    residual_kind, output_kind : {"f32", "bf16", ""}
        How elements are stored; empty where there is no residual.

    Returns
    -------
    str
        In LLVM's language; parameters as for `call_tile_bf16`.

    Notes
    -----
    ``clamp(bias + sum + residual, low, high)``; two products at a time are added to the sum,
    which is float32.
    """
    lanes = isa.lanes
    line = lanes * vectors * 4
    step, last_step = _steps(lanes, rows, vectors)
    module = ir.Module()
    function = ir.Function(module, _TYPE, _NAME)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    inputs, input_pitch, taps, num_taps, steps, weights = function.args[:6]
    output, pitch, residual, residual_pitch, count, columns, low, high = function.args[6:]
    pointers = rows_of_tile(builder, inputs, input_pitch, count, rows, has_table)
    bias = [load(builder, weights, vector(F32, lanes), I64(j)) for j in range(vectors)]
    totals = walk(
        builder,
        pointers,
        taps,
        num_taps,
        steps,
        builder.add(weights, I64(line)),
        I64(line),
        bias * rows,
        step,
        last_step if is_odd else None,
    )
    targets = rows_in_line(builder, output, pitch, count, rows), output_kind
    others = None
    if residual_kind:
        others = rows_in_line(builder, residual, residual_pitch, count, rows), residual_kind
    totals_by_row = [totals[row * vectors : (row + 1) * vectors] for row in range(rows)]
    _finish(builder, totals_by_row, targets, others, columns, (low, high))
    builder.ret_void()
    return str(module)


def _steps(lanes: int, rows: int, vectors: int):
    """What `walk` does at each step, and what with one more element behind them."""
    words = vector(I32, lanes)

    def add(builder, word_of, at_line, totals):
        """One line of weights times one word of every row."""
        columns_of = [load(builder, at_line, words, I64(j)) for j in range(vectors)]
        result = []
        for row in range(rows):
            element = splat(builder, word_of(row), lanes)
            for j in range(vectors):
                total = totals[row * vectors + j]
                result.append(add_products(builder, total, columns_of[j], element))
        return result

    def step(builder, pointers, at_line, totals):
        """Two elements of every row."""
        return add(builder, lambda r: load(builder, pointers[r], I32, align=2), at_line, totals)

    def last_step(builder, pointers, at_line, totals):
        """One element: what lies behind it may be anything, also NaN."""

        def word_of(row):
            return builder.zext(load(builder, pointers[row], I16), I32)

        return add(builder, word_of, at_line, totals)

    return step, last_step


def _finish(builder, totals, targets, others, columns, bounds):
    """Add residuals, clamp, and store what is wanted of every row.

    Parameters
    ----------
    totals : list of list
        Vectors of each row.
    targets, others : (list, str)
        Address of each row of the output and of the residual, or None, and how elements are
        stored.
    columns, bounds
        As for `call_tile_bf16`.
    """
    lanes, vectors = totals[0][0].type.count, len(totals[0])
    ends = _Ends(builder, lanes, vectors, columns)
    limits = [
        splat(builder, builder.bitcast(builder.trunc(bits, I32), F32), lanes) for bits in bounds
    ]

    def write():
        for row, total in enumerate(totals):
            values = total
            if others is not None:
                added = ends.loaded(others[0][row], others[1])
                values = [builder.fadd(*pair) for pair in zip(values, added, strict=True)]
            for name, limit in zip(("maxnum", "minnum"), limits, strict=True):
                values = [extreme(builder, name, limit, value) for value in values]  # NaN stays
            ends.store(values, targets[0][row], targets[1])

    is_whole = builder.icmp_signed(">=", columns, I64(vectors * lanes))
    with builder.if_else(is_whole) as (whole, part):
        with whole:
            write()
        with part:
            ends.mask()
            write()


class _Ends:
    """Reads and writes a row of a tile; with a mask only those columns that are wanted."""

    def __init__(self, builder, lanes: int, vectors: int, columns) -> None:
        self._builder = builder
        self._lanes = lanes
        self._columns = columns
        self._numbers = range(vectors)
        self._masks = [None] * vectors

    def mask(self) -> None:
        """Heed from now on how many columns are wanted."""
        builder, lanes = self._builder, self._lanes
        left = [builder.sub(self._columns, I64(j * lanes)) for j in self._numbers]
        self._masks = [lane_mask(builder, count, lanes) for count in left]

    def loaded(self, address, kind: str):
        """Vectors of float32."""
        builder, lanes = self._builder, self._lanes
        return [
            load_elements(builder, address, kind, I64(j * lanes), lanes, mask)
            for j, mask in enumerate(self._masks)
        ]

    def store(self, values, address, kind: str) -> None:
        """Store vectors of float32."""
        builder, lanes = self._builder, self._lanes
        for j, (value, mask) in enumerate(zip(values, self._masks, strict=True)):
            store_elements(builder, value, address, kind, I64(j * lanes), mask)
