"""Probes: loads candidates in workers first, so that none can take the application along."""

from __future__ import annotations

import enum
import hashlib
import importlib
import json
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, field, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from armpy.backend import cache_directory
from armpy.core.dataclass import dataclass
from armpy.core.file_ownership import FileStamp
from armpy.core.processes.worker import Worker, WorkerSettings
from armpy.errors import ArmpyError, DeadObjectError
from armpy.plugins.discovery.candidate import (
    MISSING_DEVICE,
    Candidate,
    CandidateKind,
    CandidateStatus,
    Failure,
    RecordT,
)
from armpy.plugins.discovery.entry_point_cache import installed
from armpy.plugins.discovery.module_files import module_files, why_insecure
from armpy.plugins.discovery.references import find_top_module, module_locations
from armpy.store.owned_files import read_checked, write_checked

_log = logging.getLogger("armpy.plugins")

# Each imports a backend and all that it needs: more would wait for processors and memory.
_MAX_AT_ONCE = 8
_DUMP_AFTER = 0.6
"""Part of the time limit after which the worker writes down where it is."""

_FAILURE_LASTS_S = 3600.0
"""How long a library is not asked again that finds no device, or does not fit what opens it."""

_DRIVER_VARIABLES = ("ARMPY_", "CUDA_", "LD_LIBRARY_PATH", "ORT_", "VK_")
_DRIVER_PLACES = ("/dev", "/etc/ld.so.cache")
"""What changes when a device or a library of the system is added."""

_HANDLER = "armpy.plugins.probe_worker:Prober"


class ProbeOutcome(enum.Enum):
    """End of the process that loaded a candidate."""

    OK = "ok"
    REJECTED = "rejected"
    RAISED = "raised"
    EXITED = "exited"
    CRASHED = "crashed"
    HUNG = "hung"
    NOT_RUN = "not run"


