"""Workers: answers, errors, ends."""

from __future__ import annotations

import gc
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from armpy.core.processes.protocol import MAX_ANSWER_BYTES, error_as_fields, error_from_fields
from armpy.core.processes.worker import KEPT_BYTES, Worker
from armpy.errors import (
    ArmpyError,
    BackendError,
    DeadObjectError,
    InvalidArgumentError,
    MemoryLimitError,
    UnsupportedOperatorError,
)
from armpy_testing.descendants import await_end, is_running
from armpy_testing.systems import NEEDS_KEEPER

TIMEOUT_S = 30.0


@pytest.fixture
def worker() -> Iterator[Worker]:
    obedient = Worker("tests.support.handlers:Obedient", where="Npu")
    yield obedient
    obedient.stop()


def ask(worker: Worker, *request: object, timeout_s: float = TIMEOUT_S) -> dict[str, object]:
    return worker.request(request, timeout_s=timeout_s)


def test_requests_are_answered_in_order(worker: Worker) -> None:
    assert [ask(worker, "echo", i)["value"] for i in range(5)] == [*range(5)]


def test_worker_has_the_same_path_no_input_and_none_of_pythons_variables(worker: Worker) -> None:
    answer = ask(worker, "environment")
    assert answer == {"stdin": "", "path": [str(path) for path in sys.path], "flags": 1}


def test_an_application_that_has_closed_its_standard_streams_has_workers() -> None:
    streams = [os.dup(number) for number in range(3)]
    os.closerange(0, 3)
    try:
        worker = Worker("tests.support.handlers:Obedient")
        assert ask(worker, "echo", 1) == {"value": 1}
        worker.stop()
        for number in range(3):
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(number)
    finally:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("limit", MemoryLimitError),
        ("argument", InvalidArgumentError),
        ("operators", UnsupportedOperatorError),
        ("other", BackendError),
    ],
)
def test_errors_come_as_what_they_are_and_the_worker_goes_on(
    worker: Worker, kind: str, expected: type[ArmpyError]
) -> None:
    with pytest.raises(expected):
        ask(worker, "raise_error", kind)
    assert ask(worker, "echo", 1) == {"value": 1}


def test_fields_of_an_error_come_across(worker: Worker) -> None:
    with pytest.raises(MemoryLimitError) as caught:
        ask(worker, "raise_error", "limit")
    assert str(caught.value) == "here: too much. Expected 1; got 2. Less."


@pytest.mark.parametrize("kind", ["os.system", "annotations", "x" * 5000])
def test_error_that_is_none_of_armpys_is_a_backends(kind: str) -> None:
    error = error_from_fields({"kind": kind, "failed": "it broke"})
    assert type(error) is BackendError
    assert str(error) == "it broke."


