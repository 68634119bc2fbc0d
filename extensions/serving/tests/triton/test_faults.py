"""Faults under the load of 32 clients: nothing wrong is answered, and no more lost than must be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armpy_testing
from armpy import DataType, Model, Network, TensorInfo, ops
from armpy_serving.triton import InstanceSettings, TritonExport, TritonOptions, export_model
from armpy_testing.effort import effort

from .clients import CLIENTS, LEAST, Outcome, infer, load_it
from .conftest import Start

SECONDS = effort(4.0, 60.0)

WIDTH = 16


def times(factor: float, *shape: int | None) -> Model:
    """A model that multiplies its input."""
    net = Network()
    first = tuple(n or 1 for n in shape)
    value = net.input("x", TensorInfo(shape, DataType.FLOAT32), default_shape=first)
    constant = net.constant(np.array(factor, np.float32))
    net.output("y", net.add(ops.ElementwiseBinary(ops.BinaryOperation.MUL), value, constant))
    return Model(net)


def put(
    repository: Path, model: Model, settings: InstanceSettings | None = None, **options: Any
) -> None:
    """Put a model into a repository, in place of the present one."""
    triton_options = TritonOptions("m", **{"max_batch": 8, **options})
    with model:
        export = TritonExport(triton_options, settings or InstanceSettings(""), force=True)
        export_model(model, repository, export)


def row(number: int, turn: int) -> np.ndarray[Any, Any]:
    """An input that no other request has."""
    return np.full((1 + turn % 3, WIDTH), number * 1000.0 + turn % 997, np.float32)


def doubles(client: Any, number: int, turn: int) -> bool:
    """Ask for the double of a number of one's own."""
    x = row(number, turn)
    answer = infer(client, "m", x)
    return bool(np.array_equal(answer, 2 * x))


def has_errors(outcome: Outcome) -> bool:
    """Whether requests were refused, and enough others answered."""
    return bool(outcome.errors) and outcome.right >= LEAST


def assert_no_wrong(outcome: Outcome) -> None:
    """No answer is wrong, and enough are right."""
    assert outcome.wrong == []
    assert outcome.right >= LEAST, outcome


def test_killed_instance_loses_its_own_batches_until_it_is_loaded_again(
    start: Start, tmp_path: Path
) -> None:
    from tritonclient import http

    repository = tmp_path / "repository"
    put(repository, times(2, None, WIDTH), instances=2)
    server = start(repository, "--model-control-mode=explicit", "--load-model=m")
    seconds, loaded_after_s = max(SECONDS, 6.0), max(SECONDS, 6.0) / 2
    begin_s = time.monotonic()
    loaded_s = 0.0
    did: list[str] = []
    with http.InferenceServerClient(server.http, network_timeout=60) as control:

        def kill() -> None:
            nonlocal loaded_s
            time.sleep(0.5)
            if not did:
                os.kill(server.instances()[0], signal.SIGKILL)
                did.append("killed")
            elif len(did) == 1 and time.monotonic() - begin_s > loaded_after_s:
                # An unchanged model is not loaded again.
                (repository / "m" / "1" / "model.py").touch()
                control.load_model("m")
                did.append("loaded")
                loaded_s = time.monotonic() - begin_s

        outcome = load_it(server.grpc, seconds, doubles, kill, lambda _: len(did) == 2)
    assert_no_wrong(outcome)
    assert did == ["killed", "loaded"]
    # The server never starts an instance again: it gives a dead one a batch a second, and says so
    # after that second. A load takes some seconds itself.
    assert sum(outcome.errors.values()) <= 8 * (loaded_s + 10), outcome.errors
    assert all("is not healthy" in text for text in outcome.errors), outcome.errors
    assert not load_it(server.grpc, 2.0, doubles).errors


