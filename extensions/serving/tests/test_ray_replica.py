"""A replica of a deployment, without Ray: rows of requests, their counts, and its health."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
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


def outcomes(replica: ServedReplica) -> dict[str, float]:
    """Requests by outcome."""
    metrics = replica.served.metrics.metrics()
    return {m.labels["code"]: m.value for m in metrics if m.name == "armpy_requests"}


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


def test_a_model_that_fails_its_first_run_makes_no_replica(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object, **__: object) -> None:
        raise DeadObjectError("gone")

    monkeypatch.setattr(armpy.Model, "run", run)
    with pytest.raises(DeadObjectError, match="gone"):
        of_digits(make)


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


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the system has no /proc")
def test_a_killed_backend_is_replaced_until_it_is_in_quarantine(make: Make) -> None:
    replica = make(signature="serving_default", isolation="process", backends=["CpuRef"])
    runtime = replica.served.model.runtime
    image = {"image": pixels(np.arange(1))}
    for kills in range(1, 6):
        answers = asyncio.run(replica.run(image))
        np.testing.assert_array_equal(answers["output_0"], expected(1))
        asyncio.run(replica.check())
        pid = runtime.isolation["CpuRef"].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        # The batcher runs an item of a failed batch again.
        with suppress(DeadObjectError):
            asyncio.run(replica.run(image))
        assert runtime.isolation["CpuRef"].num_failures == kills
    with pytest.raises(DeadObjectError, match="quarantine"):
        asyncio.run(replica.run(image))
    with pytest.raises(ModelUnavailableError, match="quarantine"):
        asyncio.run(replica.check())
