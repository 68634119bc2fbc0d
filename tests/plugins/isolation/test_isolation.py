"""Backends in processes of their own: results, failures, recovery."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armpy import (
    BackendRegistry,
    InvalidArgumentError,
    IsolationLimits,
    Runtime,
    RuntimeOptions,
)
from armpy.errors import (
    ArmpyError,
    BackendError,
    BackendUnavailableError,
    DeadObjectError,
    ExecutionTimeoutError,
)
from armpy.execution import NetworkProperties
from armpy.model import Model
from armpy_testing.backends import faulty_backend as faulty
from armpy_testing.backends.faulty_backend import FaultyBackend
from armpy_testing.backends.injections import LIMITS, await_spare, isolated, negation, negative, run
from armpy_testing.backends.scripted_backend import log_of, write_scripted
from armpy_testing.descendants import kill
from armpy_testing.models.networks import diamond, floats, placement_of
from armpy_testing.systems import NEEDS_FORK, NEEDS_REPLACEABLE_FILES


def test_isolated_backend_gives_the_same_result_in_another_process() -> None:
    with isolated() as runtime:
        network = runtime.load_network(negation())
        np.testing.assert_array_equal(run(runtime, network, 0), negative(0))
        pid = runtime.isolation[faulty.NAME].pid
        assert pid not in (None, os.getpid())
        placement = runtime.get_network(network).placement
        assert placement is not None
        assert [layer.operation for layer in placement.layers] == ["PreCompiled"]


@pytest.mark.slow
@pytest.mark.parametrize("fault", faulty.FAULTS)
def test_fault_of_a_worker_is_a_dead_object_and_the_next_execution_works(fault: str) -> None:
    with isolated() as runtime:
        network = runtime.load_network(negation())
        before = runtime.isolation[faulty.NAME].pid
        with pytest.raises(DeadObjectError, match="the backend's process has ended"):
            run(runtime, network, faulty.FAULTS[fault])
        np.testing.assert_array_equal(run(runtime, network, 0), negative(0))
        status = runtime.isolation[faulty.NAME]
        assert status.num_failures == 1
        assert status.pid != before


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("fault", faulty.FAULTS)
def test_what_a_worker_dies_of_is_executed_elsewhere_where_that_is_allowed(fault: str) -> None:
    with isolated(with_reference=True) as runtime:
        properties = NetworkProperties(on_failure="next")
        network = runtime.load_network(negation(), properties)
        expected = negative(faulty.FAULTS[fault])
        np.testing.assert_array_equal(run(runtime, network, faulty.FAULTS[fault]), expected)


@pytest.mark.slow
def test_error_that_a_backend_raises_comes_with_its_kind_and_ends_nothing() -> None:
    with isolated() as runtime:
        network = runtime.load_network(negation())
        with pytest.raises(BackendError, match="on request") as caught:
            run(runtime, network, faulty.RAISE)
        assert not isinstance(caught.value, DeadObjectError)
        assert runtime.isolation[faulty.NAME].num_failures == 0


@pytest.mark.slow
def test_reason_names_the_signal() -> None:
    with isolated() as runtime:
        network = runtime.load_network(negation())
        with pytest.raises(DeadObjectError, match=faulty.FAULTED):
            run(runtime, network, faulty.SEGFAULT)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds sockets in /proc")
def test_worker_that_does_not_keep_to_the_protocol_is_ended() -> None:
    with isolated() as runtime:
        network = runtime.load_network(negation())
        with pytest.raises(DeadObjectError, match="does not keep to the protocol"):
            run(runtime, network, faulty.BABBLE)
        np.testing.assert_array_equal(run(runtime, network, 0), negative(0))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="files have no seals")
def test_worker_cannot_cut_the_shared_memory_off() -> None:
    with isolated() as runtime:
        network = runtime.load_network(negation())
        run(runtime, network, 0)
        with pytest.raises(BackendError, match=r"shared memory: \['refused'\]"):
            run(runtime, network, faulty.CUT)
        np.testing.assert_array_equal(run(runtime, network, 0), negative(0))


@pytest.mark.slow
@NEEDS_FORK
def test_child_that_a_worker_forks_does_not_answer_in_its_place() -> None:
    with isolated() as runtime:
        network = runtime.load_network(negation())
        for first in (faulty.FORK, 0, 0, faulty.FORK, 0, 0):
            np.testing.assert_array_equal(run(runtime, network, first), negative(first))


@pytest.mark.slow
def test_hang_past_a_deadline_ends_the_worker_and_the_execution_in_time() -> None:
    limits = IsolationLimits(timeout_s=60.0, grace_s=0.1, max_failures=1000)
    with isolated(limits=limits) as runtime:
        network = runtime.get_network(runtime.load_network(negation()))
        numbers = np.full(8, faulty.HANG, np.float32)
        start = time.perf_counter()
        with pytest.raises((ExecutionTimeoutError, DeadObjectError)):
            network.run([numbers], deadline_s=0.1)
        assert time.perf_counter() - start < 5.0
        while runtime.isolation[faulty.NAME].num_failures == 0:
            assert time.perf_counter() - start < 10.0
            time.sleep(0.01)
        numbers[:] = 0
        np.testing.assert_array_equal(network.run([numbers])[0], -numbers)


@pytest.mark.slow
def test_backend_that_looks_is_stopped_and_its_worker_stays() -> None:
    # A busy machine lets the worker look late; it looks before the grace is over in any case.
    patient = replace(LIMITS, timeout_s=120.0, grace_s=60.0)
    with isolated(faulty.StoppableBackend, patient) as runtime:
        network = runtime.get_network(runtime.load_network(negation()))
        numbers = np.full(8, faulty.HANG, np.float32)
        with pytest.raises(ExecutionTimeoutError):
            network.run([numbers], deadline_s=0.1)
        assert runtime.isolation[faulty.NAME].num_failures == 0
        numbers[:] = 0
        np.testing.assert_array_equal(network.run([numbers])[0], -numbers)


@pytest.mark.slow
def test_other_networks_and_threads_notice_nothing_of_a_death() -> None:
    with isolated() as runtime:
        patient, doomed = runtime.load_network(negation()), runtime.load_network(negation(16))
        results: list[object] = []

        def doze() -> None:
            try:
                results.append(run(runtime, patient, faulty.DOZE))
            except ArmpyError as error:
                results.append(error)

        threads = [threading.Thread(target=doze) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(faulty.DOZE_S / 3)
        with pytest.raises(DeadObjectError):
            run(runtime, doomed, faulty.ABORT, 16)
        for thread in threads:
            thread.join()
        assert len(results) == 3
        for result in results:
            np.testing.assert_array_equal(result, negative(faulty.DOZE))


def test_a_killed_worker_loses_no_execution_of_a_network_that_is_spread() -> None:
    with isolated(with_reference=True, spread="calls") as runtime:
        network = runtime.load_network(negation())
        for number in range(30, 130):
            if number == 60:
                pid = runtime.isolation[faulty.NAME].pid
                assert pid is not None
                kill(pid)
            np.testing.assert_array_equal(run(runtime, network, number), negative(number))
        # CpuRef computes the same in place of the device, which would abort.
        np.testing.assert_array_equal(run(runtime, network, faulty.ABORT), negative(faulty.ABORT))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["its worker dies", "it is killed"])
def test_another_application_of_the_device_notices_nothing(how: str) -> None:
    """It has a worker of its own, and comes to no harm by the first one's."""
    program = (
        "import sys\n"
        "from armpy.errors import DeadObjectError\n"
        "from armpy_testing.backends import faulty_backend as faulty\n"
        "from armpy_testing.backends.injections import isolated, negation, run\n"
        "with isolated() as runtime:\n"
        "    network = runtime.load_network(negation())\n"
        "    run(runtime, network, 0)\n"
        "    print(runtime.isolation[faulty.NAME].pid, flush=True)\n"
        "    sys.stdin.readline()\n"
        "    try:\n"
        "        run(runtime, network, faulty.ABORT)\n"
        "    except DeadObjectError:\n"
        "        print('dead', flush=True)\n"
        "    sys.stdin.readline()\n"
    )
    command = [sys.executable, "-c", program]
    pipe = subprocess.PIPE
    with (
        isolated() as runtime,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other,
    ):
        assert other.stdin is not None
        assert other.stdout is not None
        network = runtime.load_network(negation())
        np.testing.assert_array_equal(run(runtime, network, 30), negative(30))
        before = runtime.isolation[faulty.NAME]
        assert int(other.stdout.readline()) != before.pid
        if how == "it is killed":
            other.kill()
        else:
            other.stdin.write("\n")
            other.stdin.flush()
            assert other.stdout.readline() == "dead\n"
        np.testing.assert_array_equal(run(runtime, network, 31), negative(31))
        after = runtime.isolation[faulty.NAME]
        assert (after.pid, after.num_failures) == (before.pid, 0)
        other.kill()


