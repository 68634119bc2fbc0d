"""Every call in every state of the tables, and random walks through the states."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import numpy as np
import pytest

from armpy.errors import BackendError
from armpy_nnapi import Execution
from armpy_testing.backends.scripted_backend import raises

from .nnapi_models import fails, floats
from .nnapi_states import STATES, TABLES, column, outcomes, refused
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


def fail(way: str, world: World) -> None:
    """Compute on a device that fails."""
    world.backend.script["execute"] = raises(BackendError("planted"))
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
        steps += [(partial(fail, way), (own, "failed")) for way in WAYS]
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
