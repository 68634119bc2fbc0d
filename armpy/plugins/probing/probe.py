"""Loads candidates in child processes, so that none can take the application along."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from tempfile import TemporaryDirectory

from armpy.core.processes.worker import Worker, WorkerSettings
from armpy.errors import ArmpyError, DeadObjectError
from armpy.plugins.discovery.candidate import Candidate, CandidateKind
from armpy.plugins.probing.cache import fingerprint, recall, remember
from armpy.plugins.probing.result import ProbeOutcome, ProbeResult, result_from

# Each imports a backend and all that it needs: more would wait for processors and memory.
_MAX_AT_ONCE = 8
_DUMP_AFTER = 0.6
"""Part of the time limit after which the child writes down where it is."""

_HANDLER = "armpy.plugins.probing.child:Prober"


def probe_candidates(
    candidates: Sequence[Candidate], *, timeout_s: float = 10.0, examine: str = ""
) -> list[ProbeResult]:
    """Load each candidate in a child process of its own, several at once.

    Parameters
    ----------
    timeout_s : float
        For each, without the time for which it waits for a processor; what it started is then
        killed with it.
    examine : str
        ``"module:function"``: called in the child with the backend or plugin; what it returns, of
        the form of JSON, becomes `ProbeResult.details`.

    Returns
    -------
    list of ProbeResult
        In the order of the candidates.

    Notes
    -----
    Nothing is imported in this process. The child has the same ``sys.path`` and environment but
    none of Python's own environment variables, and no standard input.
    """
    running = _ProbeProcess()

    def probe_one(candidate: Candidate) -> ProbeResult:
        return _probe(candidate, timeout_s, examine, running)

    if not candidates:
        return []
    # Threads are enough, as all they do is to wait for processes.
    with ThreadPoolExecutor(min(len(candidates), _MAX_AT_ONCE), "armpy-probe") as pool:
        try:
            return list(pool.map(probe_one, candidates))
        # The user's interrupt: the pool waits for its threads, and they for the processes.
        except BaseException:
            running.stop()
            raise


def _probe(
    candidate: Candidate, timeout_s: float, examine: str, running: _ProbeProcess
) -> ProbeResult:
    if candidate.kind is CandidateKind.CODE:
        reason = "only what is found in a distribution or directory can be probed"
        return ProbeResult(ProbeOutcome.NOT_RUN, reason)
    settings = {"examine": examine, "timeout_s": f"{timeout_s:g}"}
    state = fingerprint(candidate, settings)
    if known := recall(candidate, state):
        return known
    start = time.monotonic()
    result = _run(candidate, timeout_s, examine, running)
    result = replace(result, duration_s=round(time.monotonic() - start, 3))
    # One that was killed for the user's interrupt says nothing about the candidate.
    if not running.is_stopped:
        remember(candidate, state, result)
    return result


def _run(
    candidate: Candidate, timeout_s: float, examine: str, running: _ProbeProcess
) -> ProbeResult:
    # No bytecode is written, so that looking at a folder does not change it.
    settings = WorkerSettings(writes_bytecode=False)
    # What the candidate leaves there may be anything, even what cannot be deleted.
    with TemporaryDirectory(prefix="armpy-probe-", ignore_cleanup_errors=True) as folder:
        try:
            worker = Worker(_HANDLER, settings, where=candidate.label)
        except OSError as error:
            reason = f"it cannot be probed, for no process can be started: {error}"
            return ProbeResult(ProbeOutcome.NOT_RUN, reason)
        try:
            running.add(worker)
            request = (candidate, examine, folder, timeout_s * _DUMP_AFTER)
            result = _ask(worker, request, timeout_s)
        finally:
            worker.stop()
            running.discard(worker)
        # After the process has ended, when all of its output is there.
        return replace(result, output=worker.output())


def _ask(worker: Worker, request: object, timeout_s: float) -> ProbeResult:
    try:
        # In its own time, as on a busy machine a sound candidate would seem to hang.
        result = result_from(worker.request(request, timeout_s=timeout_s, is_own_time=True))
    except DeadObjectError:
        code = worker.exit_code
        if code is None:
            reason = (
                f"it did not finish within {timeout_s:g} s" if worker.is_late else worker.reason
            )
            return ProbeResult(ProbeOutcome.HUNG, reason)
        if code < 0:
            reason = worker.reason.replace("it was", "its process was", 1)
            return ProbeResult(ProbeOutcome.CRASHED, reason)
        reason = f"its process exited with code {code} while it was loaded"
        return ProbeResult(ProbeOutcome.EXITED, reason, exit_code=code)
    except ArmpyError as error:
        return ProbeResult(ProbeOutcome.RAISED, str(error))
    return result or ProbeResult(ProbeOutcome.EXITED, "what its process said cannot be read")


class _ProbeProcess:
    """The processes of probes that are under way, which the user's interrupt ends."""

    def __init__(self) -> None:
        self._workers: set[Worker] = set()
        self.is_stopped = False

    def add(self, worker: Worker) -> None:
        self._workers.add(worker)
        # It may have been started while the others were killed.
        if self.is_stopped:
            worker.kill("the probe was stopped")

    def discard(self, worker: Worker) -> None:
        self._workers.discard(worker)

    def stop(self) -> None:
        self.is_stopped = True
        # A copy, as the threads take theirs out meanwhile.
        for worker in [*self._workers]:
            worker.kill("the probe was stopped")
