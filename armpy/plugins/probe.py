"""Loads candidates in child processes, so that none can take the application along."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from armpy.plugins.candidate import Candidate, CandidateKind
from armpy.plugins.probe_cache import fingerprint, recall, remember
from armpy.plugins.probe_result import ProbeOutcome, ProbeResult, result_from

MAX_OUTPUT_BYTES = 64 << 10
"""How much is kept of what a candidate writes to its standard output and error."""

_MAX_AT_ONCE = 8
_DUMP_AFTER = 0.6
"""Part of the time limit after which the child writes down where it is."""

_POLL_S = 0.05
_CHILD = """\
import json, sys
request = json.loads(sys.argv[1])
sys.path[:] = request["sys_path"]
from armpy.plugins.probe_child import main
main(request)
"""


def probe_candidates(
    candidates: Sequence[Candidate], *, timeout_s: float = 10.0, examine: str = ""
) -> list[ProbeResult]:
    """Load each candidate in a child process of its own, several at once.

    Parameters
    ----------
    candidates : sequence of Candidate
    timeout_s : float
        For each; what it started is then killed with it.
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
    stop = threading.Event()

    def probe_one(candidate: Candidate) -> ProbeResult:
        return _probe(candidate, timeout_s, examine, stop)

    if not candidates:
        return []
    with ThreadPoolExecutor(min(len(candidates), _MAX_AT_ONCE), "armpy-probe") as pool:
        try:
            return list(pool.map(probe_one, candidates))
        except BaseException:
            stop.set()
            raise


def _probe(
    candidate: Candidate, timeout_s: float, examine: str, stop: threading.Event
) -> ProbeResult:
    """Recall the result for one candidate, or find it out."""
    if candidate.kind is CandidateKind.CODE:
        reason = "only what is found in a distribution or directory can be probed"
        return ProbeResult(ProbeOutcome.NOT_RUN, reason)
    settings = {"examine": examine, "timeout_s": f"{timeout_s:g}"}
    state = fingerprint(candidate, settings)
    if known := recall(candidate, state):
        return known
    start = time.monotonic()
    result = _run(candidate, timeout_s, examine, stop)
    result = replace(result, duration_s=round(time.monotonic() - start, 3))
    if not stop.is_set():
        remember(candidate, state, result)
    return result


def _run(
    candidate: Candidate, timeout_s: float, examine: str, stop: threading.Event
) -> ProbeResult:
    """Load one candidate in a child process."""
    with TemporaryDirectory(prefix="armpy-probe-", ignore_cleanup_errors=True) as folder:
        answer = Path(folder) / "answer.json"
        request = {
            "sys_path": [str(path) for path in sys.path],
            "kind": candidate.kind.value,
            "backend_id": candidate.backend_id,
            "name": candidate.name,
            "path": candidate.path,
            "entry": candidate.entry,
            "common": candidate.common,
            "distribution": candidate.distribution,
            "pin": candidate.pin,
            "common_pin": candidate.common_pin,
            "is_plugin": "yes" if candidate.is_plugin else "",
            "examine": examine,
            "answer": str(answer),
            "dump_after_s": str(timeout_s * _DUMP_AFTER),
        }
        # No bytecode is written, so that looking at a folder does not change it.
        command = [sys.executable, "-I", "-B", "-c", _CHILD, json.dumps(request)]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            reason = f"it cannot be probed, for no process can be started: {error}"
            return ProbeResult(ProbeOutcome.NOT_RUN, reason)
        with process:
            output = _Output(process)
            try:
                finished = _wait(process, output, time.monotonic() + timeout_s, stop)
            finally:
                _kill_group(process)
            text = output.text()
        if not finished:
            reason = f"it did not finish within {timeout_s:g} s"
            return ProbeResult(ProbeOutcome.HUNG, reason, output=text)
        return _judge(process.returncode, answer, text)


def _judge(code: int, answer: Path, output: str) -> ProbeResult:
    """The result of a process that ended by itself."""
    if code < 0:
        reason = f"its process was ended by {_signal_name(-code)}"
        return ProbeResult(ProbeOutcome.CRASHED, reason, output=output)
    try:
        result = result_from(json.loads(answer.read_bytes()))
    except (OSError, ValueError):
        result = None
    if result is None:
        reason = f"its process exited with code {code} while it was loaded"
        return ProbeResult(ProbeOutcome.EXITED, reason, output=output, exit_code=code)
    return replace(result, output=output)


def _wait(
    process: subprocess.Popen[bytes], output: _Output, deadline: float, stop: threading.Event
) -> bool:
    """Wait for a process's end; false if it has to be stopped instead."""
    while process.poll() is None:
        if time.monotonic() >= deadline or stop.is_set():
            return False
        if not output.read(_POLL_S):
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_S)
    return True


class _Output:
    """The last that a process writes, read without waiting for its end.

    Notes
    -----
    A process of its own that it has started may hold the pipe open for ever.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None  # it was asked for
        self._pipe = process.stdout.fileno()
        self._kept = bytearray()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._pipe, selectors.EVENT_READ)

    def read(self, timeout_s: float) -> bool:
        """Read what there is, waiting for it a while; false at the end."""
        if not self._selector.get_map():
            return False
        if self._selector.select(timeout_s):
            chunk = os.read(self._pipe, MAX_OUTPUT_BYTES)
            if not chunk:
                self._selector.unregister(self._pipe)
                return False
            self._kept += chunk
            del self._kept[:-MAX_OUTPUT_BYTES]
        return True

    def text(self) -> str:
        """Read what is left in the pipe, and give all that was kept."""
        self.read(0)  # a pipe holds no more than is read at once
        self._selector.close()
        return self._kept.decode(errors="replace")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and those that it has started in its group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _signal_name(number: int) -> str:
    """The name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
