"""Under load of 32 clients with faults: nothing is answered wrongly, and nothing is lost.

Lost is a request that comes to no end, or to an error that says neither whose fault it is nor that
it can be sent again.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from armpy_testing.effort import effort

from .inference_calls import (
    CallError,
    by_bytes,
    by_json,
    message,
    send,
)
from .kserve_server import KServeProcess, kserve_server

pytest.importorskip("kserve", reason="kserve is not installed")

SECONDS = effort(3)
CLIENTS = 32
MIXED = {
    "x:0": np.ones((1, 2), np.float32),
    "n": np.arange(3, dtype=np.int32),
    "flags": np.array([True, False]),
    "q": np.array(1, np.int8),
}
PASSING = {"503", "UNAVAILABLE", "RESOURCE_EXHAUSTED"}

pytestmark = pytest.mark.slow


class Load:
    """Clients that check every answer, half of them over gRPC."""

    def __init__(self, server: KServeProcess, model: str = "mixed") -> None:
        self.server = server
        self.model = model
        self.outcomes: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._over = threading.Event()
        self._lock = threading.Lock()

    def run(self, fault: Callable[[], object], every_s: float) -> None:
        """Send requests for a while, with a fault again and again."""
        clients = [
            threading.Thread(target=self._client, args=(number,)) for number in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        end_s = time.monotonic() + SECONDS
        try:
            while time.monotonic() < end_s:
                time.sleep(every_s)
                fault()
        finally:
            self._over.set()
            for client in clients:
                client.join(120)
        assert not any(client.is_alive() for client in clients), "a request came to no end"
        print(dict(self.outcomes))

    def _client(self, number: int) -> None:
        """Send requests one after the other."""
        while not self._over.is_set():
            row = np.random.default_rng().normal(size=(1, 2)).astype(np.float32)
            try:
                outcome = self._ask(number, MIXED | {"x:0": row}, row)
            except CallError as error:
                outcome = error.code
            except (OSError, http.client.HTTPException):
                outcome = "connection"
            with self._lock:
                self.outcomes[outcome] += 1

    def _ask(self, number: int, arrays: dict[str, np.ndarray], row: np.ndarray) -> str:
        """Send one request, and check its answer."""
        if number % 2:
            request = message(self.model, arrays, raw=number % 4 == 1)
            outputs = send(self.server.grpc_address, request)
        else:
            outputs = (by_json, by_bytes)[number // 2 % 2](self.server, self.model, arrays)
        if outputs["double"].tobytes() != (row + row).tobytes():
            self.wrong.append(f"{row} gave {outputs['double']}")
        return "OK"


def test_models_replaced_under_load_lose_nothing(server: KServeProcess) -> None:
    load = Load(server)

    def replace() -> None:
        status, _, body = server.send("POST", "/v2/repository/models/mixed/load", b"")
        assert status == 200, body

    load.run(replace, min(1.0, SECONDS / 5))
    assert load.wrong == []
    assert {*load.outcomes} == {"OK"}


def test_clients_that_go_away_hurt_no_others(server: KServeProcess) -> None:
    load = Load(server)
    body = json.dumps({"inputs": []}).encode()
    head = f"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body) + 9}\r\n"
    slow = {"x": np.ones((1, 1024), np.float32)}

    def leave() -> None:
        for sent in (head.encode(), head.encode() + b"\r\n" + body):
            with socket.create_connection(("127.0.0.1", server.http_port)) as connection:
                connection.sendall(sent)
        # A deadline passes while a model runs.
        with pytest.raises(CallError, match="DEADLINE_EXCEEDED"):
            send(server.grpc_address, message("slow", slow, raw=True), timeout_s=0.1)
        document = {"parameters": {"timeout": 20_000}, "inputs": [tensor_of(slow["x"])]}
        assert server.infer("slow", **document)[0] == 504

    load.run(leave, 0.2)
    assert load.wrong == []
    assert {*load.outcomes} == {"OK"}
    assert server.send("GET", "/v2/health/ready")[0] == 200


def tensor_of(array: np.ndarray) -> dict[str, object]:
    """An input in JSON."""
    return {"name": "x", "datatype": "FP32", "shape": [*array.shape], "data": array.tolist()}


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system has no /proc")
def test_backends_that_crash_in_isolation_are_there_again(
    small_models: Path, tmp_path: Path
) -> None:
    flags = ("--isolation", "process", "--model_name", "mixed")
    with kserve_server(small_models / "mixed.armpy", tmp_path / "log", *flags) as running:
        load = Load(running)
        killed: list[int] = []

        def crash() -> None:
            # Five within a minute would put the backend into quarantine.
            for pid in children_of(running.process.pid) if len(killed) < 4 else ():
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

        load.run(crash, 1.0)
        by_json(running, "mixed", MIXED)
    assert killed
    assert load.wrong == []
    assert {*load.outcomes} <= {"OK"} | PASSING
    assert load.outcomes["OK"] > 0


def is_worker(pid: int) -> bool:
    """Whether a process is a worker of KServe's that has not ended."""
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def children_of(pid: int) -> list[int]:
    """Processes that any thread of a process has started."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system has no /proc")
def test_killed_workers_cost_no_more_than_their_connections(
    small_models: Path, tmp_path: Path
) -> None:
    flags = ("--workers", "2", "--model_name", "mixed")
    with kserve_server(small_models / "mixed.armpy", tmp_path / "log", *flags) as running:
        load = Load(running)
        killed: list[int] = []

        def kill() -> None:
            workers = [child for child in children_of(running.process.pid) if is_worker(child)]
            if len(workers) == 2:  # else the last one is not yet replaced
                os.kill(workers[0], signal.SIGKILL)
                killed.append(workers[0])

        load.run(kill, 1.0)
    assert killed
    assert load.wrong == []
    # After a broken connection the client has to send its request again.
    assert {*load.outcomes} <= {"OK", "connection"}
    assert load.outcomes["OK"] > 0
