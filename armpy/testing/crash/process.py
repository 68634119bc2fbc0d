"""A process for one case, and what became of it."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import field
from multiprocessing.connection import Connection

from armpy.records import dataclass
from armpy.runtime import RuntimeOptions
from armpy.testing.crash.cases import AFTERWARDS, CASES, SURVEY
from armpy.testing.crash.result import CrashOutcome
from armpy.testing.crash.scene import Scene
from armpy.testing.trial import FailureError
from armpy.types import BackendId

_CONTEXT = multiprocessing.get_context("spawn")
_READY, _DONE, _FAILED = "ready", "done", "failed"
_SHOWN_BYTES = 3000
_END_S = 10.0
"""How long a process may take to end when its case is through."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a process is to do; it can be pickled.

    Parameters
    ----------
    case : str
        Id of a case.
    network : str
    backend_id : str
    options : RuntimeOptions
    seed : int
    """

    case: str
    network: str
    backend_id: BackendId
    options: RuntimeOptions = field(repr=False)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a process.

    Parameters
    ----------
    outcome : CrashOutcome
    text : str
    output : str
        The last that it wrote.
    was_ready : bool
        Whether it has announced that it may be killed.
    """

    outcome: CrashOutcome
    text: str
    output: str = ""
    was_ready: bool = False


def run_apart(task: Task, timeout_s: float, kill_after_s: float | None = None) -> Ended:
    """Do something in a new process.

    Parameters
    ----------
    task : Task
    timeout_s : float
        After this it hangs.
    kill_after_s : float, optional
        When it is killed, counted from its announcement; SUCCESS then.
    """
    connection, theirs = _CONTEXT.Pipe()
    with tempfile.TemporaryFile() as output:
        arguments = (theirs, task, _path_of(output.fileno()), timeout_s)
        process = _CONTEXT.Process(target=_child, args=arguments)
        process.start()
        theirs.close()
        try:
            ended = _follow(connection, process.sentinel, timeout_s, kill_after_s)
            if ended is None:
                process.join(_END_S)
                ended = _of_exit_code(process.exitcode)
            elif ended.outcome is CrashOutcome.SUCCESS and kill_after_s is None:
                process.join(_END_S)
                if process.exitcode != 0:
                    ended = _of_exit_code(process.exitcode, "when the case was through, ")
        finally:
            process.kill()
            process.join()
            connection.close()
        output.seek(max(output.seek(0, os.SEEK_END) - _SHOWN_BYTES, 0))
        written = output.read().decode(errors="replace").strip()
    return Ended(ended.outcome, ended.text, written, ended.was_ready)


def _path_of(descriptor: int) -> str:
    """A name by which another process of the same user opens an open file."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def _follow(
    connection: Connection, sentinel: int, timeout_s: float, kill_after_s: float | None
) -> Ended | None:
    """Wait for a process's last word; None if it has ended without one."""
    until = time.monotonic() + timeout_s
    was_ready = False
    while True:
        left_s = until - time.monotonic()
        if was_ready and kill_after_s is not None:
            left_s = kill_after_s
        try:
            if not connection.poll(max(left_s, 0)):
                if was_ready and kill_after_s is not None:
                    return Ended(CrashOutcome.SUCCESS, "killed", was_ready=True)
                return Ended(CrashOutcome.HANG, f"no end within {timeout_s:g} s")
            word, text = connection.recv()
        except (EOFError, OSError):
            return None
        if word == _READY:
            was_ready = True
        else:
            outcome = CrashOutcome.SUCCESS if word == _DONE else CrashOutcome.FAILURE
            return Ended(outcome, text, was_ready=was_ready)


def _of_exit_code(code: int | None, when: str = "") -> Ended:
    """The outcome of a process that has ended without its last word, or badly after it."""
    if code is None:
        return Ended(CrashOutcome.HANG, f"{when}the process did not end within {_END_S:g} s")
    if code >= 0:
        return Ended(CrashOutcome.CRASH, f"{when}the process exited with code {code}")
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return Ended(CrashOutcome.CRASH, f"{when}the process was ended by {name}")


def _child(
    connection: Connection, task: Task, output: str, timeout_s: float
) -> None:  # pragma: no cover - apart
    """Run a case and say what came of it; shortly before it hangs, where its threads are."""
    descriptor = os.open(output, os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.close(descriptor)
    faulthandler.enable()
    faulthandler.dump_traceback_later(0.8 * timeout_s)
    case = next(case for case in (SURVEY, *CASES, AFTERWARDS) if case.id == task.case)
    announce: Callable[[], None] = lambda: connection.send((_READY, ""))  # noqa: E731
    try:
        scene = Scene(task.backend_id, task.options, task.network, task.seed)
        connection.send((_DONE, case.run(scene, announce)))
    except FailureError as failure:
        connection.send((_FAILED, str(failure)))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the case's answer
        traceback.print_exc()
        connection.send((_FAILED, f"{type(error).__name__}: {error}"))
    faulthandler.cancel_dump_traceback_later()