_STATUSES = {
    ProbeOutcome.OK: CandidateStatus.FOUND,
    ProbeOutcome.REJECTED: CandidateStatus.REJECTED,
    ProbeOutcome.RAISED: CandidateStatus.FAILED,
    ProbeOutcome.CRASHED: CandidateStatus.CRASHED,
    ProbeOutcome.HUNG: CandidateStatus.HUNG,
    ProbeOutcome.NOT_RUN: CandidateStatus.REJECTED,
}


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Result of a probe; texts are empty as far as the candidate did not get there."""

    outcome: ProbeOutcome
    reason: str = ""
    """Why it did not pass."""
    traceback: str = ""
    """Traceback of the error."""
    output: str = ""
    """The last that it wrote to its standard output and error."""
    exit_code: int | None = None
    """Exit code of the process, if it exited."""
    backend_id: str = ""
    api_version: str = ""
    device_type: str = ""
    # Of one that could not be found.
    missing_module: str = ""
    missing_library: str = ""
    fix: str = ""
    """Remedy, where the reason does not name one."""
    details: Mapping[str, object] = field(default_factory=dict)
    """The result of examining the backend."""
    duration_s: float = 0.0
    """Time that the probe took when it ran."""
    remembered: bool = False
    """Whether this is the result of an earlier probe of the same files."""

    @property
    def passed(self) -> bool:
        """Return whether the backend was loaded and made."""
        return self.outcome is ProbeOutcome.OK

    @property
    def status(self) -> CandidateStatus:
        """The status of a candidate with this result."""
        if self.outcome is ProbeOutcome.EXITED:  # sys.exit() has a traceback, os._exit() none
            return CandidateStatus.FAILED if self.traceback else CandidateStatus.CRASHED
        return _STATUSES[self.outcome]

    @property
    def failure(self) -> Failure:
        """Why the candidate is left out, if it did not pass."""
        details = self.traceback or self.output
        fix = self.fix
        if self.outcome in (ProbeOutcome.CRASHED, ProbeOutcome.HUNG, ProbeOutcome.EXITED):
            fix = "Remove it, or use Runtime(probe=True), which leaves it out"
        return Failure(self.reason, details, self.missing_module, self.missing_library, fix)

    def as_fields(self) -> dict[str, object]:
        """The result in the form of JSON."""
        return {**asdict(self), "outcome": self.outcome.value}


def result_from(given: object) -> ProbeResult | None:
    """The result in fields of JSON; None if they are not those of one, which says why it failed."""
    if not isinstance(given, dict):
        return None
    try:
        details = dict(given.get("details") or {})
        outcome = ProbeOutcome(given["outcome"])
        result = ProbeResult(**(given | {"outcome": outcome, "details": details}))
    except (KeyError, TypeError, ValueError):
        return None
    texts = [getattr(result, member.name) for member in fields(result) if member.default == ""]
    numbers = result.exit_code, result.duration_s
    # From a process in which the candidate's code ran, which may say anything.
    is_sound = (
        all(isinstance(text, str) for text in texts)
        and all(number is None or type(number) in (int, float) for number in numbers)
        and isinstance(result.remembered, bool)
        and (result.passed or bool(result.reason.strip()))
    )
    return result if is_sound else None


def probe_records(
    records: Iterable[RecordT],
    timeout_s: float,
    examine: str,
    note: Callable[[RecordT, ProbeResult], None],
) -> list[tuple[Candidate, ProbeResult]]:
    """Probe the candidates whose outcome is unknown, and note each result."""
    every = [*records]
    probed: list[tuple[Candidate, ProbeResult]] = []
    # Again, as one that does not pass leaves its id to another.
    while chosen := [record for record in every if record.can_be_probed]:
        candidates = [record.candidate for record in chosen]
        results = probe_candidates(candidates, timeout_s=timeout_s, examine=examine)
        for record, result in zip(chosen, results, strict=True):
            record.has_passed_probe = result.passed
            note(record, result)
        probed += zip(candidates, results, strict=True)
    return probed


def probe_candidates(
    candidates: Sequence[Candidate], *, timeout_s: float = 10.0, examine: str = ""
) -> list[ProbeResult]:
    """Load each candidate in a process of its own, several at once.

    Parameters
    ----------
    timeout_s : float
        For each, without the time for which it waits for a processor; its children are then
        killed with it.
    examine : str
        ``"module:function"``: called in the process with the backend or plugin; its result,
        of the form of JSON, becomes `ProbeResult.details`.

    Returns
    -------
    list of ProbeResult
        Results in the order of the candidates.

    Notes
    -----
    Nothing is imported in this process. The other has the same ``sys.path`` and environment but
    none of Python's own environment variables, and no standard input.
    """
    if not candidates:
        return []
    probes = _Probes(timeout_s, examine)
    # Threads are enough, as all they do is to wait for processes.
    with ThreadPoolExecutor(min(len(candidates), _MAX_AT_ONCE), "armpy-probe") as pool:
        try:
            return list(pool.map(probes.result_of, candidates))
        # The user's interrupt: the pool waits for its threads, and they for the processes.
        except BaseException:
            probes.stop()
            raise


class _Probes:
    """Probes of several candidates, all of which the user's interrupt ends."""

    def __init__(self, timeout_s: float, examine: str) -> None:
        self._timeout_s = timeout_s
        self._examine = examine
        self._workers: set[Worker] = set()
        self._is_stopped = threading.Event()

    def result_of(self, candidate: Candidate) -> ProbeResult:
        """Recall the result for one candidate, or load it."""
        if candidate.kind is CandidateKind.CODE:
            reason = "only a backend found in a distribution or directory can be probed"
            return ProbeResult(ProbeOutcome.NOT_RUN, reason)
        settings = {"examine": self._examine, "timeout_s": f"{self._timeout_s:g}"}
        state = fingerprint(candidate, settings)
        if known := recall(candidate, state):
            return known
        start = time.monotonic()
        result = replace(self._load(candidate), duration_s=round(time.monotonic() - start, 3))
        # One that was killed for the user's interrupt says nothing about the candidate.
        if not self._is_stopped.is_set():
            remember(candidate, state, result)
        return result

    def stop(self) -> None:
        """End all of them."""
        self._is_stopped.set()
        # A copy, as the threads take theirs out meanwhile.
        for worker in [*self._workers]:
            worker.kill("the probe was stopped")

    def _load(self, candidate: Candidate) -> ProbeResult:
        # No bytecode is written, so that looking at a folder does not change it.
        settings = WorkerSettings(writes_bytecode=False)
        # The candidate may leave anything there, even files that cannot be deleted.
        with TemporaryDirectory(prefix="armpy-probe-", ignore_cleanup_errors=True) as folder:
            try:
                worker = Worker(_HANDLER, settings, where=candidate.label)
            except OSError as error:
                reason = f"it cannot be probed, for no process can be started: {error}"
                return ProbeResult(ProbeOutcome.NOT_RUN, reason)
            self._workers.add(worker)
            try:
                # It may have been started while the others were killed.
                if self._is_stopped.is_set():
                    worker.kill("the probe was stopped")
                dump_after_s = self._timeout_s * _DUMP_AFTER
                result = self._ask(worker, (candidate, self._examine, folder, dump_after_s))
            finally:
                worker.stop()
                self._workers.discard(worker)
            # After the process has ended, when all of its output is there.
            return replace(result, output=worker.output())

    def _ask(self, worker: Worker, request: object) -> ProbeResult:
        limit_s = self._timeout_s
        try:
            # In its own time, as on a busy machine a sound candidate would seem to hang.
            result = result_from(worker.request(request, timeout_s=limit_s, is_own_time=True))
        except DeadObjectError:
            code = worker.exit_code
            if code is None:
                late = f"it did not finish within {limit_s:g} s"
                return ProbeResult(ProbeOutcome.HUNG, late if worker.is_late else worker.reason)
            if code < 0:
                reason = worker.reason.replace("it was", "its process was", 1)
                return ProbeResult(ProbeOutcome.CRASHED, reason)
            reason = f"its process exited with code {code} while it was loaded"
            return ProbeResult(ProbeOutcome.EXITED, reason, exit_code=code)
        except ArmpyError as error:
            return ProbeResult(ProbeOutcome.RAISED, str(error))
        return result or ProbeResult(ProbeOutcome.EXITED, "what its process said cannot be read")


