"""Limits of workers, and that they leave nothing."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from armpy import BackendRegistry, IsolationLimits, Runtime, RuntimeOptions
from armpy.errors import BackendError, DeadObjectError
from armpy_testing.backends import faulty_backend as faulty
from armpy_testing.backends.faulty_backend import CuriousBackend
from armpy_testing.backends.injections import await_spare, children, held, isolated, negation, run
from armpy_testing.descendants import await_end, is_running

IN_FORCE = "not confined"


def tried(monkeypatch: pytest.MonkeyPatch, folder: Path, *, confined: bool) -> dict[str, str]:
    """What came of what a worker tried."""
    monkeypatch.setenv("ARMPY_TEST_FORBIDDEN_FILE", str(folder / "forbidden"))
    registry = BackendRegistry()
    registry.register("Fake", CuriousBackend)
    limits = IsolationLimits(confined=confined)
    options = RuntimeOptions(
        backends=["Fake"], registry=registry, isolation="process", isolation_limits=limits
    )
    with Runtime(options) as runtime:
        status = runtime.isolation["Fake"]
        if confined and IN_FORCE in (status.in_force["files"], status.in_force["signals"]):
            pytest.skip(f"this system does not confine: {status.in_force}")
        version = runtime.backends[0].version
    return dict(entry.split("=") for entry in version.split(";"))


def test_confined_worker_has_its_cache_and_no_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    outcomes = tried(monkeypatch, tmp_path, confined=True)
    assert outcomes == {
        "write outside": "PermissionError",
        "udp": "PermissionError",
        "tcp": "PermissionError",
        "signal": "PermissionError",
        "write in the cache": "done",
        "thread": "done",
        "program": "done",
    }
    assert not (tmp_path / "forbidden").exists()


@pytest.mark.slow
def test_worker_that_is_not_confined_can_do_what_the_user_can(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    outcomes = tried(monkeypatch, tmp_path, confined=False)
    assert outcomes["write outside"] == outcomes["udp"] == "done"
    assert outcomes["signal"] == (
        "OSError" if sys.platform == "win32" else "done"
    )  # no groups there
    assert (tmp_path / "forbidden").exists()


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts what /proc has")
def test_failures_and_the_runtimes_end_leave_nothing() -> None:
    with isolated():
        pass
    gc.collect()
    before, earlier = held(), children()
    with isolated() as runtime:
        network = runtime.load_network(negation())
        for fault in (faulty.ABORT, faulty.HANG, faulty.EXIT):
            with pytest.raises(Exception, match="process has ended"):
                run(runtime, network, fault)
        run(runtime, network, 0)
        assert children() - earlier
    del runtime
    gc.collect()
    assert children() <= earlier  # of which some were zombies of earlier tests
    assert {**held(), "processes": 0} == {**before, "processes": 0}


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts what /proc has")
def test_networks_that_are_unloaded_leave_nothing() -> None:
    with isolated() as runtime:

        def once() -> int:
            network = runtime.load_network(negation())
            run(runtime, network, 0)
            runtime.unload_network(network)
            await_spare()  # which is sent the part meanwhile
            gc.collect()
            return held()["descriptors"]

        counts = [once() for _ in range(6)]
        assert counts[-1] == counts[1]


APPLICATION = """\
import sys
from dataclasses import replace
from armpy.errors import ArmpyError
from armpy_testing.backends.injections import LIMITS, isolated, negation, run
from armpy_testing.backends.faulty_backend import START_SESSION
# What is busy is killed long before, and what starts a process on a busy machine is not.
with isolated(limits=replace(LIMITS, timeout_s=60.0)) as runtime:
    network = runtime.load_network(negation())
    runtime._setup.isolated["Faulty"].supervisor.wait_for_spare()
    try:
        run(runtime, network, START_SESSION)
    except ArmpyError as error:
        print(error.failed.split()[-1])
    print(runtime.isolation["Faulty"].pid, flush=True)
    run(runtime, network, int(sys.argv[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
@pytest.mark.parametrize("busy", [faulty.HANG, faulty.HOLD_GIL], ids=["in Python", "in C"])
def test_worker_and_what_it_started_end_with_an_application_that_is_killed(busy: int) -> None:
    root = Path(__file__).parents[3]
    application = subprocess.Popen(
        [sys.executable, "-c", APPLICATION, str(busy)], stdout=subprocess.PIPE, cwd=root
    )
    assert application.stdout is not None
    started, worker = (int(application.stdout.readline()) for _ in range(2))
    assert is_running(started)
    time.sleep(0.3)
    os.kill(application.pid, signal.SIGKILL)
    application.communicate()
    await_end(worker)
    await_end(started)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
@pytest.mark.parametrize("fault", [faulty.ABORT, faulty.KILLED, faulty.EXIT, faulty.HANG])
def test_what_a_worker_started_in_a_session_of_its_own_ends_with_it(fault: int) -> None:
    with isolated() as runtime:
        network = runtime.load_network(negation())
        with pytest.raises(BackendError, match="started") as caught:
            run(runtime, network, faulty.START_SESSION)
        started = int(caught.value.failed.split()[-1])
        assert is_running(started)
        with pytest.raises(DeadObjectError):
            run(runtime, network, fault)
        await_end(started)