@pytest.mark.slow
@NEEDS_FORK
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_child_that_the_application_forks_has_workers_of_its_own() -> None:
    with isolated() as runtime:
        network = runtime.load_network(negation())
        run(runtime, network, 0)
        before = runtime.isolation[faulty.NAME].pid
        child = os.fork()
        if child == 0:
            outcome = 1
            try:
                same = all(np.array_equal(run(runtime, network, k), negative(k)) for k in (20, 21))
                mine = runtime.isolation[faulty.NAME].pid
                runtime.close()
                outcome = 0 if same and mine != before else 2
            finally:
                os._exit(outcome)
        for first in (30, 31):
            np.testing.assert_array_equal(run(runtime, network, first), negative(first))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        np.testing.assert_array_equal(run(runtime, network, 32), negative(32))
        assert runtime.isolation[faulty.NAME].pid == before


@pytest.mark.slow
def test_application_that_ends_while_a_spare_worker_starts_warns_of_nothing() -> None:
    program = (
        "import time\n"
        "from armpy_testing.backends.injections import isolated, negation, run\n"
        "keeper = isolated()\n"
        "runtime = keeper.__enter__()\n"
        "run(runtime, runtime.load_network(negation()), 0)\n"
        "time.sleep(0.35)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stderr == ""


@pytest.mark.slow
def test_quarantine_after_repeated_failures_ends_by_itself() -> None:
    limits = IsolationLimits(max_failures=2, quarantine_s=0.5)
    with isolated(limits=limits) as runtime:
        network = runtime.load_network(negation())
        for _ in range(2):
            with pytest.raises(DeadObjectError, match=faulty.ABORTED):
                run(runtime, network, faulty.ABORT)
        assert runtime.isolation[faulty.NAME].quarantine_left_s > 0
        assert runtime.isolation[faulty.NAME].pid is None
        with pytest.raises(DeadObjectError, match="in quarantine for another"):
            run(runtime, network, 0)
        time.sleep(0.6)
        np.testing.assert_array_equal(run(runtime, network, 0), negative(0))


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="uses what Linux limits")
@pytest.mark.parametrize(
    ("what", "reason"),
    [
        (faulty.TAKE_DESCRIPTORS, "it has no file descriptors left"),
        (faulty.TAKE_THREADS, "it can start no threads"),
        (faulty.TAKE_MEMORY, "it had no memory left"),
        (faulty.CLOSE_ALL, ""),
    ],
)
def test_worker_that_cannot_serve_is_replaced_and_other_networks_notice_nothing(
    what: int, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    with isolated() as runtime:
        first, second = runtime.load_network(negation()), runtime.load_network(negation(16))
        run(runtime, first, 0)
        with suppress(DeadObjectError):  # some leave nothing to answer with
            np.testing.assert_array_equal(run(runtime, first, what), negative(what))
        for _ in range(2):
            np.testing.assert_array_equal(run(runtime, second, 0, 16), negative(0, 16))
            np.testing.assert_array_equal(run(runtime, first, 0), negative(0))
        status = runtime.isolation[faulty.NAME]
        assert status.num_failures == 1
        assert reason in status.last_failure
        assert status.last_failure in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "what", [faulty.CLOSE_STREAMS, pytest.param(faulty.MOVE, marks=NEEDS_REPLACEABLE_FILES)]
)
def test_worker_serves_on_without_its_streams_and_its_folder(what: int) -> None:
    with isolated() as runtime:
        first, second = runtime.load_network(negation()), runtime.load_network(negation(16))
        np.testing.assert_array_equal(run(runtime, first, what), negative(what))
        for start in range(20, 30):
            np.testing.assert_array_equal(run(runtime, second, start, 16), negative(start, 16))
            np.testing.assert_array_equal(run(runtime, first, start), negative(start))
        third = runtime.load_network(negation(24))
        np.testing.assert_array_equal(run(runtime, third, 0, 24), negative(0, 24))
        assert runtime.isolation[faulty.NAME].num_failures == 0


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="uses what Linux limits")
def test_execution_that_was_under_way_when_its_worker_could_not_serve_is_executed_again() -> None:
    with isolated(limits=replace(LIMITS, timeout_s=60.0)) as runtime:
        first, second = runtime.load_network(negation()), runtime.load_network(negation(16))
        run(runtime, first, faulty.TAKE_DESCRIPTORS)
        results: list[object] = []
        thread = threading.Thread(target=lambda: results.append(run(runtime, first, faulty.DOZE)))
        thread.start()
        time.sleep(faulty.DOZE_S / 3)
        np.testing.assert_array_equal(run(runtime, second, 0, 16), negative(0, 16))
        thread.join()
        np.testing.assert_array_equal(results[0], negative(faulty.DOZE))
        assert runtime.isolation[faulty.NAME].num_failures == 1


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="uses what Linux limits")
def test_application_without_descriptors_gets_an_error_and_its_worker_stays() -> None:
    with isolated() as runtime:
        first, second = runtime.load_network(negation()), runtime.load_network(negation(16))
        np.testing.assert_array_equal(run(runtime, first, 0), negative(0))
        await_spare()
        before = runtime.isolation[faulty.NAME].pid
        with no_more_descriptors():
            np.testing.assert_array_equal(run(runtime, first, 0), negative(0))
            with pytest.raises(BackendError, match="the application cannot execute") as caught:
                run(runtime, second, 0, 16)
            assert not isinstance(caught.value, DeadObjectError)
            with pytest.raises(ArmpyError):
                runtime.load_network(negation(24))
        np.testing.assert_array_equal(run(runtime, second, 0, 16), negative(0, 16))
        status = runtime.isolation[faulty.NAME]
        assert (status.pid, status.num_failures) == (before, 0)


