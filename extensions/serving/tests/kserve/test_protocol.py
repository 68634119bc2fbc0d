"""Answers of the server are those of the Open Inference Protocol."""

from __future__ import annotations

import json

from .kserve_server import KServeProcess


def test_model_metadata_have_open_dimensions_and_quantisation(server: KServeProcess) -> None:
    document = json.loads(server.send("GET", "/v2/models/mixed")[2])
    inputs = {entry["name"]: entry for entry in document["inputs"]}
    assert inputs["x:0"] == {"name": "x:0", "datatype": "FP32", "shape": [-1, 2]}
    assert inputs["q"]["shape"] == []
    assert inputs["q"]["parameters"] == {"data_type": "QASYMM_S8", "scale": 0.5, "zero_point": -3}


def test_the_index_lists_models_and_their_states(server: KServeProcess) -> None:
    _, _, body = server.send("POST", "/v2/repository/index", b"{}")
    assert {(state["name"], state["state"]) for state in json.loads(body)} >= {("mixed", "READY")}
