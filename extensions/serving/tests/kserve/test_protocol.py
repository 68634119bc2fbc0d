"""Answers of the server are those of the Open Inference Protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from armpy_serving.protocol_kit.answers import check_error

from .kserve_server import HEADER, KServeProcess

X = {"name": "x:0", "datatype": "FP32", "shape": [1, 2], "data": [0.1, -2]}
N = {"name": "n", "datatype": "INT32", "shape": [3], "data": [1, 2, 3]}
FLAGS = {"name": "flags", "datatype": "BOOL", "shape": [2], "data": [True, False]}
Q = {"name": "q", "datatype": "INT8", "shape": [], "data": [1]}
INPUTS = [X, N, FLAGS, Q]


def ask(
    server: KServeProcess, document: object, binary: bytes = b"", **headers: str
) -> tuple[int, Mapping[str, str], bytes]:
    head = json.dumps(document).encode()
    sent = {HEADER: str(len(head))} if binary else {}
    path = "/v2/models/mixed/infer"
    return server.send("POST", path, head + binary, sent | headers)


def test_server_metadata_name_the_extensions(server: KServeProcess) -> None:
    document = json.loads(server.send("GET", "/v2")[2])
    assert document["name"] == "armpy"
    assert {"binary_tensor_data", "model_repository"} <= {*document["extensions"]}


def test_model_metadata_have_open_dimensions_and_quantisation(server: KServeProcess) -> None:
    document = json.loads(server.send("GET", "/v2/models/mixed")[2])
    inputs = {entry["name"]: entry for entry in document["inputs"]}
    assert inputs["x:0"] == {"name": "x:0", "datatype": "FP32", "shape": [-1, 2]}
    assert inputs["q"]["shape"] == []
    assert inputs["q"]["parameters"] == {"data_type": "QASYMM_S8", "scale": 0.5, "zero_point": -3}


def test_the_index_lists_models_and_their_states(server: KServeProcess) -> None:
    _, _, body = server.send("POST", "/v2/repository/index", b"{}")
    assert {(state["name"], state["state"]) for state in json.loads(body)} >= {("mixed", "READY")}


@pytest.mark.parametrize("path", ["/v2/models/nope/infer", "/v2/models/nope", "/v2/nope"])
def test_what_is_not_there_is_404(server: KServeProcess, path: str) -> None:
    verb = "POST" if path.endswith("infer") else "GET"
    status, _, body = server.send(verb, path, json.dumps({"inputs": INPUTS}).encode())
    assert status == 404
    check_error(status, body)
