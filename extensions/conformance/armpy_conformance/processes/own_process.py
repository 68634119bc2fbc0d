"""A backend's life in a process of its own: import, use, idle time, end of the interpreter."""

from __future__ import annotations

import gc
import json
import logging
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from armpy.backend import cache_directory
from armpy.core.dataclass import dataclass
from armpy.execution import Runtime, RuntimeOptions
from armpy.plugins import BackendRegistry
from armpy.types import REFERENCE_BACKEND_ID, BackendId
from armpy_conformance.case import Case
from armpy_conformance.processes.declared_facts import facts_of
from armpy_conformance.processes.process_state import (
    SPECIAL_FILTERS,
    ProcessState,
    flush_output,
    ignore_warnings,
)

_CHILD = """\
import sys
sys.path[:] = {path!r}
from armpy_conformance.processes.own_process import live
live({folder!r})
"""

_LIFE_S = 120.0
"""How long the process may take until its report."""

_END_S = 10.0
"""How long the interpreter may take to end after the report."""

_REST_S = 0.6
"""Time after an execution for which threads may wait actively for the next one."""

_IDLE_S = 0.3
"""Time for which the process then has nothing to do."""

_IDLE_TRIES = 3

_PLACES = ("the working directory", "the home directory", "the temporary directory")

_SHARED_MEMORY = "/dev/shm"

_IN_HOME = (".cache",)
"""Folders of the home directory that are made for what programs keep."""

FIRST_STAGES = ("discovering and importing the backend", "using it", "closing and unloading it")


@dataclass(frozen=True, slots=True)
class OwnProcess:
    """What became of a process in which a backend was imported, used and unloaded."""

    changes: Mapping[str, Sequence[str]]
    """Changed settings by stage, in the words of `ProcessState.changes`."""
    idle_share: float
    """Processor time per second without any execution."""
    facts: Mapping[str, object]
    """Facts that the backend stated about itself."""
    files: Mapping[str, Sequence[str]]
    """Files that are left, by place."""
    output: str
    """All that it has written to standard output and error."""
    end_s: float | None
    """Seconds that the interpreter took to end; None if it had to be killed."""
    exit_code: int
    children: Sequence[str]
    """Command lines of processes that are left."""
    problem: str = ""
    """Why there is no report; empty if there is one."""


@dataclass(frozen=True, slots=True)
class _Request:
    """Task of the process."""

    backend_id: BackendId
    options: RuntimeOptions
    cases: tuple[Case, ...]


def observe(
    backend_id: BackendId,
    options: RuntimeOptions,
    cases: Sequence[Case],
    environment: Mapping[str, str],
) -> OwnProcess:
    """Let a backend live in a new process with empty working, home and temporary directories.

    Parameters
    ----------
    options : RuntimeOptions
        Without a registry.
    cases : sequence of Case
        Networks of one layer, which the backend executes.
    environment : mapping of str to str
        Environment variables, as they were before this process made the backend.
    """
    with tempfile.TemporaryDirectory(prefix="armpy-kit-") as name:
        folder = Path(name).resolve()
        places = [folder / place for place in ("work", "home", "tmp")]
        for place in places:
            place.mkdir()
        request = _Request(backend_id, options, tuple(cases))
        shared_before = _in_shared_memory()
        (folder / "request").write_bytes(pickle.dumps(request))
        with (folder / "output").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-I", "-c", _CHILD.format(path=sys.path, folder=str(folder))],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=places[0],
                env=_environment(environment, places),
                start_new_session=True,
            )
        end_s = _ended(process, folder / "report")
        children = _left_in_session(process.pid)
        report: Mapping[str, object] = {}
        with suppress(OSError, ValueError):
            report = json.loads((folder / "report").read_text("utf-8"))
        files = {
            label: sorted(_files_in(place, _IN_HOME if place.name == "home" else ()))
            for label, place in zip(_PLACES, places, strict=True)
        }
        files[_SHARED_MEMORY] = sorted(_unused(_in_shared_memory() - shared_before))
        text = (folder / "output").read_text("utf-8", "replace")
    problem = str(report.get("problem", "" if report else "it has given no report"))
    return OwnProcess(
        report.get("changes", {}),  # type: ignore[arg-type]  # as `live` writes them
        float(report.get("idle_share", 0.0)),  # type: ignore[arg-type]  # as above
        report.get("facts", {}),  # type: ignore[arg-type]  # as above
        files,
        text,
        end_s,
        process.returncode,
        children,
        problem,
    )


def _environment(before: Mapping[str, str], places: Sequence[Path]) -> dict[str, str]:
    """The environment of the process; armpy's own cache stays where it is."""
    own = {"HOME": str(places[1]), "TMPDIR": str(places[2])}
    with suppress(RuntimeError):  # the user has no home
        own["ARMPY_CACHE_DIR"] = str(cache_directory())
    return {name: value for name, value in before.items() if name != "XDG_CACHE_HOME"} | own


def _ended(process: subprocess.Popen[bytes], report: Path) -> float | None:
    """Wait for a process's end, and kill it if it does not come; seconds after its report."""
    limit_s = time.monotonic() + _LIFE_S
    while process.poll() is None and not report.exists() and time.monotonic() < limit_s:
        time.sleep(0.01)
    started = time.monotonic()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None
    return time.monotonic() - started


