"""Time limits of loops, and of backends that execute loops themselves."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from armpy.backend import (
    Capabilities,
    Capability,
    control_flow,
    control_flow_time_left_s,
    current_cancellation,
)
from armpy.errors import (
    ExecutionTimeoutError,
    InvalidArgumentError,
)
from armpy.execution import RuntimeOptions
from armpy.execution.programs import planning
from armpy.execution.programs.compiled_program import CompiledProgram
from armpy.model import Model
from armpy_testing.backends.fake_backends import (
    runtime_of,
)
from armpy_testing.backends.looping_backend import Early, Endless, LoopingBackend, Queued
from armpy_testing.models.control_flow import (
    BOOL,
    chosen,
    counter,
    doubling,
    graph_of,
    growing,
    loaded,
    loop,
)
from armpy_testing.models.networks import floats, i32, ints, placement_of
from armpy_testing.watched_allocator import WatchedAllocator

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

    def test_a_loop_time_of_0_allows_no_turn(self) -> None:
        model = Model(loop(3), runtime_of(loop_timeout_s=0))
        np.testing.assert_array_equal(model(ints(3)), [3])
        with pytest.raises(ExecutionTimeoutError, match=r"got 0 turns"):
            model(ints(2))

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

    @pytest.mark.slow
    def test_preparations_in_a_loop_take_no_time_of_it_unless_there_are_many(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class SlowProgram(CompiledProgram):
            def __init__(self, *arguments: Any) -> None:  # Any: they are passed on
                super().__init__(*arguments)
                time.sleep(0.06)
                prepared.append(self)

        prepared: list[CompiledProgram] = []
        monkeypatch.setattr(planning, "CompiledProgram", SlowProgram)
        # The network inside is prepared anew for each length.
        model = Model(growing(5, is_read=True), runtime_of(loop_timeout_s=0.1))
        prepared.clear()
        np.testing.assert_array_equal(model(ints(0), floats(7))[1], [7, *[1] * 5])
        assert len(prepared) >= 4
        monkeypatch.setattr(control_flow, "NUM_FREE_PREPARATIONS", 2)
        model = Model(growing(200, is_read=True), runtime_of(loop_timeout_s=0.1))
        with pytest.raises(ExecutionTimeoutError, match=r"within 0.1 s"):
            model(ints(0), floats(7))

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


# Loops that backends execute themselves end in time, be it that the core stops them


@pytest.fixture
def backend() -> Iterator[LoopingBackend]:
    """A backend whose loops are let go in the end."""
    backend = LoopingBackend()
    yield backend
    backend.go.set()


LATE = r"^Looping / While 'loop': control flow takes too long\. Expected its end within 0.05 s "


def stopped(run: Callable[[], object], match: str = LATE) -> None:
    """Check that an execution is stopped soon."""
    started = time.perf_counter()
    with pytest.raises(ExecutionTimeoutError, match=match):
        run()
    assert time.perf_counter() - started < 5


class TestTheCore:
    """Stops loops that their backends do not stop."""

    @pytest.mark.parametrize("workload", [Endless, Queued])
    def test_a_loop_that_takes_too_long_is_abandoned(self, workload: type[Endless]) -> None:
        backend = LoopingBackend(workload)
        model = Model(loop(9), runtime_of(backend, loop_timeout_s=0.05))
        assert [layer.backend for layer in placement_of(model).layers] == ["Looping"]
        out = ints(7)
        stopped(lambda: model.run({"in0": ints(0)}, {"out0": out}))
        backend.go.set()
        assert backend.ended.wait(5)
        assert out == [7]
        backend.is_quick = True
        np.testing.assert_array_equal(model(ints(3)), [4])  # the next one is as before

    def test_a_loop_in_control_flow_of_the_core_shares_its_time(
        self, backend: LoopingBackend
    ) -> None:
        graph = chosen(loop(9), loop(9), i32(1))
        model = Model(graph, runtime_of(backend, loop_timeout_s=0.05))
        stopped(
            lambda: model(np.array([True]), ints(0)),
            r"^If 'choice' / then / Looping / While 'loop': .*within 0.05 s",
        )

    def test_bound_executions_and_working_memory_of_the_application_too(
        self, backend: LoopingBackend
    ) -> None:
        model = Model(loop(9), runtime_of(backend, loop_timeout_s=0.05))
        out = ints(7)
        bound = model.bind({"in0": ints(0)}, {"out0": out})
        stopped(bound)
        memory = model.create_working_memory()
        stopped(lambda: model.run({"in0": ints(0)}, memory=memory))
        memory.close()
        assert out == [7]
        backend.go.set()
        bound()
        assert out == [1]

    def test_what_is_abandoned_writes_to_nothing_of_the_next_bound_call(self) -> None:
        backend = LoopingBackend(Early)
        model = Model(loop(9), runtime_of(backend, loop_timeout_s=0.05))
        x, out = ints(0), ints(7)
        bound = model.bind({"in0": x}, {"out0": out})
        stopped(bound)

        def let_the_last_one_end() -> None:
            backend.go.set()
            assert backend.ended.wait(5)

        backend.wait = let_the_last_one_end  # type: ignore[method-assign]
        x[:] = 41
        bound()
        assert out == [42]

    def test_a_deadline_that_comes_first_counts(self, backend: LoopingBackend) -> None:
        model = Model(loop(9), runtime_of(backend, loop_timeout_s=60))
        stopped(lambda: model.run({"in0": ints(0)}, deadline_s=0.05), "stopped at its deadline")

    def test_memory_of_what_is_abandoned_is_given_back_when_it_ends(self) -> None:
        allocator = WatchedAllocator()
        backend = LoopingBackend()
        options = {"custom_allocators": {"Looping": allocator}, "loop_timeout_s": 0.05}
        # Between two loops lies a tensor of the backend's arena.
        graph = graph_of(
            [i32(1)],
            lambda net, i: net.add(counter(9), net.add(counter(9), i, name="loop"), name="behind"),
        )
        model = Model(graph, runtime_of(backend, **options))
        stopped(lambda: model(ints(0)))
        assert allocator.held
        backend.go.set()
        assert backend.ended.wait(5)
        model.close()
        for _ in range(500):
            if not allocator.held:
                break
            time.sleep(0.01)
        assert not allocator.held


class TestBackendsThatStopThemselves:
    """Are told the time, and run where their callers are."""

    def test_a_loop_is_told_its_time_and_not_handed_to_a_thread(self) -> None:
        capabilities: Capabilities = {Capability.LOOP_TIMEOUT: True}
        backend = LoopingBackend(capabilities=capabilities)
        threads: list[threading.Thread] = []
        backend.wait = lambda: threads.append(threading.current_thread())  # type: ignore[method-assign]
        model = Model(loop(9), runtime_of(backend, loop_timeout_s=0.5))
        np.testing.assert_array_equal(model(ints(3)), [4])
        assert threads == [threading.current_thread()]
        assert 0 < backend.left_s[-1] <= 0.5

    @pytest.mark.parametrize("is_bound", [False, True])
    def test_the_time_that_is_left_falls_while_an_outermost_loop_runs(self, is_bound: bool) -> None:
        """A backend that polls it stops in time; it was told the whole limit at each call."""
        backend = LoopingBackend(capabilities={Capability.LOOP_TIMEOUT: True})
        left_s: list[float] = []

        def wait() -> None:
            while not left_s or left_s[-1] > 0:
                left_s.append(control_flow_time_left_s(60))
                time.sleep(0.005)
            raise ExecutionTimeoutError("the loop is late")

        backend.wait = wait  # type: ignore[method-assign]
        model = Model(loop(9), runtime_of(backend, loop_timeout_s=0.05))
        call = model.bind({"in0": ints(0)}) if is_bound else partial(model, ints(0))
        for _ in range(2):  # each call has a budget of its own
            left_s.clear()
            with pytest.raises(ExecutionTimeoutError, match="the loop is late"):
                call()
            assert 0 < left_s[0] <= 0.05
            assert left_s == sorted(left_s, reverse=True)
            assert left_s[-1] <= 0

    def test_one_that_can_be_cancelled_is_told_to_stop(self) -> None:
        capabilities: Capabilities = {Capability.CANCELLABLE_EXECUTION: True}
        backend = LoopingBackend(capabilities=capabilities)
        seen = threading.Event()

        def wait() -> None:
            cancellation = current_cancellation()
            assert cancellation is not None
            while not cancellation.is_cancelled:
                time.sleep(0.001)
            seen.set()
            cancellation.check()

        backend.wait = wait  # type: ignore[method-assign]
        model = Model(loop(9), runtime_of(backend, loop_timeout_s=0.05))
        stopped(lambda: model(ints(0)))
        assert seen.wait(5)
