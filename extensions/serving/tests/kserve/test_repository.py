"""Models of a folder: names, readiness, and what clients may change."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from armpy.errors import InvalidArgumentError
from armpy_serving.protocol_kit.answers import check_error

from .inference_calls import grpc_modules
from .kserve_server import KServeProcess

pytest.importorskip("kserve", reason="kserve is not installed")

from armpy_serving.kserve import ArmpyModelRepository


def names(repository: ArmpyModelRepository) -> list[str]:
    return [state["name"] for state in repository.index()]


def test_a_single_model_is_called_as_one_says_and_several_as_their_files(tmp_path: Path) -> None:
    (tmp_path / "model").touch()
    assert names(ArmpyModelRepository(tmp_path, "m")) == ["m"]
    (tmp_path / "a.tflite").touch()
    assert names(ArmpyModelRepository(tmp_path, "m")) == ["m"]
    (tmp_path / "b.onnx").touch()
    assert names(ArmpyModelRepository(tmp_path, "m")) == ["a", "b"]
    (tmp_path / "b.armpy").touch()
    with pytest.raises(InvalidArgumentError, match=r"one name.*b\.armpy"):
        names(ArmpyModelRepository(tmp_path, "m"))


def test_a_single_model_keeps_its_name_when_others_come(small_models: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.armpy", tmp_path / "another.armpy"
    first.write_bytes((small_models / "halves.armpy").read_bytes())
    repository = ArmpyModelRepository(tmp_path, "m")
    second.write_bytes(b"damaged")
    assert asyncio.run(repository.load("m"))
    assert names(repository) == ["m"]
    first.rename(second)  # the only one, in its place
    assert asyncio.run(repository.load("m"))
    repository.unload("m")


def test_an_unloaded_model_takes_readiness_away_until_it_is_loaded(server: KServeProcess) -> None:
    ready = "/v2/health/ready"
    try:
        status, _, body = server.send("POST", "/v2/repository/models/halves/unload")
        assert (status, json.loads(body)) == (200, {"name": "halves", "unload": True})
        assert server.send("GET", ready)[0] == 503
    finally:
        status, _, body = server.send("POST", "/v2/repository/models/halves/load")
    assert (status, json.loads(body)) == (200, {"name": "halves", "load": True})
    assert server.send("GET", ready)[0] == 200


def test_a_damaged_file_is_a_server_error_with_armpys_text(
    server: KServeProcess, small_models: Path
) -> None:
    damaged = small_models / "damaged.armpy"
    damaged.write_bytes(b"nothing")
    try:
        status, _, body = server.send("POST", "/v2/repository/models/damaged/load")
    finally:
        damaged.unlink()
    assert status == 500
    assert "damaged.armpy" in json.loads(body)["error"]
    assert "Error type" not in json.loads(body)["error"]


LOAD = "/v2/repository/models/halves/load"


@pytest.mark.parametrize("word", ["config", "file:1/model.onnx"])
def test_a_load_that_brings_another_model_is_501(server: KServeProcess, word: str) -> None:
    body = json.dumps({"parameters": {word: "e30="}}).encode()
    status, _, answer = server.send("POST", LOAD, body)
    assert status == 501
    assert f"load of model 'halves': the parameter {word}" in check_error(status, answer)


def change(server: KServeProcess, verb: str, name: str) -> Any:
    """Load or unload a model by gRPC."""  # Any: messages of gRPC
    modules = grpc_modules()
    verb = verb.capitalize()
    with modules.grpc.insecure_channel(server.grpc_address) as channel:
        call = getattr(modules.stub(channel), f"RepositoryModel{verb}")
        request = getattr(modules.pb, f"RepositoryModel{verb}Request")
        return call(request(model_name=name), timeout=60)
