"""Answers of the server are those of the Open Inference Protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pytest

from armpy_serving.protocol_kit.answers import check_error, checked_answer

from .kserve_server import HEADER, KServeProcess

X = {"name": "x:0", "datatype": "FP32", "shape": [1, 2], "data": [0.1, -2]}
N = {"name": "n", "datatype": "INT32", "shape": [3], "data": [1, 2, 3]}
FLAGS = {"name": "flags", "datatype": "BOOL", "shape": [2], "data": [True, False]}
Q = {"name": "q", "datatype": "INT8", "shape": [], "data": [1]}
INPUTS = [X, N, FLAGS, Q]
ANSWERS = {
    "double": np.array([[0.2, -4]], np.float32),
    "sum": np.array([2, 4, 6], np.int32),
    "not": np.array([False, True]),
    "real": np.array(2, np.float32),
}


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


def test_json_comes_back_as_json(server: KServeProcess) -> None:
    status, headers, body = ask(server, {"inputs": INPUTS})
    assert (status, headers["content-type"]) == (200, "application/json")
    outputs = checked_answer(body, headers.get(HEADER.lower()))
    assert {*outputs} == {*ANSWERS}
    for name, expected in ANSWERS.items():
        assert outputs[name].dtype == expected.dtype
        np.testing.assert_array_equal(outputs[name], expected)


def test_bytes_come_back_where_they_are_asked_for(server: KServeProcess) -> None:
    size = {"binary_data_size": 8}
    entry = {"name": "x:0", "datatype": "FP32", "shape": [1, 2], "parameters": size}
    document = {
        "inputs": [N, entry, FLAGS, Q],
        "outputs": [{"name": "double", "parameters": {"binary_data": True}}, {"name": "sum"}],
    }
    status, headers, body = ask(server, document, np.array([0.1, -2], "<f4").tobytes())
    assert status == 200
    document = json.loads(body[: int(headers[HEADER.lower()])])
    assert ["data" in entry for entry in document["outputs"]] == [False, True]
    outputs = checked_answer(body, headers[HEADER.lower()])
    np.testing.assert_array_equal(outputs["double"], ANSWERS["double"])
    assert {*outputs} == {"double", "sum"}


def test_what_json_cannot_say_is_refused_and_comes_as_bytes(server: KServeProcess) -> None:
    large = {"name": "x:0", "datatype": "FP32", "shape": [1, 2], "data": [3e38, 1]}
    status, _, body = ask(server, {"inputs": [large, N, FLAGS, Q]})
    assert status == 400
    assert "JSON cannot say infinity" in check_error(status, body)
    binary = {"binary_data_output": True}
    _, headers, body = ask(server, {"inputs": [large, N, FLAGS, Q], "parameters": binary})
    assert checked_answer(body, headers[HEADER.lower()])["double"][0, 0] == np.inf


@pytest.mark.parametrize("path", ["/v2/models/nope/infer", "/v2/models/nope", "/v2/nope"])
def test_what_is_not_there_is_404(server: KServeProcess, path: str) -> None:
    verb = "POST" if path.endswith("infer") else "GET"
    status, _, body = server.send(verb, path, json.dumps({"inputs": INPUTS}).encode())
    assert status == 404
    check_error(status, body)


def test_requests_are_counted_by_their_outcome(server: KServeProcess) -> None:
    before = server.metric("armpy_requests_total", model="mixed", code="OK")
    wrong = server.metric("armpy_requests_total", model="mixed", code="INVALID_ARGUMENT")
    ask(server, {"inputs": INPUTS})
    ask(server, {"inputs": []})
    assert server.metric("armpy_requests_total", model="mixed", code="OK") == before + 1
    assert server.metric("armpy_requests_total", code="INVALID_ARGUMENT") >= wrong + 1
    assert server.metric("armpy_memory_bytes") > 1e6
