"""``python -m armpy_serving.kserve``: address, arguments, and end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from .inference_calls import by_json, by_raw
from .kserve_server import KServeProcess, kserve_server

pytest.importorskip("kserve", reason="kserve is not installed")

X = {"x": np.ones((1, 1024), np.float32)}


def listened_addresses(pid: int) -> set[str]:
    """Addresses that a process listens at by TCP, as Linux writes them."""
    inodes = {
        os.readlink(entry)[8:-1]
        for entry in Path(f"/proc/{pid}/fd").iterdir()
        if os.readlink(entry).startswith("socket:")
    }
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:  # LISTEN
                found.add(fields[1].split(":")[0])
    return found


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="the system has no /proc")
def test_it_listens_at_the_loopback_alone(server: KServeProcess) -> None:
    addresses = listened_addresses(server.process.pid)
    assert addresses <= {"0100007F", "0000000000000000FFFF00000100007F"}  # 127.0.0.1
    assert addresses


def test_flags_come_from_the_environment_as_well(small_models: Path, tmp_path: Path) -> None:
    environment = {
        "ARMPY_SERVING_MODEL_DIR": str(small_models / "mixed.armpy"),
        "ARMPY_SERVING_BACKENDS": "CpuRef",
        "ARMPY_SERVING_MAX_WAITING": "7",
        "ARMPY_SERVING_SPREAD": "calls",
        "ARMPY_SERVING_AFFINITY": "conv*=CpuRef",
    }
    text = (
        "from armpy_serving.kserve.options import load_options, make_parser\n"
        "given = make_parser().parse_args(['--model_name', 'm', '--workers', '2'])\n"
        "print([given.model_dir, load_options(given), given.max_waiting, given.host,"
        " given.workers, given.model_name])"
    )
    completed = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    options = {"backends": ["CpuRef"], "affinity": {"conv*": "CpuRef"}, "spread": "calls"}
    expected = [environment["ARMPY_SERVING_MODEL_DIR"], options, 7, "127.0.0.1"]
    assert completed.stdout.strip() == str([*expected, 2, "m"])


def test_running_requests_are_answered_before_it_ends(small_models: Path, tmp_path: Path) -> None:
    results: dict[str, object] = {}

    def ask(way: str) -> None:
        results[way] = (by_json if way == "JSON" else by_raw)(running, "slow", X)["y"]

    with kserve_server(small_models, tmp_path / "log") as running:
        callers = [threading.Thread(target=ask, args=(way,)) for way in ("JSON", "raw")]
        for caller in callers:
            caller.start()
        wait_for_threads(running, "slow", 2)
        assert running.stop() == 0
        for caller in callers:
            caller.join()
    assert {*results} == {"JSON", "raw"}
    for result in results.values():
        np.testing.assert_array_equal(result, np.ones((512, 1024), np.float32))


def wait_for_threads(server: KServeProcess, model: str, number: int) -> None:
    """Wait until so many requests of a model are being answered."""
    end_s = time.monotonic() + 60
    while time.monotonic() < end_s:
        if server.metric("armpy_requests_running", model=model) == number:
            return
        time.sleep(0.01)
    raise AssertionError("the requests did not begin")


def test_the_answer_of_a_gone_client_is_not_computed(server: KServeProcess) -> None:
    import socket

    before = server.metric("armpy_requests_total", model="slow", code="CANCELLED")
    document = json.dumps(
        {
            "inputs": [
                {"name": "x", "datatype": "FP32", "shape": [1, 1024], "data": [1.0] * 1024},
            ]
        }
    ).encode()
    head = (
        f"POST /v2/models/slow/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(document)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.http_port)) as connection:
        connection.sendall(head.encode() + document)
        wait_for_threads(server, "slow", 1)
    end_s = time.monotonic() + 60
    while server.metric("armpy_requests_total", model="slow", code="CANCELLED") == before:
        assert time.monotonic() < end_s, "the run was not stopped"
        time.sleep(0.02)
