"""Limits of a server: bodies, and clients that may not load or unload models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from .inference_calls import grpc_modules
from .kserve_server import HOST, KServeProcess, kserve_server
from .test_repository import change

pytest.importorskip("kserve", reason="kserve is not installed")

from starlette.applications import Starlette

from armpy_serving.kserve import (
    ArmpyModel,
    ArmpyModelRepository,
    ArmpyModelServer,
)
from armpy_serving.kserve.http import add_routes

INFER = "/v2/models/m/infer"
MAX_BYTES = 1000
H = {"name": "h", "datatype": "FP16", "shape": [1], "data": [2]}


@pytest.fixture(scope="module")
def limited(
    small_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KServeProcess]:
    """A server that takes short bodies, and no changes of its models."""
    flags = ("--model_name", "m", "--max_body_bytes", str(MAX_BYTES), "--repository_api", "false")
    log = tmp_path_factory.mktemp("logs") / "log"
    with kserve_server(small_models / "halves.armpy", log, *flags) as running:
        yield running


def padded(num_bytes: int) -> bytes:
    """A request of that many bytes."""
    return json.dumps({"inputs": [H]}).encode().ljust(num_bytes)


@pytest.mark.parametrize("path", [INFER, "/v1/models/m:predict"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_long_is_413(limited: KServeProcess, path: str, chunked: bool) -> None:
    connection = HTTPConnection(HOST, limited.http_port, timeout=60)
    parts = iter([padded(MAX_BYTES), b" "]) if chunked else padded(MAX_BYTES + 1)
    connection.request("POST", path, parts, encode_chunked=chunked)
    answer = connection.getresponse()
    text = json.loads(answer.read())["error"]
    connection.close()
    assert answer.status == 413
    assert "at most 1000 bytes" in text
    assert "--max_body_bytes" in text


def test_a_body_is_not_read_when_there_is_no_room(small_models: Path) -> None:
    model = ArmpyModel("m", small_models / "halves.armpy", max_waiting=0)
    model.load()
    repository = ArmpyModelRepository(small_models / "halves.armpy", "m")
    repository.update(model)
    app = Starlette()
    add_routes(app, repository)
    sent: list[dict[str, Any]] = []  # Any: ASGI's

    async def read() -> Any:  # Any: ASGI's
        raise AssertionError("the body was read")

    async def send(message: Any) -> None:  # Any: ASGI's
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": INFER, "headers": [], "query_string": b""}
    asyncio.run(app(scope, read, send))
    assert sent[0]["status"] == 503
    assert b"too many requests wait" in sent[1]["body"]
    model.stop()


@pytest.mark.parametrize("verb", ["load", "unload"])
def test_clients_change_no_models_where_they_may_not(limited: KServeProcess, verb: str) -> None:
    status, _, body = limited.send("POST", f"/v2/repository/models/m/{verb}")
    assert status == 501
    assert "--repository_api" in json.loads(body)["error"]
    with pytest.raises(grpc_modules().grpc.RpcError) as caught:
        change(limited, verb, "m")
    assert caught.value.code().name == "UNIMPLEMENTED"
    assert limited.send("GET", "/v2/health/ready")[0] == 200
    assert b"model_repository" not in limited.send("GET", "/v2")[2]


@pytest.mark.parametrize(
    ("host", "chosen", "expected"),
    [
        ("127.0.0.1", None, True),
        ("0.0.0.0", None, False),
        ("0.0.0.0", True, True),
        ("127.0.0.1", False, False),
    ],
)
def test_clients_of_the_loopback_alone_change_models_unless_one_says_so(
    tmp_path: Path, host: str, chosen: bool | None, expected: bool
) -> None:
    repository = ArmpyModelRepository(tmp_path)
    ArmpyModelServer(repository, host, repository_api=chosen)
    assert repository.is_open is expected
