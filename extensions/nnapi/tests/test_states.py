"""Every call in every state of the tables, and random walks through the states."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import numpy as np
import pytest

from armpy.errors import BackendError
from armpy_nnapi import Burst, Execution, Memory
from armpy_testing.backends.device_memory import BufferDevice
from armpy_testing.backends.scripted_backend import ScriptedBackend, raises, right

from .nnapi_models import devices_of, fails, floats
from .nnapi_states import STATES, TABLES, column, outcome, outcomes, refused
from .nnapi_world import OP_FAILED, Do, World, drop_compilation


@pytest.mark.parametrize(("name", "state"), STATES)
def test_what_a_state_refuses_changes_nothing(name: str, state: str) -> None:
    expected = refused(name, state)
    with ExitStack() as stack:
        world = World(stack)
        TABLES[name][1][state](world)
        for _ in range(2):
            assert outcomes(world, name, expected) == expected


@pytest.mark.parametrize(("name", "state"), STATES)
def test_what_a_state_takes_succeeds(name: str, state: str) -> None:
    expected = {c: w for c, w in column(name, state).items() if c not in refused(name, state)}
    actual: dict[str, str] = {}
    for call, word in expected.items():
        with ExitStack() as stack:
            world = World(stack)
            TABLES[name][1][state](world)
            actual |= outcomes(world, name, {call: word})
    assert actual == expected


# Executions

State = tuple[str, str]
"""A table, and its column."""

NEW = ("execution", "new")
WAYS: dict[str, Callable[[World], None]] = {
    "compute": lambda w: w.execution.compute(),
    "burst": lambda w: w.burst.compute(w.execution),
    "start": lambda w: w.execution.start_compute().wait(30),
    "fenced": lambda w: w.execution.start_compute_with_dependencies([]).wait(30),
}


def succeed(way: str, world: World) -> None:
    """Compute with elements that were not there before."""
    world.values += 1
    WAYS[way](world)


def fail(way: str, error: Exception, world: World) -> None:
    """Compute on a device that fails, by an error of armpy's or of its own."""
    world.backend.script["execute"] = raises(error)
    with fails(OP_FAILED, "planted"):
        WAYS[way](world)
    del world.backend.script["execute"]


def let_go(world: World) -> None:
    """Let the execution that is under way come to its end."""
    world.gate.set()
    world.event.wait(30)
    world.gate.clear()
    del world.backend.script["execute"]


def signal(world: World) -> None:
    """Signal the fence that the execution waits for."""
    world.signal()
    world.event.wait(30)


def renew(world: World, *, reusable: bool) -> None:
    """Make another execution of the same compilation, or of another one if that is closed."""
    if world.compilation.is_finished:
        world.execution = Execution(world.compilation)
        world.execution.set_reusable(reusable)
    else:
        world.execute(reusable=reusable)


def steps_from(state: State, *, reusable: bool) -> list[tuple[Do, State]]:
    """What can be done in a state, and the state that it leads to."""
    _, name = state
    own = "reusable" if reusable else "execution"
    close: Do = lambda w: w.execution.close()  # noqa: E731 - a step like the others
    if name == "new":
        return [(lambda w: w.fill(w.execution), (own, "ready"))]
    if name == "running":
        return [(let_go, (own, "ended"))]
    if name == "waiting":
        return [(signal, (own, "ended"))]
    steps: list[tuple[Do, State]] = []
    if name == "ready" or (reusable and name in ("ended", "failed")):
        steps += [(partial(succeed, way), (own, "ended")) for way in WAYS]
        errors = BackendError("planted"), RuntimeError("planted")
        steps += [(partial(fail, way, e), (own, "failed")) for way in WAYS for e in errors]
        # Tables have no column for an execution that is under way for the second time.
        if name != "ended":
            steps += [(lambda w: w.begin(), (own, "running"))] * 2
    if name == "ready":
        steps += [(close, ("execution", "closed")), (drop_compilation, (own, "orphan"))]
        if not reusable:
            steps += [(lambda w: w.await_fence(), (own, "waiting"))] * 2
    if name == "ended":
        steps += [(close, ("reusable", "closed"))]
        if reusable:
            steps += [(drop_compilation, (own, "orphaned"))]
    return steps or [(partial(renew, reusable=reusable), NEW)]


