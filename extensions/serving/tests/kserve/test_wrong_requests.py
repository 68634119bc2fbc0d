"""Wrong requests are refused with the status that says whose fault it is, over HTTP and gRPC."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from armpy_serving.protocol_kit.answers import check_error

from .inference_calls import CallError, grpc_modules, send
from .kserve_server import KServeProcess

pytest.importorskip("kserve", reason="kserve is not installed")


def good() -> dict[str, Any]:
    """A right request, which each case spoils."""  # Any: JSON
    return {
        "inputs": [
            {"name": "x:0", "datatype": "FP32", "shape": [1, 2], "data": [0.1, -2]},
            {"name": "n", "datatype": "INT32", "shape": [3], "data": [1, 2, 3]},
            {"name": "flags", "datatype": "BOOL", "shape": [2], "data": [True, False]},
            {"name": "q", "datatype": "INT8", "shape": [], "data": [1]},
        ]
    }


def entry(index: int, **changes: object) -> Callable[[dict[str, Any]], object]:
    """Change one input."""  # Any: JSON
    return lambda document: document["inputs"][index].update(changes)


WRONG: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {  # Any: JSON
    "an input is missing": (lambda d: d["inputs"].pop(), "missing 'q'"),
    "another datatype": (entry(0, datatype="FP64"), "the datatype is not the model's"),
    "an integer that is too large": (entry(3, data=[128]), "not INT8"),
    "an unknown output": (lambda d: d.update(outputs=[{"name": "nope"}]), "no such output"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_request_is_400_and_says_what_is_wrong(server: KServeProcess, case: str) -> None:
    spoil, text = WRONG[case]
    document = good()
    spoil(document)
    body = json.dumps(document).encode()
    status, _, answer = server.send("POST", "/v2/models/mixed/infer", body)
    assert status == 400
    assert text in check_error(status, answer)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "identity, gzip"])
def test_a_compressed_body_is_415(server: KServeProcess, encoding: str) -> None:
    body, headers = gzip.compress(json.dumps(good()).encode()), {"Content-Encoding": encoding}
    status, _, answer = server.send("POST", "/v2/models/mixed/infer", body, headers)
    assert status == 415
    text = check_error(status, answer)
    assert "Content-Encoding" in text
    assert f"got '{encoding}'" in text
    assert "uncompressed" in text


def request_of(document: dict[str, Any]) -> Any:
    """The same over gRPC."""  # Any: JSON and generated classes
    fields = {"FP32": "fp32_contents", "BOOL": "bool_contents", "FP64": "fp64_contents"}
    request = grpc_modules().pb.ModelInferRequest(model_name="mixed")
    for tensor_entry in document["inputs"]:
        tensor = request.inputs.add(
            name=tensor_entry["name"],
            datatype=tensor_entry["datatype"],
            shape=tensor_entry["shape"],
        )
        field = fields.get(tensor_entry["datatype"], "int_contents")
        if tensor_entry["datatype"] == "BYTES":
            tensor.contents.bytes_contents.extend(text.encode() for text in tensor_entry["data"])
        elif tensor_entry["datatype"] != "FP8":
            getattr(tensor.contents, field).extend(tensor_entry["data"])
    for tensor_entry in document.get("outputs", ()):
        request.outputs.add(name=tensor_entry["name"])
    return request


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_is_an_invalid_argument(server: KServeProcess, case: str) -> None:
    spoil, text = WRONG[case]
    document = good()
    spoil(document)
    with pytest.raises(CallError, match=text) as caught:
        send(server.grpc_address, request_of(document))
    assert caught.value.code == "INVALID_ARGUMENT"


NO_VERSION = "request: models have no versions. Expected none; got '1'. Leave the version out."


@pytest.mark.parametrize(
    ("verb", "path", "body"),
    [
        ("GET", "", None),
        ("GET", "/ready", None),
        ("POST", "/infer", json.dumps(good()).encode()),
        ("POST", "/infer", b"{}"),
        ("POST", "/infer", b"{"),
    ],
)
def test_a_version_is_501_whatever_the_body(
    server: KServeProcess, verb: str, path: str, body: bytes | None
) -> None:
    headers = {"Content-Type": "application/json"}
    status, _, answer = server.send(verb, f"/v2/models/mixed/versions/1{path}", body, headers)
    assert (status, check_error(status, answer)) == (501, NO_VERSION)