ODD_FIELDS: list[object] = [
    None,
    [],
    "text",
    {},
    {"kind": "BackendError"},
    {"kind": "BackendError", "failed": ""},
    {"kind": "BackendError", "failed": " \n"},
    {"kind": "BackendError", "failed": None},
    {"kind": 3, "failed": "x"},
    {"kind": "", "failed": "x"},
    {"kind": "BackendError", "failed": {"a": 1}},
    {"kind": "BackendError", "failed": "x", "where": 7},
    {"kind": "BackendError", "failed": "x", "more": "y"},
    {"failed": "x"},
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fields", ODD_FIELDS)
def test_fields_that_are_no_errors_end_the_worker_with_one_clear_error(
    worker: Worker, fields: object
) -> None:
    with pytest.raises(DeadObjectError, match="its error cannot be read: "):
        ask(worker, "answer_error", fields)
    assert not worker.is_running


def test_texts_of_an_error_can_be_printed() -> None:
    fields = {"kind": "BackendError", "failed": "a\ud800b\x1b[31m\nc"}
    assert error_from_fields(fields).failed == "a\ufffdb\ufffd[31m\nc"


class OddError(Exception):
    """An error that cannot be shown."""

    def __repr__(self) -> str:
        raise ValueError("not today")


def test_error_that_cannot_say_what_it_is_comes_with_its_class() -> None:
    assert error_as_fields(OddError())["failed"] == "it raised one of OddError"
    assert error_as_fields(ArmpyError(""))["failed"] == "it raised ArmpyError"


def test_worker_without_descriptors_says_so_and_is_ended(worker: Worker) -> None:
    ask(worker, "take_descriptors")
    with open(os.devnull) as file, pytest.raises(DeadObjectError, match="no file descriptors"):
        worker.request(("echo", 1), [file.fileno()], timeout_s=TIMEOUT_S)
    assert not worker.is_running


def test_long_texts_are_cut() -> None:
    assert len(error_as_fields(InvalidArgumentError("x" * 10**6))["failed"]) == 2000


def test_memory_that_ran_out_ends_the_worker_whatever_it_was_wrapped_in(worker: Worker) -> None:
    with pytest.raises(DeadObjectError, match=r"Npu: .*it had no memory left"):
        ask(worker, "run_out_of_memory")
    assert not worker.is_running


def test_worker_that_exits_is_a_dead_object_with_its_code(worker: Worker) -> None:
    with pytest.raises(DeadObjectError, match="it exited with code 9"):
        ask(worker, "leave", 9)
    assert (worker.exit_code, worker.is_late) == (9, False)
    with pytest.raises(DeadObjectError, match="it exited with code 9"):
        ask(worker, "echo", 1)


@pytest.mark.slow
@pytest.mark.parametrize("is_starved", [False, True])
def test_the_end_of_a_worker_is_awaited_while_it_waits_for_a_processor(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, is_starved: bool
) -> None:
    """Half a second is enough for others: they are said to live on."""
    waited = time.monotonic if is_starved else float
    monkeypatch.setattr("armpy.core.processes.worker.starved_s", lambda pid: waited())
    reason = "it exited with code 9" if is_starved else "it closed the connection"
    with pytest.raises(DeadObjectError, match=reason):
        ask(worker, "leave_late", 9, 1.5)


@pytest.mark.slow
def test_worker_that_gives_no_answer_in_time_is_ended(worker: Worker) -> None:
    ask(worker, "echo", 1)
    start = time.monotonic()
    with pytest.raises(DeadObjectError, match=r"it gave no answer within 0\.2 s"):
        ask(worker, "sleep", 600, timeout_s=0.2)
    assert time.monotonic() - start < 30
    assert worker.is_late
    assert worker.exit_code is None


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_an_answer_that_comes_byte_by_byte_has_the_same_limit(worker: Worker) -> None:
    ask(worker, "echo", 1)
    start = time.monotonic()
    with pytest.raises(DeadObjectError, match=r"it gave no answer within 0\.5 s"):
        ask(worker, "drip", 0.02, timeout_s=0.5)
    assert time.monotonic() - start < 15
    assert worker.is_late


@NEEDS_KEEPER
def test_a_keeper_without_a_number_is_not_waited_for_without_end(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        monkeypatch.setattr("armpy.core.processes.worker._STOP_S", 0.1)
        monkeypatch.setattr(worker._kept, "_life", ours)
        monkeypatch.setattr(worker, "_pid", None)
        assert worker.pid == worker._process.pid


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_what_a_worker_has_started_ends_with_it(worker: Worker) -> None:
    state = Path(f"/proc/{ask(worker, 'start_child')['pid']}/stat")
    assert state.exists()
    worker.stop()
    until = time.monotonic() + 10
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] not in "ZX":
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.sampled(3)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
@pytest.mark.parametrize("end", ["stop", "kill", "killed", "exit"])
def test_what_it_started_in_a_session_of_its_own_ends_with_it(worker: Worker, end: str) -> None:
    started = ask(worker, "start_session")["pid"]
    assert isinstance(started, int)
    assert is_running(started)
    if end == "stop":
        worker.stop()
    elif end == "kill":
        worker.kill("the test is over")
    elif end == "killed":
        os.kill(worker.pid, signal.SIGKILL)
    else:
        worker.finish(TIMEOUT_S)
    await_end(started)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_worker_ends_with_its_keeper(worker: Worker) -> None:
    ask(worker, "echo", 1)
    os.kill(worker._process.pid, signal.SIGKILL)
    await_end(worker.pid)
    with pytest.raises(DeadObjectError, match="it was ended by SIGKILL"):
        ask(worker, "echo", 1)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (struct.pack("<I", MAX_ANSWER_BYTES + 1), "its answer is said to have"),
        (struct.pack("<I", 3) + b"{,}", "its answer cannot be read"),
        (struct.pack("<I", 2) + b"[]", "its answer is not a mapping"),
        (struct.pack("<I", 40000) + b"[" * 40000, "its answer cannot be read"),
    ],
)
def test_nonsense_ends_the_worker(worker: Worker, data: bytes, reason: str) -> None:
    # A collection in the depth of a nested answer would fail finalizers of other tests.
    gc.disable()
    try:
        with pytest.raises(DeadObjectError, match=reason):
            ask(worker, "write_raw", data)
    finally:
        gc.enable()
    assert not worker.is_running


def test_the_last_that_it_wrote_is_kept_and_no_more(worker: Worker) -> None:
    ask(worker, "say", "x" * 1000, 1000)
    ask(worker, "say", "the end", 1)
    worker.stop()
    written = worker.output()
    assert len(written) == KEPT_BYTES
    assert written.endswith(f"x{os.linesep}the end{os.linesep}")


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts what /proc has")
def test_worker_ends_with_the_last_reference() -> None:
    gc.collect()  # what others have left is not to be counted
    before = len(os.listdir("/proc/self/fd"))
    worker = Worker("tests.support.handlers:Obedient")
    pid = worker.pid
    ask(worker, "echo", 1)
    del worker
    gc.collect()
    assert not Path(f"/proc/{pid}").exists()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_handler_that_cannot_be_imported_is_a_dead_object() -> None:
    worker = Worker("tests.support.handlers:Nothing")
    with pytest.raises(DeadObjectError, match="it exited with code"):
        ask(worker, "echo", 1)
    worker.stop()
    assert "has no attribute 'Nothing'" in worker.output()
