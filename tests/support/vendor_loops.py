"""Faults of backends that run If and While themselves."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from armpy.backend import BackendOption
from armpy.errors import BackendError
from armpy.ops.operation import Array
from tests.support.planted_faults import Call, Fault, Flow, Turn, _equal
from tests.support.vendor_programs import spoil


class StaleCaptured(Fault):
    """What the body only reads is, from the second turn on, what it was in the execution before."""

    def __init__(self) -> None:
        self._kept: dict[int, list[Array]] = {}

    def given(self, turn: Turn, values: list[Array]) -> list[Array]:
        if turn.graph == "body" and turn.number == 0:
            self._last = self._kept.get(turn.key, [v.copy() for v in values])
            self._kept[turn.key] = [v.copy() for v in values]
        if turn.graph == "body" and turn.number:
            return [
                old if old.shape == v.shape and _equal(v, now) else v
                for v, old, now in zip(values, self._last, self._kept[turn.key], strict=True)
            ]
        return values


class ConditionIsLate(Fault):
    """The condition reads what the turn before the last one left."""

    def __init__(self) -> None:
        self._kept: dict[int, list[Array]] = {}

    def given(self, turn: Turn, values: list[Array]) -> list[Array]:
        if turn.graph != "condition":
            return values
        before = self._kept.get(turn.key) if turn.number else None
        self._kept[turn.key] = [v.copy() for v in values]
        return before or values


class AtLeastOnce(Fault):
    """A loop runs its body at least once."""

    def __init__(self) -> None:
        self._turns: dict[object, int] = {}

    def made(self, turn: Turn, results: list[Array]) -> list[Array]:
        if turn.graph == "condition" and turn.number == 0:
            return [np.ones_like(results[0])]
        return results


class Turns(Fault):
    """No more turns than some number."""

    def __init__(self, most: int) -> None:
        self._most = most

    def made(self, turn: Turn, results: list[Array]) -> list[Array]:
        if turn.graph == "condition" and turn.number >= self._most:
            return [np.zeros_like(results[0])]
        return results


class SharedCounter(Fault):
    """Loops inside loops go on counting: the inner one stops where it had come to."""

    def __init__(self) -> None:
        self._open: list[int] = []
        self._done: dict[int, int] = {}

    def made(self, turn: Turn, results: list[Array]) -> list[Array]:
        if turn.graph == "condition":
            if turn.number == 0:
                self._open.append(turn.key)
            is_inner = len(self._open) > 1
            if not results[0].any() and turn.key in self._open:
                self._open.remove(turn.key)
            if is_inner:
                self._done[turn.key] = self._done.get(turn.key, 0) + 1
                if self._done[turn.key] > 12:
                    if turn.key in self._open:
                        self._open.remove(turn.key)
                    return [np.zeros_like(results[0])]
        return results


class FirstSizes(Fault):
    """Results of later turns have the size of the first turn's."""

    def __init__(self) -> None:
        self._kept: dict[int, list[Array]] = {}

    def made(self, turn: Turn, results: list[Array]) -> list[Array]:
        if turn.graph == "body":
            if turn.number == 0:
                self._kept[turn.key] = results
            first = self._kept[turn.key]
            if any(a.shape != b.shape for a, b in zip(results, first, strict=True)):
                return [np.resize(a, b.shape) for a, b in zip(results, first, strict=True)]
        return results


class Swapped(Fault):
    """Results of a graph that are alike come in another order."""

    def __init__(self, graph: str) -> None:
        self._graph = graph

    def made(self, turn: Turn, results: list[Array]) -> list[Array]:
        alike = len({(r.shape, r.dtype) for r in results}) < len(results)
        return results[::-1] if turn.graph == self._graph and alike else results


class GraphWrong(Fault):
    """A graph is wrong under some condition."""

    def __init__(self, condition: Callable[[Turn, list[Array]], bool]) -> None:
        self._condition = condition

    def made(self, turn: Turn, results: list[Array]) -> list[Array]:
        if self._condition(turn, results):
            copies = [r.copy() for r in results]
            spoil(copies[-1])
            return copies
        return results


class PassesThrough(Fault):
    """A result that is one of the inputs is not copied out."""

    def __init__(self, graph: str) -> None:
        self._graph = graph
        self._given: dict[int, list[Array]] = {}

    def given(self, turn: Turn, values: list[Array]) -> list[Array]:
        if turn.graph == self._graph:
            self._given[turn.key] = values
        return values

    def made(self, turn: Turn, results: list[Array]) -> list[Array]:
        if turn.graph != self._graph:
            return results
        given = self._given[turn.key]
        return [np.zeros_like(r) if any(_equal(r, g) for g in given) else r for r in results]


class LoopStale(Fault):
    """The second execution of a loop begins with what the first one left."""

    def __init__(self) -> None:
        self._kept: dict[int, list[Array]] = {}

    def given(self, turn: Turn, values: list[Array]) -> list[Array]:
        kept = self._kept.get(turn.key)
        if turn.graph == "body" and turn.number == 0 and kept is not None:
            alike = all(a.shape == b.shape for a, b in zip(kept, values, strict=False))
            return [*kept, *values[len(kept) :]] if alike else values
        return values

    def made(self, turn: Turn, results: list[Array]) -> list[Array]:
        if turn.graph == "body":
            self._kept[turn.key] = results
        return results


class BodyInPlace(Fault):
    """The body writes results where captured values lie."""

    def carried(self, values: list[Array], results: list[Array]) -> list[Array]:
        for value in values[len(results) :]:
            if results and value.shape == results[0].shape and value.dtype == results[0].dtype:
                value[...] = results[0]
        return results


