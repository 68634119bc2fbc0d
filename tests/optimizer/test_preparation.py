"""Preparation: what backends are told that prepare a part."""

from __future__ import annotations

import time

import pytest

from armpy.backend import NO_OPTIONS, OptimizationViews, OptionValues, PreparationRequest
from armpy.errors import InvalidArgumentError
from armpy.graph import SubgraphView
from armpy.optimizer import OptimizerOptions
from armpy.runtime import Model, NetworkProperties
from armpy.types import Preference, Priority
from tests.support.fake_backends import CompilingBackend, FakeBackend, runtime_of
from tests.support.networks import diamond


class Told(CompilingBackend):
    """A backend of contract 1.3 that writes down what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[PreparationRequest] = []

    def optimize_subgraph_for_network(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        self.requests.append(request)
        return super().optimize_subgraph(view)


def load(backend: FakeBackend, **options: object) -> Model:
    optimizer = OptimizerOptions(**options)  # type: ignore[arg-type]  # each test's own
    return Model(diamond(), runtime_of(backend), properties=NetworkProperties(optimizer=optimizer))


def test_a_backend_is_told_preference_priority_and_deadline() -> None:
    backend = Told()
    before = time.perf_counter()
    load(
        backend,
        preference=Preference.LOW_POWER,
        priority=Priority.HIGH,
        preparation_timeout_s=60.0,
    )
    (request,) = backend.requests
    assert request.preference is Preference.LOW_POWER
    assert request.priority is Priority.HIGH
    assert request.deadline_s is not None
    assert before + 60 <= request.deadline_s <= time.perf_counter() + 60


def test_without_options_there_is_no_deadline_and_nothing_is_preferred() -> None:
    backend = Told()
    load(backend)
    expected = (NO_OPTIONS, Preference.ORDER, Priority.MEDIUM, None)
    (request,) = backend.requests
    told = request.model_options, request.preference, request.priority, request.deadline_s
    assert told == expected


def test_a_backend_of_an_older_contract_gets_its_old_call() -> None:
    class Older(CompilingBackend):
        def optimize_subgraph_with_options(
            self, view: SubgraphView, model_options: OptionValues
        ) -> OptimizationViews:
            raise AssertionError("no model options were given")

    backend = Older()
    load(backend, preference=Preference.FASTEST, preparation_timeout_s=60.0)
    assert [len(view.layers) for view in backend.offered] == [4]


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan")])
def test_a_preparation_without_time_is_refused(timeout: float) -> None:
    with pytest.raises(InvalidArgumentError, match=r"preparation_timeout_s: .*no time"):
        OptimizerOptions(preparation_timeout_s=timeout)


def test_a_preference_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"preference: .*Expected preference or fastest"):
        OptimizerOptions(preference="quick")  # type: ignore[arg-type]  # the test's point
