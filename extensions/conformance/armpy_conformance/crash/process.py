"""A process for one case, and what became of it."""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import traceback
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from armpy.core.dataclass import dataclass
from armpy.core.processes.worker import Worker, WorkerSettings
from armpy.errors import ArmpyError, DeadObjectError, DeviceNotFoundError
from armpy.execution import RuntimeOptions
from armpy.types import BackendId
from armpy_conformance.crash.cases import AFTERWARDS, CASES, SURVEY
from armpy_conformance.crash.children import watch_children
from armpy_conformance.crash.result import CrashOutcome
from armpy_conformance.crash.scene import Scene
from armpy_conformance.differential_run import FailureError

_HANDLER = f"{__name__}:CaseServer"
_KILLED = "it was killed as it was to be"
_SHOWN_CHARACTERS = 20_000
_END_S = 10.0
"""How long a process may take to end when its case is through."""


@dataclass(frozen=True, slots=True)
class Task:
    """Task of a process; it can be pickled."""

    case: str  # id of a case
    network: str
    backend_id: BackendId
    options: RuntimeOptions = field(repr=False)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """End of a process: outcome and last output."""

    outcome: CrashOutcome
    text: str
    output: str = ""  # the last that it wrote


def run_apart(task: Task, timeout_s: float, kill_after_s: float | None = None) -> ProcessEnd:
    """Do something in a new process.

    Parameters
    ----------
    timeout_s : float
        After this it hangs.
    kill_after_s : float, optional
        When it is killed, counted from its announcement; SUCCESS then.
    """
    ready, announced = os.pipe()
    worker = Worker(_HANDLER, WorkerSettings(ends_in_order=True), where=task.backend_id)
    is_over = threading.Event()
    killer = threading.Thread(target=_kill_after, args=(worker, ready, kill_after_s, is_over))
    killer.start()
    try:
        ended = _followed(worker, task, announced, timeout_s)
        is_over.set()
        if ended.outcome is CrashOutcome.SUCCESS and kill_after_s is None:
            code = worker.finish(_END_S)
            if code != 0:
                ended = _of_exit_code(code, "when the case was through, ")
    finally:
        worker.stop()
        os.close(announced)
        killer.join()
        os.close(ready)
    written = worker.output()[-_SHOWN_CHARACTERS:].strip()
    return ProcessEnd(ended.outcome, ended.text, written)


def _kill_after(
    worker: Worker, ready: int, kill_after_s: float | None, is_over: threading.Event
) -> None:
    """Kill a process some time after its announcement, if it is to be killed."""
    if kill_after_s is not None and os.read(ready, 1) and not is_over.wait(kill_after_s):
        worker.kill(_KILLED)


def _followed(worker: Worker, task: Task, announced: int, timeout_s: float) -> ProcessEnd:
    """Return a process's answer about its case, or how it ended instead."""
    try:
        answer = worker.request((task, timeout_s), [announced], timeout_s=timeout_s)
    except DeadObjectError:
        if worker.reason == _KILLED:
            return ProcessEnd(CrashOutcome.SUCCESS, "killed")
        if worker.is_late:
            return ProcessEnd(CrashOutcome.HANG, f"no end within {timeout_s:g} s")
        if worker.exit_code is None:
            return ProcessEnd(CrashOutcome.CRASH, f"the process was ended: {worker.reason}")
        return _of_exit_code(worker.exit_code)
    except DeviceNotFoundError:
        raise  # no case can be run
    except ArmpyError as error:
        return ProcessEnd(CrashOutcome.CRASH, str(error))
    text = str(answer.get("text"))
    outcome = CrashOutcome.SUCCESS if answer.get("done") is True else CrashOutcome.FAILURE
    if children := str(answer.get("children") or ""):
        text += f"; of the processes that it started, a fault ended {children}"
        if outcome is CrashOutcome.SUCCESS:
            outcome = CrashOutcome.CRASH
    return ProcessEnd(outcome, text)


def _of_exit_code(code: int | None, when: str = "") -> ProcessEnd:
    """The outcome of a process that has ended without its last word, or badly after it."""
    if code is None:
        return ProcessEnd(CrashOutcome.HANG, f"{when}the process did not end within {_END_S:g} s")
    if code >= 0:
        return ProcessEnd(CrashOutcome.CRASH, f"{when}the process exited with code {code}")
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return ProcessEnd(CrashOutcome.CRASH, f"{when}the process was ended by {name}")


class CaseServer:
    """Runs a case in a worker."""

    def answer(
        self,
        request: tuple[Task, float],
        attachments: Any,  # Any: of the core's own type, which has `files`
    ) -> Mapping[str, object]:
        """Run a case and say what came of it; shortly before it hangs, where its threads are."""
        task, timeout_s = request
        (announced,) = attachments.files
        faulthandler.dump_traceback_later(0.8 * timeout_s)
        faults = watch_children()
        case = next(case for case in (SURVEY, *CASES, AFTERWARDS) if case.id == task.case)

        def announce() -> None:
            os.write(announced, b".")

        try:
            scene = Scene(task.backend_id, task.options, task.network, task.seed)
            text = case.run(scene, announce)
            return {"done": True, "text": text, "children": ", ".join(faults())}
        except DeviceNotFoundError:
            raise
        except FailureError as failure:
            return {"done": False, "text": str(failure), "children": ", ".join(faults())}
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the case's answer
            traceback.print_exc()
            return {"done": False, "text": f"{type(error).__name__}: {error}"}
        finally:
            faulthandler.cancel_dump_traceback_later()
