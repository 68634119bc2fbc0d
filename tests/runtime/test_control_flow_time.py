"""Control flow ends at the latest after a time."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from armpy.errors import (
    ExecutionTimeoutError,
    InvalidArgumentError,
)
from armpy.execution import RuntimeOptions
from armpy.model import Model
from tests.support.control_flow import (
    BOOL,
    chosen,
    counter,
    doubling,
    graph_of,
    loaded,
    loop,
)
from tests.support.fake_backends import (
    runtime_of,
)
from tests.support.networks import i32, ints

YES, NO = np.array([True]), np.array([False])
TURNS = loop(1 << 30)


class TestTimeouts:
    """Loops end at the latest after a time that the options or the execution say."""

    def test_an_endless_loop_ends_with_an_error_that_says_what_to_do(self) -> None:
        model = Model(TURNS, runtime_of(loop_timeout_s=0.05))
        with pytest.raises(
            ExecutionTimeoutError,
            match=r"^While 'loop': .*within 0.05 s \(loop_timeout_s\); got \d+ turns.*Raise loop",
        ):
            model(ints(0))

    def test_two_seconds_are_the_default(self) -> None:
        assert RuntimeOptions().loop_timeout_s == 2

    def test_zero_allows_no_turn(self) -> None:
        model = Model(loop(3), runtime_of(loop_timeout_s=0))
        np.testing.assert_array_equal(model(ints(3)), [3])
        with pytest.raises(ExecutionTimeoutError, match=r"got 0 turns"):
            model(ints(2))

    def test_none_sets_no_limit(self) -> None:
        assert Model(loop(3), runtime_of(loop_timeout_s=None))(ints(0)) == 3

    def test_an_execution_may_say_another_time(self) -> None:
        model = Model(loop(3), runtime_of(loop_timeout_s=0))
        network = loaded(model)
        assert network.run([ints(0)], loop_timeout_s=None)[0] == 3
        assert network.run([ints(0)], loop_timeout_s=60)[0] == 3
        with pytest.raises(ExecutionTimeoutError, match=r"within 0 s"):
            network.run([ints(0)])
        other = Model(loop(3), runtime_of())
        with pytest.raises(ExecutionTimeoutError, match=r"within 0 s"):
            loaded(other).run([ints(0)], loop_timeout_s=0)

    def test_a_loop_in_a_loop_has_a_time_of_its_own(self) -> None:
        inner = chosen(TURNS, loop(2), i32(1))
        graph = graph_of(
            [BOOL, i32(1)],
            lambda net, c, i: net.add(inner.layers[0].operation, c, i, name="outer"),
        )
        model = Model(graph, runtime_of(loop_timeout_s=0.05))
        np.testing.assert_array_equal(model(NO, ints(0)), [2])
        with pytest.raises(ExecutionTimeoutError, match=r"^If 'outer' / then / While 'loop': "):
            model(YES, ints(0))
        with pytest.raises(ExecutionTimeoutError, match=r"within 0 s"):
            loaded(model).run([NO, ints(0)], loop_timeout_s=0)

    def test_choices_in_choices_end_in_time(self) -> None:
        """31 levels, each of which runs the next one twice, would take for ever."""
        np.testing.assert_array_equal(Model(doubling(5), runtime_of())(YES, ints(0)), [32])
        model = Model(doubling(31), runtime_of(loop_timeout_s=0.1))
        started = time.monotonic()
        with pytest.raises(
            ExecutionTimeoutError,
            match=r"^If '(one|other)' / .*within 0.1 s .*; got more choices to make",
        ):
            model(YES, ints(0))
        assert time.monotonic() - started < 10

    def test_a_single_choice_needs_no_time(self) -> None:
        model = Model(chosen(loop(0), loop(0), i32(1)), runtime_of(loop_timeout_s=0))
        np.testing.assert_array_equal(model(YES, ints(5)), [5])

    def test_loops_one_behind_the_other_have_the_whole_time_each(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """So that NNAPI's time-out is that of every loop."""
        seconds = itertools.count()
        graph = graph_of(
            [i32(1)], lambda net, i: net.add(counter(12), net.add(counter(6), i, name="first"))
        )
        model = Model(graph, runtime_of(loop_timeout_s=8))
        monkeypatch.setattr(time, "perf_counter", lambda: float(next(seconds)))
        np.testing.assert_array_equal(model(ints(0)), [12])
        assert next(seconds) > 12  # so often was it asked, once a turn
        with pytest.raises(ExecutionTimeoutError, match=r"^While 'first': .*got 7 turns"):
            model(ints(-2))

    @pytest.mark.parametrize("timeout", [-1, float("nan"), "2", True])
    def test_what_is_no_time_is_refused(self, timeout: object) -> None:
        with pytest.raises(InvalidArgumentError, match=r"loop_timeout_s: .*0 or more, or None"):
            RuntimeOptions(loop_timeout_s=timeout)  # type: ignore[arg-type]
        model = Model(loop(3), runtime_of())
        with pytest.raises(InvalidArgumentError, match=r"0 or more, or None for no limit"):
            loaded(model).run([ints(0)], loop_timeout_s=timeout)  # type: ignore[arg-type]