def _left_in_session(session: int) -> list[str]:
    """Command lines of the processes of a session, which are ended."""
    left = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):  # it has ended
            fields = (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
                left.append(" ".join(a.decode("utf-8", "replace") for a in arguments[:3])[:80])
                os.kill(int(entry.name), signal.SIGKILL)
    return left


def _files_in(place: Path, allowed: Sequence[str]) -> Iterator[str]:
    """Paths of files below a directory, without those in some folders of it."""
    for path in place.rglob("*"):
        relative = path.relative_to(place)
        if not path.is_dir() and relative.parts[0] not in allowed:
            yield relative.as_posix()


def _in_shared_memory() -> set[str]:
    """Names of the user's files in shared memory; none where the system has no such folder."""
    names: set[str] = set()
    with suppress(OSError):
        for entry in os.scandir(_SHARED_MEMORY):
            with suppress(OSError):  # it was deleted meanwhile
                names |= {entry.name} if entry.stat().st_uid == os.getuid() else set()
    return names


def _unused(names: set[str]) -> Iterator[str]:
    """Those of some files in shared memory that no process has open or mapped any more."""
    used: set[str] = set()
    for process in Path("/proc").glob("[0-9]*") if names else ():
        with suppress(OSError):  # it has ended, or is another user's
            maps = (process / "maps").read_text("utf-8", "replace")
            used |= {name for name in names if name in maps}
            used |= {Path(os.readlink(link)).name for link in (process / "fd").iterdir()}
    yield from (names & _in_shared_memory()) - used  # others have deleted theirs by now


def live(folder: str) -> None:  # pragma: no cover - runs in the process
    """Import, use and unload a backend, and write a report; called in the new process."""
    request: _Request = pickle.loads((Path(folder) / "request").read_bytes())
    # Log messages and warnings go where the application decides, and are no output.
    logging.disable()
    ignore_warnings()
    _warm_up(request.cases)
    report: dict[str, object] = {}
    try:
        _live(request, report)
    except BaseException as error:  # noqa: BLE001 - reported
        report["problem"] = f"{type(error).__name__}: {error}"
    flush_output((sys.stdout, sys.stderr))
    path = Path(folder) / "report"
    path.with_suffix(".part").write_text(json.dumps(report), "utf-8")
    path.with_suffix(".part").rename(path)


def _warm_up(cases: Sequence[Case]) -> None:  # pragma: no cover - runs in the process
    """Run CpuRef, so that all that armpy itself imports and makes late is there."""
    reference = BackendRegistry.discover().get(REFERENCE_BACKEND_ID)
    registry = BackendRegistry()
    registry.register(REFERENCE_BACKEND_ID, lambda: reference)
    options = RuntimeOptions(backends=[REFERENCE_BACKEND_ID], registry=registry)
    with Runtime(options) as runtime:
        _run(runtime, cases)
    ProcessState.current()


def _live(request: _Request, report: dict[str, object]) -> None:  # pragma: no cover - as above
    changes: dict[str, list[str]] = {}
    report["changes"] = changes
    importing, using, closing = FIRST_STAGES
    with _noted(changes, importing, SPECIAL_FILTERS):
        registry = BackendRegistry.discover(request.options.plugin_options())
        backend = registry.get(request.backend_id)
    with _noted(changes, using):
        report["facts"] = facts_of(backend)
        options = replace(request.options, registry=registry, backends=[request.backend_id])
        runtime = Runtime(options)
        network_ids = _run(runtime, request.cases, unloads=False)
    report["idle_share"] = _idle_share()
    with _noted(changes, closing):
        for network_id in network_ids:
            runtime.unload_network(network_id)
        runtime.close()
        del runtime
        gc.collect()


@contextmanager
def _noted(  # pragma: no cover - runs in the process
    changes: dict[str, list[str]], stage: str, ignored: tuple[str, ...] = ()
) -> Iterator[None]:
    """Note the settings that differ after a stage."""
    before = ProcessState.current()
    yield
    changes[stage] = before.changes(ignored)


def _run(  # pragma: no cover - runs in the process
    runtime: Runtime, cases: Sequence[Case], *, unloads: bool = True
) -> list[int]:
    """Load the networks of cases, and execute each twice."""
    network_ids = []
    for case in cases:
        network_id = runtime.load_network(case.graph())
        for _ in range(2):
            runtime.enqueue_workload(network_id, case.feeds())
        if unloads:
            runtime.unload_network(network_id)
        else:
            network_ids.append(network_id)
    return network_ids


def _idle_share() -> float:  # pragma: no cover - runs in the process
    """Processor time per second of a process that executes nothing; the least of a few tries."""
    shares = []
    time.sleep(_REST_S)
    for _ in range(_IDLE_TRIES):
        before_s, started = time.process_time(), time.monotonic()
        threading.Event().wait(_IDLE_S)
        shares.append((time.process_time() - before_s) / (time.monotonic() - started))
        if shares[-1] < 0.02:
            break
    return min(shares)