@pytest.mark.parametrize("mode", ["explicit", "poll"])
def test_replaced_model_loses_nothing(start: Start, tmp_path: Path, mode: str) -> None:
    from tritonclient import http

    repository = tmp_path / "repository"
    put(repository, times(2, None, WIDTH))
    options = {
        "explicit": ["--model-control-mode=explicit", "--load-model=m"],
        "poll": ["--model-control-mode=poll", "--repository-poll-secs=1"],
    }[mode]
    server = start(repository, *options)
    time.sleep(2.0)
    assert server.text().count("loading: m:1") == 1, "loading changes the polled folder"
    factors = [2.0]
    seen = set()

    def scaled(client: Any, number: int, turn: int) -> bool:
        x = row(number, turn) + 1
        answer = infer(client, "m", x)
        factor = float(answer[0, 0] / x[0, 0])
        seen.add(factor)
        return factor in factors and np.array_equal(answer, np.float32(factor) * x)

    with http.InferenceServerClient(server.http, network_timeout=60) as control:

        def replace() -> None:
            time.sleep(1.0)
            factors.append(factors[-1] * 2 if factors[-1] < 1024 else 2.0)
            put(repository, times(factors[-1], None, WIDTH))
            if mode == "explicit":
                control.load_model("m")

        outcome = load_it(server.grpc, SECONDS, scaled, replace, lambda _: len(seen) > 1)
    assert_no_wrong(outcome)
    assert not outcome.errors, outcome.errors


def wrong_requests() -> list[Any]:
    """Calls that a server has to refuse, each in its way."""
    from tritonclient import grpc

    def ask(
        name: str = "m",
        tensor: str = "x",
        shape: tuple[int, ...] = (1, WIDTH),
        datatype: str = "FP32",
        raw: bytes = bytes(4 * WIDTH),
        **named: Any,
    ) -> Any:
        def call(client: Any) -> None:
            tensor_input = grpc.InferInput(tensor, shape, datatype)
            tensor_input._raw_content = raw
            client.infer(name, [tensor_input, *named.pop("more", ())], **named)

        return call

    return [
        ask(name="none"),
        ask(model_version="7"),
        ask(tensor="z"),
        ask(datatype="INT32"),
        ask(datatype="BYTES"),
        ask(shape=(1, WIDTH + 1), raw=bytes(4 * WIDTH + 4)),
        ask(shape=(WIDTH,)),
        ask(shape=(9, WIDTH), raw=bytes(36 * WIDTH)),
        ask(shape=(-1, WIDTH)),
        ask(raw=bytes(7)),
        ask(raw=bytes(4 * WIDTH + 4)),
        ask(outputs=[grpc.InferRequestedOutput("none")]),
        ask(datatype="NONE"),
    ]


def test_wrong_requests_leave_the_others_alone(start: Start, tmp_path: Path) -> None:
    from tritonclient.utils import InferenceServerException

    put(tmp_path / "repository", times(2, None, WIDTH))
    server = start(tmp_path / "repository")
    wrong = wrong_requests()
    assert len(wrong) >= 12
    refusals: set[str] = set()

    def ask(client: Any, number: int, turn: int) -> bool:
        if number % 4:
            return doubles(client, number, turn)
        try:
            wrong[turn % len(wrong)](client)
        except InferenceServerException as error:
            refusals.add(str(error.message()))
            return True
        return False

    outcome = load_it(
        server.grpc, SECONDS, ask, is_enough=lambda it: it.right >= LEAST and len(refusals) >= 8
    )
    assert_no_wrong(outcome)
    assert not outcome.errors, outcome.errors
    assert len(refusals) >= 8, refusals
    assert len(server.instances()) == 1


def test_memory_limit_refuses_what_is_too_large_alone(start: Start, tmp_path: Path) -> None:
    settings = InstanceSettings("", {"memory_limit_bytes": 4 << 20})
    put(tmp_path / "repository", times(2, None), settings, max_batch=0)
    server = start(tmp_path / "repository")

    def ask(client: Any, number: int, turn: int) -> bool:
        x = np.full(1 << 21 if number % 8 == 0 else 100 + turn % 3, number, np.float32)
        return bool(np.array_equal(infer(client, "m", x), 2 * x))

    outcome = load_it(server.grpc, SECONDS, ask, is_enough=has_errors)
    assert_no_wrong(outcome)
    assert outcome.errors
    assert all("memory" in text for text in outcome.errors), outcome.errors


def test_connections_that_close_cost_the_others_nothing(start: Start, tmp_path: Path) -> None:
    put(tmp_path / "repository", times(2, None, WIDTH), queue_delay_us=3000)
    server = start(tmp_path / "repository")
    gone = Counter[int]()

    def ask(client: Any, number: int, turn: int) -> bool:
        if number % 2:
            return doubles(client, number, turn)
        x = row(number, turn)
        about = {"name": "x", "datatype": "FP32", "shape": x.shape, "data": x.ravel().tolist()}
        with closing(HTTPConnection(server.http, timeout=10)) as connection:
            connection.request("POST", "/v2/models/m/infer", json.dumps({"inputs": [about]}))
            gone[number] += 1
            if turn % 4:  # before its batch begins, while it is run, or when the answer is there
                time.sleep(turn % 4 * 0.0015)
        return True

    outcome = load_it(server.grpc, SECONDS, ask)
    assert_no_wrong(outcome)
    assert not outcome.errors
    assert len(gone) == CLIENTS // 2
    assert not server.has_crashed()


