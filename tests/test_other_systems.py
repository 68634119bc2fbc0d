"""Systems that are not here: macOS with what it lacks taken away, and what Windows refuses."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.core.processes.worker import find_in_force
from armpy.store import locks
from armpy_testing.digits import MODEL

_ON_MACOS = """
import hashlib, os, socket, sys
import numba, numpy  # which look at the system that they were built for
for name in ("sched_getaffinity", "sched_setaffinity", "memfd_create", "eventfd"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SOCK_SEQPACKET",):
    if hasattr(socket, name):
        delattr(socket, name)
sys.platform = "darwin"
import armpy
model = armpy.load(sys.argv[1], backends=sys.argv[2].split(","))
answer = model(model.inputs[0].zeros())
print(hashlib.sha256(answer.tobytes()).hexdigest())
from armpy.core.processes.worker import find_in_force
print(sorted(find_in_force()))
isolated = armpy.load(sys.argv[1], backends=["CpuRef"], isolation="process")
print(hashlib.sha256(isolated(model.inputs[0].zeros()).tobytes()).hexdigest())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="macOS is POSIX")
@pytest.mark.parametrize("backends", ["CpuRef", "NumbaAcc,CpuRef"])
def test_models_run_without_what_macos_lacks(backends: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ON_MACOS, str(MODEL), backends],
        env={**os.environ, "ARMPY_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    digest, in_force, isolated = done.stdout.splitlines()
    model = armpy.load(str(MODEL), backends=["CpuRef"])
    expected = np.asarray(model(model.inputs[0].zeros()))
    assert digest == isolated == hashlib.sha256(expected.tobytes()).hexdigest()
    assert "'files'" in in_force


@pytest.mark.skipif(sys.platform != "win32", reason="Windows' environments have such a program")
def test_workers_are_not_started_by_the_program_of_a_virtual_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It would start Python in another process, for which the worker's socket is not.
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python.exe"))
    assert find_in_force()["files"] == "not confined"


def test_windows_releases_a_lock_before_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[bool] = []
    path = tmp_path / "a.lock"
    monkeypatch.setattr(locks, "_try_lock", lambda _: None)
    unlink = Path.unlink

    def look(self: Path) -> None:
        opened = {os.readlink(fd) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()}
        closed.append(str(path) not in opened)
        unlink(self)

    if not Path("/proc/self/fd").exists():
        pytest.skip("the system does not show open files")
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(Path, "unlink", look)
    with locks.locked(path, time.perf_counter() + 1) as is_held:
        assert is_held
    assert closed == [True]
    assert not path.exists()
