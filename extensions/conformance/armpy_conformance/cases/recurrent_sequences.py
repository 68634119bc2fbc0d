"""Cases of recurrent networks over sequences, with gates of all kinds."""

from __future__ import annotations

from collections.abc import Iterator

from armpy.ops import GateFunction, RecurrentCell, RecurrentSequence
from armpy.types import DataType
from armpy_conformance.comparison.seeded_values import anything, exactly, small
from armpy_conformance.sampling.case_template import CaseTemplate, every

_TIMES, _BATCHES, _DEPTH, _UNITS = 5, 3, 4, 6
_VALUES = (anything, small, small, small, small, exactly([5, 2, 3]), small)


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    lstm, gru = RecurrentCell.LSTM, RecurrentCell.GRU
    for cell in RecurrentCell:
        name = cell.name.lower()
        yield _template(name, RecurrentSequence(cell), "")
        yield _template(f"{name}-states", RecurrentSequence(cell), "bh")
        backwards = RecurrentSequence(cell, is_reversed=True)
        yield _template(f"{name}-reversed", backwards, "bh")
        yield _template(f"{name}-lengths", RecurrentSequence(cell), "bhl")
        yield _template(f"{name}-reversed-lengths", backwards, "bhl")
        yield _template(f"{name}-limit", RecurrentSequence(cell, clip=0.5), "bh")
        yield _template(f"{name}-units", RecurrentSequence(cell), "bh", 37)
    yield _template("gru-resets-after", RecurrentSequence(gru, resets_after=True), "bh")
    yield _template("lstm-peephole", RecurrentSequence(lstm), "bhp")
    yield _template("lstm-coupled", RecurrentSequence(lstm, couples_gates=True), "bhp")
    for function in GateFunction:
        rnn = RecurrentSequence(RecurrentCell.RNN, (function,), (0.5,), (0.25,))
        yield _template(f"rnn-{function.name.lower()}", rnn, "bh")


def _template(
    label: str, operation: RecurrentSequence, parts: str, units: int = _UNITS
) -> CaseTemplate:
    """A line with some of the optional operands: biases, states, lengths, peephole."""
    rows, state = operation.cell.num_gates * units, (_BATCHES, units)
    is_lstm = operation.cell is RecurrentCell.LSTM
    biases = ((rows,), (rows,)) if "b" in parts else (None, None)
    optional = (
        (_BATCHES,) if "l" in parts else None,
        state if "h" in parts else None,
        state if "h" in parts and is_lstm else None,
        (3 * units,) if "p" in parts else None,
    )
    matrices = ((_TIMES, _BATCHES, _DEPTH), (rows, _DEPTH), (rows, units))
    shapes = (*matrices, *biases, *optional)
    # Without lengths it is all the same of which type they are not.
    accepts = every if "l" in parts else lambda types: types[5] is DataType.SIGNED32
    return CaseTemplate(label, operation, shapes, accepts, _VALUES, constants=(1, 2, 3, 4, 8))
