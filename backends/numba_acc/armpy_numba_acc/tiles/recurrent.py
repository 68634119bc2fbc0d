"""Steps of recurrent networks: a state times its weights, and the gates' activations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from armpy.core.dataclass import dataclass
from armpy_numba_acc.llvm.control import loop
from armpy_numba_acc.llvm.primitives import FLOAT, NOTHING, WORD, Primitive, primitive
from armpy_numba_acc.llvm.values import F32, Code, CodeValue, choose, clamp, vector
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.recurrent import PANEL
from armpy_numba_acc.tiles.elementwise import functions

_FUNCTIONS: Mapping[str, Callable[[CodeValue, float, float], CodeValue]] = {
    "SIGMOID": lambda x, a, b: functions.sigmoid(x),
    "TANH": lambda x, a, b: functions.tanh(x),
    "RELU": lambda x, a, b: clamp(x, 0.0, float("inf")),
    "AFFINE": lambda x, a, b: x * a + b,
    "LEAKY_RELU": lambda x, a, b: choose(x < 0.0, x * a, x),
    "THRESHOLDED_RELU": lambda x, a, b: choose(x >= a, x, 0.0),
    "SCALED_TANH": lambda x, a, b: functions.tanh(x * b) * a,
    "HARD_SIGMOID": lambda x, a, b: clamp(x * a + b, 0.0, 1.0),
    "ELU": lambda x, a, b: choose(x < 0.0, functions.expm1(x) * a, x),
    "SOFTSIGN": lambda x, a, b: x / (abs(x) + 1.0),
    "SOFTPLUS": lambda x, a, b: functions.log1p_of_exp(x),
}
"""By the names of `armpy.ops.GateFunction`, whose parameters they take."""


def _function_of(text: str) -> Callable[[CodeValue], CodeValue]:
    """The function of a name, and of its two parameters after colons."""
    name, *parameters = text.split(":")
    a, b = map(float, parameters or "00")
    return lambda x: _FUNCTIONS[name](x, a, b)


@cache
def make_product(isa: Isa, rows: int = 1) -> Primitive:
    """Make ``product(target, first, weights, state, count, panels, pitch)``.

    It writes `panels` of sums: `first`, and the `count` elements of a state times weights as
    `packed_panels` lays them out. Each sum is added up in the order of the state's elements,
    however many rows there are.

    Parameters
    ----------
    rows
        States, each `pitch` bytes after the one before, as are the rows of `target`.
    """
    line_bytes = PANEL * isa.vector_bytes
    # As many sums at once as do not wait for each other, and as registers hold with operands.
    together = 2 if rows == 1 else 1
    vectors = PANEL if rows == 1 else min(PANEL, max(1, (isa.num_registers // 2) // rows))

    @primitive(NOTHING, *(WORD,) * 7)
    def product(
        code: Code,
        target: CodeValue,
        first: CodeValue,
        weights: CodeValue,
        state: CodeValue,
        count: CodeValue,
        panels: CodeValue,
        pitch: CodeValue,
    ) -> None:
        panel_bytes = count * line_bytes
        several = panels / together * together
        offsets = [pitch * row for row in range(rows)]
        states = [state + offset for offset in offsets]

        def at_once(size: int) -> Callable[[CodeValue, list[CodeValue]], list[CodeValue]]:
            def turn(number: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
                place, head = number * line_bytes, weights + number * panel_bytes
                heads = [head + j * panel_bytes for j in range(size)]
                targets = [target + place + offset for offset in offsets]
                for begin in range(0, PANEL, vectors):
                    places = [(n, j) for n in range(size) for j in range(begin, begin + vectors)]
                    _multiply(isa, targets, first + place, heads, places, states, count)
                return []

            return turn

        loop(code, several, [], at_once(together), by=together)
        if together > 1:
            loop(code, panels, [], at_once(1), start=several)

    return product


def _multiply(
    isa: Isa,
    targets: Sequence[CodeValue],
    first: CodeValue,
    panels: Sequence[CodeValue],
    places: Sequence[tuple[int, int]],
    states: Sequence[CodeValue],
    count: CodeValue,
) -> None:
    """A row of sums for each target, of some panels' vectors: their numbers, and those within."""
    kind, line_bytes = vector(F32, isa.lanes), PANEL * isa.vector_bytes

    def step(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
        offset = number * line_bytes
        weights = [(panels[n] + offset).load(kind, j) for n, j in places]
        elements = [state.load(F32, number).splat(isa.lanes) for state in states]
        factors = [(element, weight) for element in elements for weight in weights]
        return [
            element.times_plus(weight, total)
            for (element, weight), total in zip(factors, totals, strict=True)
        ]

    begun = [first.load(kind, n * PANEL + j) for n, j in places] * len(states)
    totals = iter(loop(count.code, count, begun, step))
    for target in targets:
        for n, j in places:
            target.store(next(totals), n * PANEL + j)


@cache
def make_reset(isa: Isa, function: str) -> Primitive:
    """Make ``reset(target, sums, share, state, width, limit)``: a state that a gate lets through.

    The gate is the function of `sums` and `share` together, which are limited.
    """
    kind, compute = vector(F32, isa.lanes), _function_of(function)

    @primitive(NOTHING, *(WORD,) * 5, FLOAT)
    def reset(
        code: Code,
        target: CodeValue,
        sums: CodeValue,
        share: CodeValue,
        state: CodeValue,
        width: CodeValue,
        limit: CodeValue,
    ) -> None:
        high = limit.splat(isa.lanes)

        def step(number: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
            at = number * 4
            total = (share + at).load(kind) + (sums + at).load(kind)
            (target + at).store(compute(clamp(total, -high, high)) * (state + at).load(kind))
            return []

        loop(code, width, [], step, by=isa.lanes)

    return reset


@dataclass(frozen=True, slots=True)
class _Vector:
    """A vector of units at a step."""

    share: Callable[[int], CodeValue]  # the input's and the state's part of the gate of a number
    sums: Callable[[int], CodeValue]
    hidden: CodeValue  # the state; the cell's, or the product of the reset state
    state: CodeValue
    peephole: Callable[[int], CodeValue]  # the weights of the gate of a number
    limited: Callable[[CodeValue], CodeValue]
    functions: Sequence[Callable[[CodeValue], CodeValue]]

    def gate(self, number: int, function: int, added: CodeValue | None = None) -> CodeValue:
        total = self.share(number) + self.sums(number)
        total = total if added is None else total + added
        return self.functions[function](self.limited(total))


def _rnn(step: _Vector) -> tuple[CodeValue, CodeValue]:
    return step.gate(0, 0), step.state


def _gru(step: _Vector) -> tuple[CodeValue, CodeValue]:
    candidate = step.functions[1](step.limited(step.share(2) + step.state))
    return _mixed(step, candidate), step.state


def _gru_after(step: _Vector) -> tuple[CodeValue, CodeValue]:
    total = step.share(2) + step.gate(1, 0) * step.sums(2)
    return _mixed(step, step.functions[1](step.limited(total))), step.state


def _mixed(step: _Vector, candidate: CodeValue) -> CodeValue:
    """A GRU's new state."""
    update = step.gate(0, 0)
    return (1.0 - update) * candidate + update * step.hidden


def _lstm(step: _Vector) -> tuple[CodeValue, CodeValue]:
    forget = step.gate(2, 0, step.peephole(2) * step.state)
    return _let_out(step, forget, step.gate(0, 0, step.peephole(0) * step.state))


def _lstm_coupled(step: _Vector) -> tuple[CodeValue, CodeValue]:
    update = step.gate(0, 0, step.peephole(0) * step.state)
    return _let_out(step, 1.0 - update, update)


def _let_out(step: _Vector, forget: CodeValue, update: CodeValue) -> tuple[CodeValue, CodeValue]:
    """An LSTM's new states."""
    state = forget * step.state + update * step.gate(3, 1)
    return step.gate(1, 0, step.peephole(1) * state) * step.functions[2](state), state


_CELLS: Mapping[str, Callable[[_Vector], tuple[CodeValue, CodeValue]]] = {
    "RNN": _rnn,
    "GRU": _gru,
    "GRU_AFTER": _gru_after,
    "LSTM": _lstm,
    "LSTM_COUPLED": _lstm_coupled,
}


@cache
def make_update(isa: Isa, cell: str, names: tuple[str, ...]) -> Primitive:
    """Make ``update(sums, share, hidden, state, peephole, width, limit)``: a step's last part.

    `sums`, `share` and `peephole` have `width` elements for each gate. `hidden` is changed, as is
    an LSTM's cell state; a GRU's `state` is the product of the reset state.

    Parameters
    ----------
    cell
        "GRU_AFTER" resets after the product, "LSTM_COUPLED" forgets one minus the input gate.
    names
        Of functions, as `armpy.ops.RecurrentCell` has them; see `_function_of`.
    """
    kind, has_cell = vector(F32, isa.lanes), cell.startswith("LSTM")

    @primitive(NOTHING, *(WORD,) * 6, FLOAT)
    def update(
        code: Code,
        sums: CodeValue,
        share: CodeValue,
        hidden: CodeValue,
        state: CodeValue,
        peephole: CodeValue,
        width: CodeValue,
        limit: CodeValue,
    ) -> None:
        high = limit.splat(isa.lanes)

        def step(number: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
            def gates(place: CodeValue) -> Callable[[int], CodeValue]:
                return lambda gate: (place + (width * gate + number) * 4).load(kind)

            state_vector = _Vector(
                gates(share),
                gates(sums),
                gates(hidden)(0),
                gates(state)(0),
                gates(peephole),
                lambda x: clamp(x, -high, high),
                [_function_of(name) for name in names],
            )
            new_hidden, new_state = _CELLS[cell](state_vector)
            (hidden + number * 4).store(new_hidden)
            if has_cell:
                (state + number * 4).store(new_state)
            return []

        loop(code, width, [], step, by=isa.lanes)

    return update