@contextmanager
def no_more_descriptors() -> Iterator[None]:
    """Let this process open no more files."""
    import resource  # of POSIX

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    next_one = os.dup(0)
    os.close(next_one)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_one, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_backend_that_dies_when_it_is_loaded_is_unavailable() -> None:
    with pytest.raises(BackendUnavailableError, match=faulty.ABORTED), isolated(faulty.BadAtStart):
        pass


@pytest.mark.slow
def test_backend_that_dies_in_preparation_loses_the_part() -> None:
    with isolated(faulty.BadInPreparation, with_reference=True) as runtime:
        network = runtime.load_network(negation())
        np.testing.assert_array_equal(run(runtime, network, 0), negative(0))
        placement = runtime.get_network(network).placement
        assert placement is not None
        assert [layer.backend for layer in placement.layers] == ["CpuRef"]
        assert faulty.ABORTED in placement.refusals[0].text


def test_factory_that_no_other_process_can_import_is_refused() -> None:
    registry = BackendRegistry()
    registry.register("Local", lambda: FaultyBackend("Local"))
    options = RuntimeOptions(backends=["Local"], registry=registry, isolation="process")
    with pytest.raises(BackendUnavailableError, match="cannot be isolated"):
        Runtime(options)


@pytest.mark.parametrize("given", ["thread", {"CpuRef": "sandbox"}])
def test_unknown_isolation_is_refused(given: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"isolation.*not allowed"):
        RuntimeOptions(isolation=given)  # type: ignore[arg-type]