class SharedState(Fault):
    """What loops carry lies in one place for all executions of the layer."""

    def __init__(self) -> None:
        self._kept: dict[object, Array] = {}

    def carried(self, values: list[Array], results: list[Array]) -> list[Array]:
        made = []
        for number, result in enumerate(results):
            key = number, result.shape, result.dtype
            kept = self._kept.setdefault(key, np.empty_like(result))
            kept[...] = result
            time.sleep(0)
            made.append(kept)
        return made


class OwnBudget(Fault):
    """Each loop has its 2 seconds, whoever said how many."""

    def is_late(self, left_s: float) -> bool:
        return left_s <= -2


class OtherError(Fault):
    """A loop that is late fails like anything else."""

    def is_late(self, left_s: float) -> bool:
        if left_s <= 0:
            raise BackendError("the loop failed")
        return False


class StaysLate(Fault):
    """When a loop was late once, every loop is."""

    def __init__(self) -> None:
        self._was_late = False

    def is_late(self, left_s: float) -> bool:
        self._was_late |= left_s <= 0
        return self._was_late


class TurnsFail(Fault):
    """When a loop was late, the next one has one turn."""

    def __init__(self) -> None:
        self._was_late = False

    def is_late(self, left_s: float) -> bool:
        self._was_late |= left_s <= 0
        return left_s <= 0

    def made(self, turn: Turn, results: list[Array]) -> list[Array]:
        if self._was_late and turn.graph == "condition" and turn.number > 0:
            return [np.zeros_like(results[0])]
        return results


class BothBranches(Fault):
    """The decision of an If is that of the If which ran last, when there is one inside."""

    def __init__(self) -> None:
        self._last: dict[object, bool] = {}
        self._open = 0

    def given(self, turn: Turn, values: list[Array]) -> list[Array]:
        self._open += turn.graph in ("then", "else")
        return values

    def made(self, turn: Turn, results: list[Array]) -> list[Array]:
        self._open -= turn.graph in ("then", "else")
        return results

    def is_true(self, key: object, condition: bool) -> bool:
        if self._open:
            return True
        return condition


class KernelInLoop(Fault):
    """Layers inside graphs keep their result of the first turn when inputs have not grown."""

    def __init__(self) -> None:
        self._inside = 0

    def given(self, turn: Turn, values: list[Array]) -> list[Array]:
        self._inside += 1
        return values

    def made(self, turn: Turn, results: list[Array]) -> list[Array]:
        self._inside -= 1
        return results

    def after(self, call: Call) -> None:
        quantized = call.results[0].quantization is not None
        if self._inside and quantized:
            spoil(call.outputs[0])


class GrowsInLoop(Fault):
    """Each turn's values are remembered."""

    def __init__(self) -> None:
        self.kept: list[Array] = []

    def made(self, turn: Turn, results: list[Array]) -> list[Array]:
        self.kept.extend(r.copy() for r in results)
        return results


class UnreadOption(Flow):
    """Declares how often loops are unrolled, and forgets it."""

    @property
    def options(self) -> list[BackendOption]:  # type: ignore[override]
        return [BackendOption("unroll", 1, "How many turns at once.", minimum=1)]


def flow(make: Callable[[], Fault]) -> Callable[[], Flow]:
    return lambda: Flow(make())


def graph(condition: Callable[[Turn, list[Array]], bool]) -> Callable[[], Flow]:
    return lambda: Flow(GraphWrong(condition))


LOOPS: dict[str, Callable[[], Flow]] = {
    "captured-stale": flow(StaleCaptured),
    "condition-late": flow(ConditionIsLate),
    "at-least-once": flow(AtLeastOnce),
    **{f"turns-{n}": flow(lambda n=n: Turns(n)) for n in (1, 2, 5, 10, 64, 100, 500)},  # type: ignore[misc]
    "nested-counter": flow(SharedCounter),
    "first-sizes": flow(FirstSizes),
    "then-swapped": flow(lambda: Swapped("then")),
    "else-swapped": flow(lambda: Swapped("else")),
    "body-swapped": flow(lambda: Swapped("body")),
    "second-turn": graph(lambda t, r: t.graph == "body" and t.number == 1),
    "tenth-turn": graph(lambda t, r: t.graph == "body" and t.number == 9),
    "else-of-quantized": graph(lambda t, r: t.graph == "else" and r[0].dtype.itemsize == 1),
    "body-of-many": graph(lambda t, r: t.graph == "body" and len(r) >= 3),
    "then-of-two": graph(lambda t, r: t.graph == "then" and len(r) >= 2),
    "loop-of-matrix": graph(lambda t, r: t.graph == "body" and any(a.ndim >= 2 for a in r)),
    "then-passes-through": flow(lambda: PassesThrough("then")),
    "body-passes-through": flow(lambda: PassesThrough("body")),
    "execution-stale": flow(LoopStale),
    "captured-overwritten": flow(BodyInPlace),
    "state-shared": flow(SharedState),
    "own-budget": flow(OwnBudget),
    "other-error": flow(OtherError),
    "stays-late": flow(StaysLate),
    "one-turn-after-late": flow(TurnsFail),
    "inner-choice": flow(BothBranches),
    "quantized-inside": flow(KernelInLoop),
    "grows": flow(GrowsInLoop),
    "option": UnreadOption,
}
"""In a backend that runs control flow, each the makings of one."""
