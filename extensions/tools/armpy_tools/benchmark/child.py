"""A subject in a process of its own: loads it and takes its turns when it is asked to."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from armpy.cli.written_option import written_option
from armpy.core.resident_memory import resident_bytes
from armpy.errors import ArmpyError
from armpy_tools.benchmark.bursts import Call, run_burst
from armpy_tools.benchmark.engines import load
from armpy_tools.benchmark.subject_model import ISubjectModel
from armpy_tools.benchmark.subjects import Subject

if TYPE_CHECKING:
    from armpy.core.processes.child import Handler


def make_handler() -> Handler:
    """Make the function that answers in the process."""
    return SubjectHandler()


class SubjectHandler:
    """Carries out requests with one subject; see `armpy_tools.benchmark.process`."""

    def __init__(self) -> None:
        self._subject: Subject | None = None
        self._loaded: ISubjectModel | None = None
        self._calls: list[Call] = []
        self._before_bytes = 0
        self._seed = 0

    def answer(self, request: Any, attachments: object) -> Mapping[str, object]:
        """Carry out a request; Any: as `Handler` has it. Errors name options of the command."""
        orders: dict[str, Callable[..., Mapping[str, object]]] = {
            "prepare": self._prepare,
            "run": self._run,
            "describe": self._describe,
            "layers": self._layers,
        }
        try:
            return orders[request.pop("order")](**request)
        except ArmpyError as error:
            # Here, as no argument comes out of a process.
            error.where, error.argument = error.location(written_option), None
            raise

    def _prepare(self, subject: Mapping[str, Any], seed: int) -> Mapping[str, object]:
        """Load the subject and run it once."""
        self._subject, self._seed = Subject(**subject), seed
        self._before_bytes, _ = resident_bytes()
        begin = time.perf_counter()
        loaded = load(self._subject)
        loaded.fit_shapes()
        load_s = time.perf_counter() - begin
        loaded.prepare_inputs(seed)
        self._loaded = loaded
        run = loaded.first_caller()
        begin = time.perf_counter()
        run()
        first_s = time.perf_counter() - begin
        self._calls = [loaded.caller() for _ in range(self._subject.callers)]
        return {"load_s": load_s, "first_s": first_s, "items": loaded.items}

    def _run(self, seconds: float, runs: int | None, unmeasured: int) -> Mapping[str, object]:
        """Take a turn."""
        return asdict(run_burst(self._calls, seconds, runs, unmeasured=unmeasured))

    def _describe(self, in_full: bool) -> Mapping[str, object]:
        """Report times and memory; asked last, as it may load more than running does."""
        assert self._loaded is not None  # it is prepared first
        _, peak = resident_bytes()
        weights, arena = self._loaded.memory() if in_full else (None, None)
        return {
            "placement": self._loaded.placement() if in_full else "",
            "peak_bytes": max(peak - self._before_bytes, 0),
            "weights_bytes": weights,
            "arena_bytes": arena,
        }

    def _layers(self, runs: int) -> Mapping[str, object]:
        """Measure layer by layer."""
        from armpy_tools.benchmark.layers import measure_layers  # noqa: PLC0415 - few ask for it

        assert self._subject is not None  # it is prepared first
        return {"layers": [asdict(e) for e in measure_layers(self._subject, self._seed, runs)]}
