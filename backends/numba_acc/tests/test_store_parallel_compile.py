"""Kernels that several processes compile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.native.loader import load_objects
from armpy_numba_acc.store import objects, parallel_compile
from armpy_numba_acc.store.objects import object_codes
from armpy_numba_acc.store.parallel_compile import KERNELS_PER_PROCESS

from armpy.core.processes.helper import start_sending

from .support import note_compiled

ISA = host_isas()[-1]
KERNELS = [
    *(Kernel("move_runs", (size,)) for size in (1, 2, 4, 8)),
    *(Kernel(name) for name in ("copy", "fill", "flip", "gather_runs")),
    *(Kernel("put_run", (size,)) for size in (4, 8)),
    *(Kernel("python_call", (size,)) for size in (16, 24)),
]
"""As many as two processes share, and soon compiled."""

Processes = list[subprocess.Popen[bytes]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("ARMPY_NUMBA_CACHE", raising=False)
    monkeypatch.setattr(parallel_compile, "usable_cores", lambda: 2)
    return tmp_path / "numba_acc"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Processes:
    """Processes that were started."""
    processes: Processes = []
    start = parallel_compile._started

    def noted() -> subprocess.Popen[bytes]:
        processes.append(start())
        return processes[-1]

    monkeypatch.setattr(parallel_compile, "_started", noted)
    return processes


@pytest.fixture
def made_here(monkeypatch: pytest.MonkeyPatch) -> list[Kernel]:
    """Kernels that this process has compiled, without compiling them."""
    return note_compiled(monkeypatch)


def interpreter(folder: Path, does: str, name: str = "python-of-a-test") -> str:
    """Name of a shell script that is called as an interpreter would be."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o700)
    return str(path)


def patient(compiled: Callable[[Kernel, Isa], bytes], folder: Path, made: list[Kernel]) -> object:
    """Compiles the second kernel when another process has left one on disk."""

    def compile_here(kernel: Kernel, isa: Isa) -> bytes:
        until_s = time.monotonic() + 100
        while len(made) == 1 and len([*folder.glob("object-*.entry")]) < 2:
            assert time.monotonic() < until_s, "no other process compiles"
            time.sleep(0.01)
        made.append(kernel)
        return compiled(kernel, isa)

    return compile_here


@pytest.mark.slow
def test_two_processes_compile_what_one_would(
    folder: Path, started: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels: list[Kernel] = []
    compiled = objects._compiled
    monkeypatch.setattr(objects, "_compiled", patient(compiled, folder, kernels))
    together = object_codes(KERNELS, ISA, 2)
    assert len(started) == 1
    assert 0 < len(kernels) < len(KERNELS)
    assert together.keys() == set(KERNELS)
    assert all(load_objects({kernel.symbol: code for kernel, code in together.items()}).values())
    assert not [*folder.glob("*.lock")]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "does", ["exit 1", "kill -9 $$", "exec sleep 100", "cat >/dev/null; exit 3"]
)
def test_what_another_process_leaves_undone_is_compiled_here(
    does: str,
    tmp_path: Path,
    started: Processes,
    made_here: list[Kernel],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", interpreter(tmp_path, does))
    began_s = time.monotonic()
    assert object_codes(KERNELS, ISA, 2).keys() == set(KERNELS)
    assert {*made_here} == {*KERNELS}
    assert [process.poll() is not None for process in started] == [True]
    assert time.monotonic() - began_s < 50


@pytest.mark.usefixtures("folder")
def test_a_process_that_is_killed_while_it_compiles_is_stood_in_for(
    started: Processes, made_here: list[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = objects._kept_or_made

    def killing(*arguments: object) -> bytes:
        started[0].kill()
        return original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(objects, "_kept_or_made", killing)
    assert object_codes(KERNELS, ISA, 2).keys() == set(KERNELS)
    assert made_here


@pytest.mark.usefixtures("folder")
def test_no_process_is_left_when_compiling_is_interrupted(
    started: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(objects, "_compiled", interrupted)
    with pytest.raises(KeyboardInterrupt):
        object_codes(KERNELS, ISA, 2)
    assert [process.poll() is not None for process in started] == [True]


def test_a_process_ends_with_the_application(folder: Path) -> None:
    workers = parallel_compile.CompileWorkers()
    workers.start(KERNELS * 100, ISA, 1, objects.compile_free)
    (process,) = workers._processes
    assert process.stdin is not None
    process.stdin.close()
    process.wait(100)
    assert len([*folder.glob("object-*.entry")]) < len(KERNELS)


@pytest.mark.usefixtures("folder", "made_here")
@pytest.mark.parametrize(
    ("count", "processes"),
    [(len(KERNELS), 1), (2 * KERNELS_PER_PROCESS - 1, 2)],
    ids=["one thread", "few kernels"],
)
def test_little_work_is_done_by_one_process(count: int, processes: int, started: Processes) -> None:
    object_codes(KERNELS[:count], ISA, processes)
    assert not started


@pytest.mark.usefixtures("folder", "made_here")
def test_two_processes_share_eight_kernels(started: Processes) -> None:
    object_codes(KERNELS[:8], ISA, 2)
    assert len(started) == 1


@pytest.mark.usefixtures("folder", "made_here")
@pytest.mark.parametrize("reason", ["cores", "name", "frozen", "none"])
def test_one_process_compiles_where_no_other_can(
    reason: str, tmp_path: Path, started: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason == "cores":
        monkeypatch.setattr(parallel_compile, "usable_cores", lambda: 1)
    elif reason == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    else:
        name = interpreter(tmp_path, "exit", "application") if reason == "name" else ""
        monkeypatch.setattr(sys, "executable", name)
    assert object_codes(KERNELS, ISA, 2).keys() == set(KERNELS)
    assert not started


@pytest.mark.usefixtures("folder", "made_here")
def test_one_process_compiles_where_the_system_starts_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> subprocess.Popen[bytes]:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(parallel_compile, "_started", refuse)
    assert object_codes(KERNELS, ISA, 2).keys() == set(KERNELS)


def test_a_stopped_process_is_ended_and_leaves_its_kernels(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(parallel_compile, "_END_S", 0.05)
    workers = parallel_compile.CompileWorkers()
    # More than a pipe holds, to a process that reads nothing.
    process = parallel_compile._started()
    os.kill(process.pid, signal.SIGSTOP)
    start_sending(process, bytes(1 << 20))
    workers._processes.append(process)
    workers.finish()
    assert process.wait(60) == -signal.SIGKILL
    assert f"process {process.pid} has not compiled its kernels" in caplog.text
    workers.stop()
