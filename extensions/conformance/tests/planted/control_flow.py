"""Wrong choices and loops."""

from __future__ import annotations

import threading

import numpy as np

from armpy.ops.operation import Array

from .planting import Planted
from .shapes import Fault, Flow, Turn


class FirstDecision(Fault):
    """The decision of the first execution."""

    def __init__(self) -> None:
        self._kept: dict[object, bool] = {}

    def is_true(self, key: object, condition: bool) -> bool:
        return self._kept.setdefault(key, condition)


class Overwrites(Fault):
    """Each carried value is written where the next one is read from."""

    def carried(self, values: list[Array], results: list[Array]) -> list[Array]:
        carried_on: list[Array] = []
        for number, result in enumerate(results):
            same = [n for n, value in enumerate(values) if n < number and _equal(value, result)]
            carried_on.append(carried_on[same[0]] if same else result)
        return carried_on


def _equal(left: Array, other: Array) -> bool:
    """Whether two arrays hold the same."""
    return left.dtype == other.dtype and np.array_equal(left, other) and left.size > 1


class ByteCounter(Fault):
    """No more turns than a byte can count."""

    def __init__(self) -> None:
        self._turns: dict[object, int] = {}

    def is_true(self, key: object, condition: bool) -> bool:
        self._turns[key] = self._turns.get(key, 0) + 1 if condition else 0
        return condition and self._turns[key] < 256


class Patient(Fault):
    """Never looks at the time."""

    def is_late(self, left_s: float) -> bool:
        return False


class RunsOnce(Fault):
    """A loop's body runs before its condition is asked."""

    def made(self, turn: Turn, results: list[Array]) -> list[Array]:
        if turn.graph == "condition" and turn.number == 0:
            return [np.ones_like(results[0])]
        return results


class OuterCondition(Fault):
    """An If inside of another one goes by the outer condition."""

    def __init__(self) -> None:
        self._state = threading.local()

    def _outer(self) -> list[bool]:
        """Conditions of the Ifs that are under way."""
        if not hasattr(self._state, "conditions"):
            self._state.conditions = []
        conditions: list[bool] = self._state.conditions
        return conditions

    def given(self, turn: Turn, values: list[Array]) -> list[Array]:
        if turn.graph in ("then", "else"):
            self._outer().append(turn.graph == "then")
        return values

    def made(self, turn: Turn, results: list[Array]) -> list[Array]:
        if turn.graph in ("then", "else"):
            self._outer().pop()
        return results

    def is_true(self, key: object, condition: bool) -> bool:
        outer = self._outer()
        return outer[0] if outer else condition


class StaleElse(Fault):
    """A second graph of an If reads what it read in the execution before."""

    def __init__(self) -> None:
        self._last: dict[int, list[Array]] = {}

    def given(self, turn: Turn, values: list[Array]) -> list[Array]:
        if turn.graph != "else":
            return values
        before = self._last.get(turn.key, values)
        self._last[turn.key] = [np.array(value) for value in values]
        return before


CONTROL_FLOW_FAULTS: dict[str, Planted] = {
    "if/first-decision": Planted("If/", Flow, FirstDecision),
    "while/overwrites": Planted("While/", Flow, Overwrites),
    "while/byte-counter": Planted("While/", Flow, ByteCounter),
    "while/patient": Planted(
        "contract/loops/loops-stop-at-their-time-out", Flow, Patient, "to its end"
    ),
    "blind-flow/runs-once": Planted("While/", Flow, RunsOnce),
    "blind-flow/outer-condition": Planted("If/", Flow, OuterCondition),
    "blind-flow/stale-else": Planted("If/", Flow, StaleElse),
    "loops/stale-else": Planted(
        "contract/loops/state-goes-through-loops-and-choices",
        Flow,
        StaleElse,
        "of a network with state",
    ),
}
"""By class and name."""
