"""Sizes, counts and times that callers give: each is used, or refused with armpy's own error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import IsolationLimits, Runtime, RuntimeOptions
from armpy.backend import ExternalMemory
from armpy.compiler import OptimizerOptions
from armpy.errors import ArmpyError, InvalidArgumentError
from armpy.model import Model
from armpy_testing.digits import MODEL as DIGITS
from armpy_testing.models.networks import chain

ODD: list[object] = [
    *(-1, -(2**70), 2**62, 2**63, 2**70, True, 1.5, float("nan"), float("inf"), "3", None, [1]),
    *(np.int64(-5), np.float32(2), np.float32(np.nan), np.bool_(True), object()),
]


def refuses_or_uses(call: Callable[[object], object]) -> None:
    """Check that every odd argument is used, or refused as such."""
    for argument in ODD:
        with suppress(ArmpyError):
            call(argument)


X = {"x": np.ones(4, np.float32)}
FIELDS = [
    *((RuntimeOptions(), name) for name in ("program_cache_size", "memory_limit_bytes")),
    *((RuntimeOptions(), name) for name in ("num_threads", "execution_threads", "loop_timeout_s")),
    *((RuntimeOptions(), name) for name in ("backend_options", "memory_strategies")),
    *((RuntimeOptions(), name) for name in ("custom_allocators", "probe_timeout_s")),
    *((IsolationLimits(), name) for name in ("timeout_s", "grace_s", "start_timeout_s")),
    *((IsolationLimits(), name) for name in ("max_failures", "memory_bytes", "quarantine_s")),
    *((IsolationLimits(), name) for name in ("preparation_timeout_s", "failure_window_s")),
    *((OptimizerOptions(), name) for name in ("preparation_timeout_s", "passes")),
]


@pytest.mark.parametrize(
    ("options", "name"), FIELDS, ids=[f"{type(o).__name__}.{n}" for o, n in FIELDS]
)
def test_options_are_checked_when_they_are_made(options: RuntimeOptions, name: str) -> None:
    refuses_or_uses(lambda argument: replace(options, **{name: argument}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "call",
    [
        ExternalMemory.shared,
        ExternalMemory.of_array,
        lambda argument: ExternalMemory.of_file_descriptor(argument, 4).map(),
        lambda argument: ExternalMemory.of_file_descriptor(0, argument).map(),
        lambda argument: ExternalMemory.of_file_descriptor(0, 4, offset_bytes=argument).map(),
    ],
    ids=["shared", "of_array", "descriptor", "size", "offset"],
)
def test_memory_of_odd_sizes_is_refused(call: Callable[[object], object]) -> None:
    refuses_or_uses(call)


def test_sizes_of_numpy_are_sizes() -> None:
    memory = ExternalMemory.shared(np.int64(8))  # type: ignore[arg-type]
    assert type(memory.size_bytes) is int
    assert memory.map().shape == (8,)


def test_executions_with_odd_deadlines_and_priorities_are_refused() -> None:
    with Runtime(RuntimeOptions(backends=["CpuRef"], execution_threads=1)) as runtime:
        model = Model(chain(1), runtime)
        refuses_or_uses(lambda argument: model.run(X, deadline_s=argument))  # type: ignore[arg-type]
        refuses_or_uses(lambda argument: model.bind(X, deadline_s=argument)())  # type: ignore[arg-type]
        for argument in (*ODD, 0):
            with pytest.raises(InvalidArgumentError, match="there is no such priority"):
                model.start(X, priority=argument)  # type: ignore[arg-type]
        for number in (90, 100, np.int64(110)):
            future = model.start(X, priority=number)  # type: ignore[arg-type]
            np.testing.assert_array_equal(future.result(30)["y"], X["x"] + 1)


def test_networks_of_odd_ids_are_not_there() -> None:
    with Runtime(RuntimeOptions(backends=["CpuRef"])) as runtime:
        for argument in ODD:
            with pytest.raises(InvalidArgumentError, match="no network is loaded under the id"):
                runtime.enqueue_workload(argument, X)  # type: ignore[arg-type]


@pytest.mark.parametrize("is_light", [False, True])
@pytest.mark.parametrize("method", ["warm_up", "prepare"])
def test_a_shape_alone_is_not_one_to_prepare_for(
    method: str, is_light: bool, tmp_path: Path
) -> None:
    with armpy.load(DIGITS, backends=["NumbaAcc", "CpuRef"]) as model:
        model.save(tmp_path / "light.armpy")
    path = tmp_path / "light.armpy" if is_light else DIGITS
    with armpy.load(path, backends=["NumbaAcc", "CpuRef"]) as model:
        assert model.is_light is is_light
        with pytest.raises(InvalidArgumentError, match=r"^shapes: .*Write {'name': \(1, 3\)}"):
            getattr(model, method)([(1, 16, 16, 1)])
