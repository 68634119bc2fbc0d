from __future__ import annotations

from itertools import islice

import pytest

from armpy.core.turns import orders, take_turns, timed
from lab.benchmarks.common import calls_in


class Scene:
    """Things to run that take their time by a clock of their own."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.ran: list[str] = []

    def clock(self) -> float:
        return self.now_s

    def run(self, name: str, duration_s: float) -> None:
        self.ran.append(name)
        self.now_s += duration_s


def test_things_take_turns_until_the_time_is_over() -> None:
    scene = Scene()
    turns = {
        "a": timed(lambda: scene.run("a", 0.125), clock=scene.clock),
        "b": timed(lambda: scene.run("b", 0.375), clock=scene.clock),
    }
    times = take_turns(turns, 5.0, clock=scene.clock)
    assert sorted(scene.ran[:2]) == ["a", "b"]
    assert scene.ran[2:4] == scene.ran[1::-1]
    assert times["a"] == pytest.approx([0.125] * 10)
    assert times["b"] == pytest.approx([0.375] * 10)


def test_rounds_have_limits() -> None:
    assert take_turns({"a": lambda: 1}, 0.0, least=3) == {"a": [1, 1, 1]}
    assert take_turns({"a": lambda: 1}, 60.0, most=7) == {"a": [1] * 7}
    assert take_turns({}, 60.0) == {}


def test_an_order_is_followed_by_its_opposite() -> None:
    rounds = list(islice(orders("abcd"), 6))
    assert [order[::-1] for order in rounds[::2]] == rounds[1::2]
    assert len({tuple(order) for order in rounds}) > 2
    assert all(sorted(order) == [*"abcd"] for order in rounds)


def test_short_calls_are_timed_several_at_a_time() -> None:
    scene = Scene()
    call = lambda: scene.run("a", 0.002)  # noqa: E731
    assert calls_in(0.01, call, scene.clock) == 5
    cold = iter([0.5, 0.004, 0.4, 0.3])
    assert calls_in(0.01, lambda: scene.run("b", next(cold, 0.002)), scene.clock) == 5
    assert calls_in(0.0, call, scene.clock) == 1
    before = len(scene.ran)
    assert timed(call, 5, scene.clock)() == pytest.approx(0.002)
    assert len(scene.ran) == before + 5