def test_calls_that_are_cancelled_cost_the_others_nothing(start: Start, tmp_path: Path) -> None:
    put(tmp_path / "repository", times(2, None, WIDTH), queue_delay_us=3000)
    server = start(tmp_path / "repository")

    def ask(client: Any, number: int, turn: int) -> bool:
        if number % 2:
            return doubles(client, number, turn)
        x = row(number, turn)
        answer = infer(client, "m", x, client_timeout=0.002)
        return bool(np.array_equal(answer, 2 * x))

    outcome = load_it(server.grpc, SECONDS, ask, is_enough=has_errors)
    assert_no_wrong(outcome)
    if server.has_crashed():
        pytest.skip("the server has ended itself, as 2.51 does now and then if callers cancel")
    assert outcome.errors
    assert all("Deadline" in text or "CANCEL" in text for text in outcome.errors), outcome.errors
    assert not load_it(server.grpc, 1.0, doubles).errors


def test_a_passed_deadline_is_reported(start: Start, tmp_path: Path) -> None:
    put(
        tmp_path / "repository",
        times(2, None, WIDTH),
        timeout_us=1_000_000,
        own_timeout=True,
        queue_delay_us=500,
    )
    server = start(tmp_path / "repository")

    def ask(client: Any, number: int, turn: int) -> bool:
        x = row(number, turn)
        hasty = {"timeout": 300} if number % 2 else {}
        return bool(np.array_equal(infer(client, "m", x, **hasty), 2 * x))

    outcome = load_it(server.grpc, SECONDS, ask, is_enough=has_errors)
    assert_no_wrong(outcome)
    texts = [text.lower() for text in outcome.errors]
    assert texts, "no deadline has passed"
    # The server's queue, the model's run, and an answer that came too late say it in their words.
    assert all("time" in text or "deadline" in text for text in texts), texts


FAULTY = """
import os
from armpy_testing.backends.faulty_backend import FaultyBackend
def get_backend_id(): return "Faulty"
def get_version(): return FaultyBackend().get_api_version()
def backend_factory(): return FaultyBackend()
"""


def test_crash_of_an_isolated_backend_ends_its_own_requests(start: Start, tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir(mode=0o755)
    (plugins / "Tests_Faulty_backend.py").write_text(FAULTY)
    settings = InstanceSettings("", {"backends": ["Faulty"]}, ("Faulty",), {}, (str(plugins),))
    put(tmp_path / "repository", times(2, WIDTH), settings, max_batch=0)
    packages = Path(armpy_testing.__file__).parents[1]
    server = start(tmp_path / "repository", variables={"PYTHONPATH": str(packages)})
    last = 0.0

    def ask(client: Any, number: int, turn: int) -> bool:
        nonlocal last
        crash = number == 0 and time.monotonic() - last > 2.0
        if crash:
            last = time.monotonic()
        x = np.full(WIDTH, 1.0 if crash else 0.0, np.float32)
        return bool(np.array_equal(infer(client, "m", x), 2 * x))

    before = server.instances()
    outcome = load_it(server.grpc, SECONDS, ask, is_enough=has_errors)
    assert_no_wrong(outcome)
    assert outcome.errors
    assert server.instances() == before, "the instance has gone with the backend"


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk without room."""
    place = tmp_path / "full"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4k,mode=700", "tmpfs", str(place)]
    if (
        sys.platform != "linux"
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        pytest.skip("a small disk cannot be mounted here")
    try:
        with pytest.raises(OSError, match="No space left"):
            (place / "filled").write_bytes(bytes(1 << 20))
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_full_disk_of_caches_is_no_matter(start: Start, tmp_path: Path, full_disk: Path) -> None:
    put(tmp_path / "repository", times(2, None, WIDTH))
    server = start(tmp_path / "repository", variables={"ARMPY_CACHE_DIR": str(full_disk)})
    outcome = load_it(server.grpc, SECONDS, doubles)
    assert_no_wrong(outcome)
    assert not outcome.errors, outcome.errors