@pytest.mark.parametrize("reusable", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_an_execution_is_in_the_same_state_however_it_got_there(seed: int, reusable: bool) -> None:
    choice = random.Random(seed)
    with ExitStack() as stack:
        world = World(stack)
        world.execute(reusable=reusable)
        state, path = NEW, []
        for _ in range(40):
            step, state = choice.choice(steps_from(state, reusable=reusable))
            step(world)
            path.append(state)
            expected = refused(*state)
            assert outcomes(world, state[0], expected) == expected, path
            if state[1] == "ended":
                assert np.array_equal(world.total, world.values + floats(10, 20)), path
                assert world.execution.get_output_operand_dimensions(0) == (2,)


# Memory

Contents = tuple[float, float] | None
"""Elements of memory; None where it has none."""

NUM_DESCRIBED = 3
"""Memories that are made from a description; one more is the application's."""


class MemoryWalk:
    """Memory for the inputs and the output of a sum, and the elements that each should have.

    Parameters
    ----------
    on_device : bool
        Whether the memory that is made from descriptions is a device's own.
    """

    def __init__(self, stack: ExitStack, seed: int, *, on_device: bool) -> None:
        self._choice = random.Random(seed)
        self._device = BufferDevice() if on_device else ScriptedBackend()
        self._world = world = World(stack)
        world.manager = stack.enter_context(devices_of(self._device))
        world.compile()
        world.burst = Burst(world.compilation)
        for index in (0, 1):
            world.desc.add_input_role(world.compilation, index, 1.0)
        world.desc.add_output_role(world.compilation, 0, 1.0)
        world.desc.finish()
        self.memories: list[Memory] = [
            Memory.create_from_desc(world.desc) for _ in range(NUM_DESCRIBED)
        ]
        self.memories.append(Memory.shared(8))
        self.expected: list[Contents] = [*[None] * NUM_DESCRIBED, (0, 0)]

    def contents(self) -> list[Contents]:
        """The elements that each memory has."""
        return [self._contents_of(memory) for memory in self.memories]

    def _contents_of(self, memory: Memory) -> Contents:
        target = Memory.shared(8)
        if outcome(self._world, lambda _: Memory.copy(memory, target), "void") == "void":
            return None
        first, second = np.frombuffer(target.data, np.float32).tolist()
        return first, second

    def step(self) -> str:
        """Copy or compute; return what was done."""
        return self._choice.choice((self._fill, self._copy, self._compute, self._compute))()

    def _fill(self) -> str:
        """Copy other elements into a memory."""
        index, number = self._choice.randrange(len(self.memories)), self._choice.randrange(100)
        Memory.copy(Memory(floats(number, -number)), self.memories[index])
        self.expected[index] = number, -number
        return f"fill {index}"

    def _copy(self) -> str:
        """Copy from one memory to another, or to itself."""
        source, target = self._choice.choices(range(len(self.memories)), k=2)
        elements = self.expected[source]
        word = "void" if elements is None and source != target else "."
        actual = outcome(
            self._world, lambda _: Memory.copy(self.memories[source], self.memories[target]), word
        )
        assert actual == word
        if word == ".":
            self.expected[target] = elements
        return f"copy {source} to {target}: {word}"

    def _compute(self) -> str:
        """Add a memory to itself, in one of the ways, on a device that may fail."""
        source, target = self._choice.choices(range(NUM_DESCRIBED), k=2)
        way, is_failing = self._choice.choice([*WAYS]), self._choice.random() < 0.3
        self._world.execution = execution = Execution(self._world.compilation)
        for index in (0, 1):
            execution.set_input_from_memory(index, self.memories[source], 0, 0)
        execution.set_output_from_memory(0, self.memories[target], 0, 0)
        elements = self.expected[source]
        if elements is None:
            word = "blank"
        elif source == target:
            word = "both"
        else:
            word = "failed" if is_failing else "."
        self._let_fail(is_failing)
        assert outcome(self._world, WAYS[way], word) == word
        self._let_fail(False)
        if word == "." and elements is not None:
            self.expected[target] = 2 * elements[0], 2 * elements[1]
        # Memory is looked at before an execution begins. A fenced one begins after its
        # dependencies, so that it has been started then, and its output is lost.
        elif word == "failed" or way == "fenced":
            self.expected[target] = None
        return f"{way} {source} to {target}: {word}"

    def _let_fail(self, is_failing: bool) -> None:
        """Let the device fail whatever it is to do, or not any more."""
        error = BackendError("planted")
        if isinstance(self._device, BufferDevice):
            self._device.fault = error if is_failing else None
        else:
            self._device.script["execute"] = raises(error) if is_failing else right()


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_memory_has_what_was_copied_or_computed_last(seed: int, on_device: bool) -> None:
    with ExitStack() as stack:
        walk, path = MemoryWalk(stack, seed, on_device=on_device), []
        for _ in range(40):
            path.append(walk.step())
            assert walk.contents() == walk.expected, path
