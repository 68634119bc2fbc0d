"""A replica of a deployment, without Ray: rows of requests, their counts, and its health."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armpy
from armpy.errors import (
    DeadObjectError,
    ModelUnavailableError,
)
from armpy_serving import Batcher, health
from armpy_serving.ray.served_replica import ServedReplica
from armpy_testing.digits import MODEL as DIGITS

from .ray_node import expected, pixels

Make = Callable[..., ServedReplica]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes replicas, which are closed at the end."""
    replicas: list[ServedReplica] = []

    def replica(path: Path = DIGITS, **options: Any) -> ServedReplica:
        replicas.append(ServedReplica(str(path), "digits", 8, 1.0, {"num_threads": 1, **options}))
        return replicas[-1]

    yield replica
    for served in replicas:
        served.close()


def of_digits(make: Make) -> ServedReplica:
    """A replica of the digits model, with its signature's names."""
    return make(signature="serving_default")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("count", [1, 7, 8, 9, 100])
def test_a_request_may_have_any_number_of_rows(make: Make, count: int) -> None:
    replica = of_digits(make)
    answers = asyncio.run(replica.run({"image": pixels(np.arange(count))}))
    np.testing.assert_array_equal(answers["output_0"], expected(count))


def test_a_requests_other_rows_are_given_up_with_one_that_fails(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = of_digits(make)
    given_up = []

    async def run_async(
        _: Batcher, inputs: dict[str, Any], deadline_s: float | None = None
    ) -> None:
        if inputs["image"].flat[0] == pixels(np.arange(1)).flat[0]:
            raise DeadObjectError("gone")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            given_up.append(inputs)
            raise

    async def ask() -> None:
        with pytest.raises(DeadObjectError):
            await replica.run({"image": pixels(np.arange(3))})
        await asyncio.sleep(0)
        assert len(given_up) == 2

    monkeypatch.setattr(Batcher, "run_async", run_async)
    asyncio.run(ask())


def test_a_model_that_fails_or_was_closed_is_not_healthy(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = of_digits(make)

    def start(*_: object, **__: object) -> None:
        raise DeadObjectError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(armpy.Model, "start", start)
        patch.setattr(health, "IDLE_S", -1.0)
        with pytest.raises(ModelUnavailableError, match="gone"):
            asyncio.run(replica.check())
    asyncio.run(replica.check())
    replica.close()
    for call in (replica.check(), replica.run({"image": pixels(np.arange(1))})):
        with pytest.raises(ModelUnavailableError):
            asyncio.run(call)
