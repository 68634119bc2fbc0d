"""PyArmNN's get_profiling_data: times out of a profile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class _Profile(Protocol):
    """All that `get_profiling_data` needs of a profiler."""

    def as_json(self) -> str:
        """Return the profile."""


class ProfilerData(NamedTuple):
    """Times of calls, and of the workloads in them."""

    inference_data: dict[str, Any]
    """``time_unit``, and ``execution_time`` with the time of each call."""
    per_workload_execution_data: dict[str, dict[str, Any]]
    """Times by workload, in the same form, and ``backend``."""


def get_profiling_data(profiler: _Profile) -> ProfilerData:
    """Read times out of a profile.

    Parameters
    ----------
    profiler : IProfiler
        Profiler that has measured a call.

    Raises
    ------
    IndexError
        If it has measured none.
    """
    measurements = _only(json.loads(profiler.as_json())["ArmNN"], "inference_measurements_")
    inference: dict[str, Any] = {}
    workloads: dict[str, dict[str, Any]] = {}
    for key, value in _only(measurements, "Execute_").items():
        if not isinstance(value, Mapping):
            continue
        if value["type"] == "Event":
            for inner_key, inner in value.items():
                if isinstance(inner, Mapping) and _is_time(inner_key, inner):
                    workloads[key] = {**_times(inner), "backend": _backend(key)}
        elif _is_time(key, value):
            inference.update(_times(value))
    return ProfilerData(inference, workloads)


def _only(entries: Mapping[str, Any], beginning: str) -> Mapping[str, Any]:
    """The first entry whose name begins so."""
    entry: Mapping[str, Any] | None = next(
        (value for key, value in entries.items() if key.startswith(beginning)), None
    )
    if entry is None:
        raise IndexError(f"the profile has no entry '{beginning}': nothing was measured")
    return entry


def _is_time(key: str, value: Mapping[str, Any]) -> bool:
    return key.startswith("Wall clock time_#") and value["type"] == "Measurement"


def _times(measurement: Mapping[str, Any]) -> dict[str, Any]:
    return {"time_unit": measurement["unit"], "execution_time": [*measurement["raw"]]}


def _backend(workload: str) -> str:
    """Arm NN's id of the backend that a workload's name stands for."""
    name = workload.lower()
    for word, backend in (
        ("ref", "CpuRef"),
        ("neon", "CpuAcc"),
        ("cl", "GpuAcc"),
        ("ethos", "EthosNAcc"),
    ):
        if word in name:
            return backend
    return "Unknown"