@pytest.mark.slow
def test_runtime_options_isolate_all_installed_backends() -> None:
    with Runtime(RuntimeOptions(isolation="process")) as runtime:
        ids = [backend.get_id() for backend in runtime.backends]
        assert set(runtime.isolation) == set(ids)
        assert ids[-1] == "CpuRef"
        network = runtime.load_network(negation())
        np.testing.assert_array_equal(run(runtime, network, 0), negative(0))


# Compiled parts of backends in processes of their own are kept by these processes


@pytest.mark.slow
def test_a_worker_loads_what_an_earlier_one_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))
    # Workers write to armpy's cache only, where the system can confine them.
    (tmp_path / "cache").mkdir()
    log = tmp_path / "cache" / "log"
    how = f"ScriptedBackend('Npu', log={str(log)!r}, declared=declaration(keeps_programs=True))"
    options = replace(
        write_scripted(tmp_path / "modules", how), backends=["Npu", "CpuRef"], isolation="process"
    )
    for expected in (["optimize", "save"], ["check", "load"]):
        log.write_text("")
        with Runtime(options) as runtime:
            model = Model(diamond(), runtime)
            np.testing.assert_array_equal(model(floats(-1, 0, 2, 5)), floats(1, 1, 9, 21))
            assert placement_of(model).layers_by_backend == {"Npu": 4}
        parts = ("optimize", "save", "check", "load")
        methods = [method for method in log_of(log) if method in parts]
        # The spare worker may have loaded the part as well by now.
        assert methods[:2] == expected
        assert set(methods[2:]) <= {"check", "load"}
