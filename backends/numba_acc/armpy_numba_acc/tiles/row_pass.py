"""Loops over the elements of a row that write each, fold all to one number, or both."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,misc"
# Numba's extension interface and llvmlite have no types.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from armpy_numba_acc.llvm import vectors
from armpy_numba_acc.llvm.values import Code, Value, choose
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.span import for_whole_vectors, load_elements, store_elements

Compute = Callable[..., tuple[Value | None, Value | None]]
"""Takes elements and five parameters; gives what to write, and what to fold."""

Fold = Callable[[Value, Value], Value]

_F32 = ir.FloatType()
_I64 = ir.IntType(64)
NUM_PARAMETERS = 5


def make_row_pass(isa: Isa, kinds: tuple[str, str], compute: Compute, fold: Fold, neutral: float):
    """Make the function for one pass over a row.

    Parameters
    ----------
    isa : Isa
    kinds : tuple of str
        How elements are read and written.
    compute : callable
        See `Compute`. Quantised elements come as int32, as expressions get them.
    fold : callable
        Of two vectors.
    neutral : float
        What `fold` changes nothing with.

    Returns
    -------
    callable
        ``row_pass(input, output, count, p, q, r, s, t)`` for code that Numba compiles: addresses,
        number of elements, float32 parameters; gives what was folded, as a float32. The
        output may be the input. Nothing behind the elements is read.
    """
    lanes = isa.lanes

    def step(builder, lanes, place, index, parameters, total, mask=None):
        """As many elements as there are lanes, or as a mask says; the total afterwards."""
        input_, output = place
        x = Code(builder).of(load_elements(builder, input_, kinds[0], index, lanes, mask))
        splats = [Code(builder).of(vectors.splat(builder, p, lanes)) for p in parameters]
        written, folded = compute(x, *splats)
        if written is not None:
            store_elements(builder, written.value, output, kinds[1], index, mask)
        if folded is None:
            return
        before = Code(builder).of(builder.load(total))
        after = fold(before, folded)
        if mask is not None:
            after = choose(Code(builder).of(mask), after, before)
        builder.store(after.value, total)

    @intrinsic
    def row_pass(typingctx, input_, output, count, p, q, r, s, t):
        signature = types.float32(*(types.int64,) * 3, *(types.float32,) * NUM_PARAMETERS)

        def generate(context, builder, signature, args):
            place, count, parameters = args[:2], args[2], args[3:]
            totals = {width: _filled(builder, width, neutral) for width in (lanes, 1)}

            def compute_at(width, index, mask):
                step(builder, width, place, index, parameters, totals[width], mask)

            for_whole_vectors(isa, builder, lanes, count, compute_at)
            single = Code(builder).of(builder.load(totals[1]))
            result = _folded(Code(builder).of(builder.load(totals[lanes])), fold)
            result = fold(single, single.of(vectors.splat(builder, result, 1))).value
            return builder.extract_element(result, ir.IntType(32)(0))

        return signature, generate

    return row_pass


def _filled(builder, lanes, number: float) -> Any:  # Any: llvmlite has no types
    """A variable that holds a vector of one number."""
    kind = ir.VectorType(_F32, lanes)
    variable = cgutils.alloca_once(builder, kind)
    builder.store(ir.Constant(kind, [_F32(number)] * lanes), variable)
    return variable


def _folded(total: Value, fold: Fold) -> Any:  # Any: llvmlite has no types
    """One number from a vector."""
    while total.count > 1:
        half = total.count // 2
        total = fold(*(total.shuffled(range(first, first + half)) for first in (0, half)))
    return total.at(0).value
