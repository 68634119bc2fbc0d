"""Locks between processes."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from armpy.store import locks
from armpy.store.locks import locked
from armpy_testing.systems import NEEDS_LINKS

HOLDER = """
import sys, time
from pathlib import Path
from armpy.store.locks import locked
with locked(Path(sys.argv[1])) as is_held:
    print(is_held, flush=True)
    time.sleep(60)
"""

COUNTER = """
import sys
from pathlib import Path
from armpy.store.locks import locked
count = Path(sys.argv[2])
for _ in range(25):
    with locked(Path(sys.argv[1])) as is_held:
        assert is_held
        count.write_text(str(int(count.read_text()) + 1))
"""


def test_a_lock_is_held_by_one_thread_at_a_time(tmp_path: Path) -> None:
    inside, most = [], []

    def run() -> None:
        for _ in range(20):
            with locked(tmp_path / "a.lock") as is_held:
                assert is_held
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.0005)
                inside.pop()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(most), max(most)) == (80, 1)


def test_no_process_overwrites_what_another_one_counts(tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.write_text("0")
    command = [sys.executable, "-c", COUNTER, str(tmp_path / "a.lock"), str(count)]
    counters = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for counter in counters:
        _, errors = counter.communicate(timeout=120)
        assert counter.returncode == 0, errors
    assert count.read_text() == "75"


FORKING = """
import os, sys, time
from pathlib import Path
from armpy.store.locks import locked
with locked(Path(sys.argv[1])):
    child = os.fork()
    if child:
        print(child, flush=True)
    time.sleep(600)
"""


def test_a_process_that_dies_gives_its_lock_back(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "True\n"
    with locked(path, time.perf_counter() + 0.05) as is_held:
        assert not is_held
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with locked(path) as is_held:
        assert is_held


def test_where_nothing_can_be_written_the_block_runs_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with locked(tmp_path / "file" / "a.lock") as is_held:
        assert not is_held


@NEEDS_LINKS
@pytest.mark.parametrize("opens_links", [False, True])
def test_a_link_in_the_place_of_a_lock_is_not_followed(
    opens_links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if opens_links:  # as Windows does
        monkeypatch.delattr(os, "O_NOFOLLOW", raising=False)
    (tmp_path / "a.lock").symlink_to(tmp_path / "precious")
    with locked(tmp_path / "a.lock") as is_held:
        assert not is_held
    assert not (tmp_path / "precious").exists()


def test_a_file_system_without_locks_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(locks, "_try_lock", fail)
    started = time.perf_counter()
    with locked(tmp_path / "a.lock") as is_held:
        assert not is_held
    assert time.perf_counter() - started < 60


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows that a process is stopped")
def test_a_stopped_process_does_not_block_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(locks, "LONGEST_WAIT_S", 60.0)
    path = tmp_path / "a.lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        holder.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, holder.pid, os.WSTOPPED | os.WNOWAIT)
        with locked(path) as is_held:
            assert not is_held
        holder.kill()
    assert f"process {holder.pid}, its holder, is stopped; this process does the work" in (
        caplog.text
    )


def test_one_holding_is_waited_for_until_the_limit_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.lock"
    with locked(path):
        monkeypatch.setattr(locks, "LONGEST_WAIT_S", 0.05)
        with locked(path) as is_held:
            assert not is_held
        assert "its holder needs more than 0.05 s" in caplog.text
        monkeypatch.setattr(locks, "LONGEST_WAIT_S", 600.0)
        with locked(path) as is_held:
            assert not is_held
    with locked(path) as is_held:
        assert is_held


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_does_not_hold_the_locks_of_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    command = [sys.executable, "-c", FORKING, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        try:
            holder.kill()
            holder.wait(60)
            with locked(path, time.perf_counter() + 20) as is_held:
                assert is_held
        finally:
            os.kill(child, signal.SIGKILL)
