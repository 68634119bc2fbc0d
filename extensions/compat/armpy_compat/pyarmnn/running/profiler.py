"""PyArmNN's IProfiler: what calls of a network take, as text and as JSON."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from armpy.profiling import EventKind, ProfilingEvent, to_armnn_json
from armpy_compat.backend_names import arm_nn_id
from armpy_compat.pyarmnn.running.loaded_model import LoadedModel
from armpy_compat.pyarmnn.swig import SwigReference

_PREFIXES = {"CpuRef": "Ref", "CpuAcc": "Neon", "GpuAcc": "Cl", "EthosNAcc": "Ethos"}
_NOTHING = '{\n\t"ArmNN": {\n\t}\n}\n'
_SEQUENCE = "Event Sequence - Name | Duration (ms) | Start (ms) | Stop (ms) | Device"
_STATISTICS = "Event Stats - Name | Avg (ms) | Min (ms) | Max (ms) | Total (ms) | Count"


class IProfiler(SwigReference):
    """Profiler of a loaded network; made by `IRuntime.GetProfiler`."""

    def __init__(self, model: LoadedModel) -> None:
        self._model = model

    def EnableProfiling(self, enableProfiling: bool) -> None:
        """Measure calls from now on, or no longer."""
        self._model.profile(enableProfiling)

    def IsProfilingEnabled(self) -> bool:
        """Return whether calls are measured."""
        return self._model.is_profiled

    def as_json(self) -> str:
        """Return what was measured, in the form of Arm NN's profiler."""
        profiler = self._model.profiler
        if profiler is None:
            return _NOTHING
        # Arm NN's tools recognise backends by the beginnings of names.
        return to_armnn_json(profiler).replace('"NumbaAcc', '"Neon')

    def event_log(self) -> str:
        """Return what was measured as tables: each event, then statistics by name.

        Durations are microseconds, also where the heading says otherwise, as those of Arm NN.
        """
        profiler = self._model.profiler
        events: Sequence[ProfilingEvent] = () if profiler is None else profiler.events
        lines = ["", _SEQUENCE]
        durations: dict[str, list[float]] = defaultdict(list)
        for event in sorted(events, key=lambda event: event.start_us):
            name, device = _name(event), arm_nn_id(event.backend) or "Unknown"
            durations[name].append(event.duration_us)
            times = (event.duration_us, event.start_us, event.end_us)
            lines.append(
                f"{name:>50} " + "".join(f"{time:>20.6f}" for time in times) + f"{device:>20}"
            )
        lines += ["", _STATISTICS]
        for name, several in sorted(durations.items()):
            figures = (statistics.fmean(several), min(several), max(several), sum(several))
            lines.append(
                f"\t{name:>50}"
                + "".join(f"{figure:>10.6g}" for figure in figures)
                + f"{len(several):>10}"
            )
        return "\n".join([*lines, ""])


def _name(event: ProfilingEvent) -> str:
    """Arm NN's name of an event."""
    if event.kind is EventKind.EXECUTION:
        return "EnqueueWorkload"
    if not event.operation:
        return event.name
    backend = arm_nn_id(event.backend)
    return f"{_PREFIXES.get(backend, backend)}{event.operation}Workload_Execute"
