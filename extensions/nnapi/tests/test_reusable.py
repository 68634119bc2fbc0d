"""Executions that are computed again and again, alone and in bursts."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from armpy import Execution as BoundExecution
from armpy.execution import LoadedNetwork
from armpy.ops.operation import Array
from armpy_nnapi import Compilation, Execution
from armpy_testing.watchdogs import StillWatchdog, use_still_watchdog

from .nnapi_models import (
    compiled,
    floats,
    sum_model,
    until,
)
from .nnapi_world import World


@pytest.fixture(autouse=True)
def still_watchdog(monkeypatch: pytest.MonkeyPatch) -> StillWatchdog:
    """Nothing is released but by a look of the test's."""
    return use_still_watchdog(monkeypatch)


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[BoundExecution]:
    """What networks have been bound to from now on."""
    executions: list[BoundExecution] = []
    bind = LoadedNetwork.bind

    def noted(network: LoadedNetwork, *arguments: Any) -> BoundExecution:  # Any: passed on
        executions.append(bind(network, *arguments))
        return executions[-1]

    monkeypatch.setattr(LoadedNetwork, "bind", noted)
    return executions


@pytest.fixture(scope="module")
def compilation() -> Compilation:
    """The sum of two tensors of 2 elements."""
    return compiled(sum_model())


Reusable = tuple[Execution, Array, Array]


def reusable_of(compilation: Compilation) -> Reusable:
    """A reusable execution with its first input and its output."""
    execution = Execution(compilation)
    execution.set_reusable(True)
    values, total = floats(1, 2), np.zeros(2, np.float32)
    execution.set_input(0, values)
    execution.set_input(1, floats(10, 20))
    execution.set_output(0, total)
    return execution, values, total


@pytest.fixture
def reusable(compilation: Compilation) -> Reusable:
    return reusable_of(compilation)


def test_a_reusable_execution_is_prepared_once(
    reusable: Reusable, bound: list[BoundExecution]
) -> None:
    execution, _, _ = reusable
    execution.compute()
    (prepared,) = bound
    execution.compute()
    assert bound == [prepared]
    assert not prepared.is_closed


def test_a_buffer_that_is_input_and_output_is_reused_with_what_was_written() -> None:
    execution = Execution(compiled(sum_model()))
    execution.set_reusable(True)
    total = floats(1, 2)
    execution.set_input(0, total)
    execution.set_input(1, floats(1, 1))
    execution.set_output(0, total)
    for _ in range(3):
        execution.compute()
    assert total.tolist() == [4, 5]


@pytest.mark.filterwarnings("ignore:Setting the (shape|dtype):DeprecationWarning")  # NumPy 2.5
def test_changing_an_arrays_shape_after_it_was_set_changes_nothing(
    compilation: Compilation,
) -> None:
    values, total = floats(1, 2), np.zeros(2, np.float32)
    execution = Execution(compilation)
    execution.set_input(0, values)
    execution.set_input(1, values)
    execution.set_output(0, total)
    values.shape = (1, 2)
    total.dtype = np.int32  # type: ignore[assignment, misc]  # that is tested
    execution.compute()
    assert total.view(np.float32).tolist() == [2, 4]


def test_what_is_under_way_is_not_released(still_watchdog: StillWatchdog) -> None:
    with ExitStack() as stack:
        world = World(stack)
        world.occupy(reusable=True)
        for _ in range(3):
            still_watchdog.look()
        world.execution.release()
        world.gate.set()
        until(lambda: world.execution.is_prepared)
        for _ in range(2):  # it is watched all the same
            still_watchdog.look()
        assert not world.execution.is_prepared


def test_what_is_used_between_two_looks_is_kept(
    reusable: Reusable, still_watchdog: StillWatchdog
) -> None:
    execution, _, _ = reusable
    for _ in range(3):
        execution.compute()
        still_watchdog.look()
        assert execution.is_prepared
    still_watchdog.look()
    assert not execution.is_prepared
