"""Passes over a row: loops that write each element, fold all to one number, or both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from armpy_numba_acc.llvm.primitives import FLOAT, WORD, primitive
from armpy_numba_acc.llvm.values import F32, Code, CodeValue, choose, vector
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.elementwise.elements import (
    for_each_vector,
    load_elements,
    store_elements,
)

Compute = Callable[..., tuple[CodeValue | None, CodeValue | None]]
"""Takes elements and five parameters; gives what to write, and what to fold."""

Fold = Callable[[CodeValue, CodeValue], CodeValue]

RowPass = Callable[[Pointer, Pointer, int, Any, Any, Any, Any, Any], Any]
"""``row_pass(input, output, count, p, q, r, s, t)`` (Any: float32 of Numba's)."""

_NUM_PARAMETERS = 5


def make_row_pass(
    isa: Isa, formats: tuple[str, str], compute: Compute, fold: Fold, neutral: float
) -> RowPass:
    """Make the function for one pass over a row.

    Parameters
    ----------
    formats
        How elements are read and written.
    compute : callable
        See `Compute`. Quantised elements come as int32, as expressions get them.
    fold : callable
        Of two vectors.
    neutral
        What `fold` changes nothing with.

    Returns
    -------
    callable
        For code that Numba compiles: addresses, number of elements, float32 parameters; returns the
        folded value, a float32. The output may be the input. Nothing after the elements is read.
    """
    lanes = isa.lanes

    @primitive(FLOAT, WORD, WORD, WORD, *(FLOAT,) * _NUM_PARAMETERS)
    def row_pass(
        code: Code, source: CodeValue, target: CodeValue, count: CodeValue, *parameters: CodeValue
    ) -> CodeValue:
        # In memory, of which LLVM makes registers; the rest has a total of its own.
        totals = {width: code.stack(vector(F32, width)) for width in (lanes, 1)}
        for width, total in totals.items():
            total.store(code.constant(vector(F32, width), neutral))

        def step(width: int, index: CodeValue, mask: CodeValue | None) -> None:
            """As many elements as there are lanes, or as a mask says."""
            x = load_elements(source, formats[0], index, width, mask)
            written, folded = compute(x, *(p.splat(width) for p in parameters))
            if written is not None:
                store_elements(written, target, formats[1], index, mask)
            if folded is None:
                return
            before = totals[width].load(folded.kind)
            after = fold(before, folded)
            totals[width].store(after if mask is None else choose(mask, after, before))

        for_each_vector(isa, lanes, count, step)
        whole = _folded(totals[lanes].load(vector(F32, lanes)), fold)
        return fold(totals[1].load(vector(F32, 1)), whole.splat(1)).at(0)

    return row_pass


def _folded(total: CodeValue, fold: Fold) -> CodeValue:
    """One number from a vector."""
    while total.count > 1:
        half = total.count // 2
        total = fold(*(total.shuffled(range(first, first + half)) for first in (0, half)))
    return total.at(0)
