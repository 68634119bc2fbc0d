"""Wrong requests are refused with the status that says whose fault it is, over HTTP and gRPC."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from armpy_serving.protocol_kit.answers import check_error

from .inference_calls import CallError, grpc_modules, send
from .kserve_server import HEADER, KServeProcess

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
    "an input too many": (
        lambda d: d["inputs"].append({**d["inputs"][0], "name": "other"}),
        "other",
    ),
    "an input twice": (lambda d: d["inputs"].append(d["inputs"][0]), "twice"),
    "no inputs": (lambda d: d.pop("inputs"), "'inputs'"),
    "another datatype": (entry(0, datatype="FP64"), "Send the datatype FP32, with data of it"),
    "an unknown datatype": (entry(0, datatype="FP8"), "unknown datatype"),
    "text": (entry(0, datatype="BYTES", data=["a", "b"]), "the datatype is not the model's"),
    "another shape": (entry(0, shape=[2, 1]), "x:0"),
    "too few elements": (entry(0, data=[0.1]), "not of the shape"),
    "a negative size": (entry(0, shape=[-1, 2]), "a size of the shape is negative"),
    "a fraction for an integer": (entry(1, data=[1.5, 2, 3]), "not INT32"),
    "an integer that is too large": (entry(3, data=[128]), "not INT8"),
    "a number for a flag": (entry(2, data=[1, 0]), "not BOOL"),
    "an unknown output": (lambda d: d.update(outputs=[{"name": "nope"}]), "no such output"),
    "a time-out that is none": (lambda d: d.update(parameters={"timeout": "soon"}), "time-out"),
    "parameters of a list": (lambda d: d.update(parameters={"a": [1]}), "parameters"),
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


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b'{"inputs": [{"name": "\\ud800", "datatype": "FP8", "shape": [1], "data": [1]}]}', {}),
        (b"{}", {HEADER: "3"}),
        (b'{"inputs": []}rest', {HEADER: "14"}),
    ],
)
def test_a_body_that_is_no_request_is_400(
    server: KServeProcess, body: bytes, headers: dict[str, str]
) -> None:
    status, _, answer = server.send("POST", "/v2/models/mixed/infer", body, headers)
    assert status == 400
    check_error(status, answer)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "identity, gzip"])
def test_a_compressed_body_is_415(server: KServeProcess, encoding: str) -> None:
    body, headers = gzip.compress(json.dumps(good()).encode()), {"Content-Encoding": encoding}
    status, _, answer = server.send("POST", "/v2/models/mixed/infer", body, headers)
    assert status == 415
    text = check_error(status, answer)
    assert "Content-Encoding" in text
    assert f"got '{encoding}'" in text
    assert "uncompressed" in text


@pytest.mark.parametrize("encoding", ["", "identity", "Identity"])
def test_a_body_that_says_it_is_not_compressed_is_answered(
    server: KServeProcess, encoding: str
) -> None:
    body, headers = json.dumps(good()).encode(), {"Content-Encoding": encoding}
    assert server.send("POST", "/v2/models/mixed/infer", body, headers)[0] == 200


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


OVER_GRPC = [
    "an input is missing",
    "an input too many",
    "an input twice",
    "another datatype",
    "an unknown datatype",
    "text",
    "another shape",
    "too few elements",
    "a negative size",
    "an integer that is too large",
    "an unknown output",
]


@pytest.mark.parametrize("case", OVER_GRPC)
def test_a_wrong_call_is_an_invalid_argument(server: KServeProcess, case: str) -> None:
    spoil, text = WRONG[case]
    document = good()
    spoil(document)
    with pytest.raises(CallError, match=text) as caught:
        send(server.grpc_address, request_of(document))
    assert caught.value.code == "INVALID_ARGUMENT"


def test_raw_contents_have_to_be_of_every_input(server: KServeProcess) -> None:
    request = request_of(good())
    for tensor in request.inputs:
        tensor.ClearField("contents")
    request.raw_input_contents.append(b"12345678")
    with pytest.raises(CallError, match="as many raw contents") as caught:
        send(server.grpc_address, request)
    assert caught.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        ("POST", "/predict", 404, "not found"),
        ("GET", "/v2/models/mixed/infer", 405, "method not allowed"),
    ],
)
def test_a_wrong_route_is_answered_with_the_right_one(
    server: KServeProcess, method: str, path: str, status: int, text: str
) -> None:
    code, _, answer = server.send(method, path, b"{}" if method == "POST" else None)
    assert code == status
    message = check_error(code, answer)
    assert message.startswith(f"{text}. Expected POST /v2/models/NAME/infer")
    assert f"; got {method} {path}" in message


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


@pytest.mark.parametrize("call", ["ModelInfer", "ModelMetadata", "ModelReady"])
def test_a_version_is_unimplemented_in_the_same_words(server: KServeProcess, call: str) -> None:
    modules = grpc_modules()
    if call == "ModelInfer":
        request = request_of(good())
        request.model_version = "1"
    else:
        request = getattr(modules.pb, f"{call}Request")(name="mixed", version="1")
    with modules.grpc.insecure_channel(server.grpc_address) as channel:
        stub = modules.stub(channel)
        with pytest.raises(modules.grpc.RpcError) as caught:
            getattr(stub, call)(request, timeout=60)
    assert (caught.value.code().name, caught.value.details()) == ("UNIMPLEMENTED", NO_VERSION)


@pytest.mark.parametrize("verb", ["predict", "explain"])
@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"instances": 1}', b'{"instances": [[1, 2]]}']
)
def test_version_1_is_400_and_names_version_2_whatever_the_body(
    server: KServeProcess, verb: str, body: bytes
) -> None:
    status, _, answer = server.send("POST", f"/v1/models/mixed:{verb}", body)
    assert status == 400
    text = check_error(status, answer)
    assert "version 2: POST /v2/models/mixed/infer" in text
    assert f"got /v1/models/mixed:{verb}" in text
    status, _, answer = server.send("POST", f"/v1/models/nope:{verb}", body)
    assert 400 <= status < 500


def test_labels_are_unimplemented(server: KServeProcess) -> None:
    request = request_of(good())
    request.outputs.add(name="double").parameters["classification"].int64_param = 2
    with pytest.raises(CallError, match="output 'double': the parameter classification") as caught:
        send(server.grpc_address, request)
    assert caught.value.code == "UNIMPLEMENTED"


def test_contents_in_the_field_of_another_datatype_are_named(server: KServeProcess) -> None:
    request = request_of(good())
    request.inputs[1].contents.Clear()
    request.inputs[1].contents.fp32_contents.extend([1, 2, 3])
    message = "input 'n': .* Expected int_contents for INT32; got fp32_contents"
    with pytest.raises(CallError, match=message) as caught:
        send(server.grpc_address, request)
    assert caught.value.code == "INVALID_ARGUMENT"
