"""The priority of an execution is told to the backend that executes it."""

from __future__ import annotations

import pytest

from armpy.backend import current_priority
from armpy.model import Model
from armpy.types import Priority
from tests.support.fake_backends import FakeBackend, runtime_of
from tests.support.networks import chain, floats

X = {"x": floats(-1, 0, 2, 5)}


@pytest.mark.parametrize("priority", Priority)
@pytest.mark.parametrize("how", ["start", "bound", "bound and started"])
def test_workloads_are_told_the_priority(priority: Priority, how: str) -> None:
    told: list[Priority] = []
    backend = FakeBackend(before_execute=lambda: told.append(current_priority()))
    model = Model(chain(1), runtime_of(backend))
    if how == "start":
        model.start(X, priority=priority).result(30)
    elif how == "bound":
        model.bind(X, priority=priority, deadline_s=60)()
    else:
        model.bind(X).start(priority=priority).result(30)
    assert told == [priority]
    assert current_priority() is Priority.MEDIUM
    model(X["x"])
    assert told == [priority, Priority.MEDIUM]