def fingerprint(
    candidate: Candidate,
    settings: Mapping[str, str],  # of the probe; results with others do not count
) -> str:
    """Digest that changes with a candidate and anything that it may import.

    The result is empty if the candidate's files cannot be found.

    Made of the files' paths, sizes, inodes and times, the versions of armpy and Python,
    ``sys.path`` and the distributions on it, and the environment variables of armpy and its
    backends: a wrong one must not be held against a backend when it is gone. For a library of a
    distribution also of the variables of drivers, and of the system's devices and libraries.
    """
    variables: tuple[str, ...] = ("ARMPY_",)
    system: Iterable[str] = ()
    if candidate.kind is CandidateKind.DIRECTORY:
        places = [candidate.path, *filter(None, [candidate.common])]
    elif candidate.kind is CandidateKind.LIBRARY:
        # It is asked for its devices, which come with drivers.
        variables, system = _DRIVER_VARIABLES, filter(os.path.exists, _DRIVER_PLACES)
        places = [candidate.path, *module_locations(find_top_module(candidate.opener))]
    else:
        places = module_locations(find_top_module(candidate.name))
    try:
        files = [
            (path, *FileStamp.of(os.stat(path)))
            for place in places
            for _, path in module_files(place)
        ]
        files += [(path, *FileStamp.of(os.stat(path))) for path in system]
    except OSError as error:
        _log.debug("the files of '%s' cannot be read: %s", candidate.label, error)
        return ""
    if not files:
        return ""
    package = importlib.import_module("armpy")  # by name: this package imports nothing above it
    state = [
        *_identity(candidate),
        *(candidate.name, candidate.distribution, candidate.distribution_version),
        *(package.__version__, sys.version, sys.executable),
        files,
        *([str(path) for path in sys.path], installed().distributions),
        sorted(settings.items()),
        sorted((name, value) for name, value in os.environ.items() if name.startswith(variables)),
    ]
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()


def recall(candidate: Candidate, state: str) -> ProbeResult | None:
    """The result of an earlier probe with the same fingerprint; None if there is none."""
    path = _cache_file(candidate)
    contents = read_checked(path) if state else None
    # Other users could have a deadly backend pass.
    if contents is None or why_insecure(str(path)):
        return None
    record = json.loads(contents)
    if record.get("until", math.inf) < time.time():
        return None
    result = result_from(record["result"]) if record["fingerprint"] == state else None
    return replace(result, remembered=True) if result else None


def remember(candidate: Candidate, state: str, result: ProbeResult) -> None:
    """Keep a result for the next time, if that can be done and is worth it."""
    # What a candidate raises is often cured by installing something else, and quick to ask; so is
    # a fault that the examination found, such as a missing driver.
    is_curable = bool(result.details.get("problems") or result.details.get(MISSING_DEVICE))
    outcomes = ProbeOutcome.OK, ProbeOutcome.CRASHED, ProbeOutcome.HUNG
    lasts = result.outcome in outcomes and not is_curable
    record: dict[str, object] = {"fingerprint": state, "result": result.as_fields()}
    if candidate.is_unidentified_library and not lasts:
        # To ask it takes a process and loads the library: not at each start.
        record["until"] = time.time() + _FAILURE_LASTS_S
        lasts = True
    if state and lasts:
        write_checked(_cache_file(candidate), json.dumps(record).encode())


def _identity(candidate: Candidate) -> list[object]:
    """Kind and place of a candidate, which stay when its contents change."""
    place: object = candidate.path or [candidate.backend_id, candidate.name]
    if candidate.kind is CandidateKind.LIBRARY:
        place = [candidate.path, candidate.backend_id]
    return [candidate.is_plugin, candidate.kind.value, place]


def _cache_file(candidate: Candidate) -> Path:
    # A new result takes the place of the last one, so that few are kept.
    name = hashlib.sha256(json.dumps(_identity(candidate)).encode()).hexdigest()[:32]
    return cache_directory() / "probes" / f"{name}.json"
