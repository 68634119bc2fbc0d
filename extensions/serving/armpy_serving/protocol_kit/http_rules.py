"""Rules over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from armpy_serving.contents import Array, bytes_of
from armpy_serving.protocol_kit.answers import (
    check_error,
    check_model_metadata,
    check_server_metadata,
    checked_answer,
    require,
    strict_json,
)
from armpy_serving.protocol_kit.rules import ProtocolRule, applies, require_equal
from armpy_serving.protocol_kit.target import HttpAnswer, ModelInput, TriedServer, shown
from armpy_serving.requests import HEADER

Document = dict[str, Any]  # Any: JSON


def _is_ok(path: str, target: TriedServer) -> None:
    answer = target.get(path.format(model=target.path))
    require(answer.status == 200, shown(answer))


def _server_metadata(target: TriedServer) -> None:
    answer = target.get("/v2")
    require(answer.status == 200, shown(answer))
    check_server_metadata(strict_json(answer.body))


def _model_metadata(target: TriedServer) -> None:
    check_model_metadata(target.metadata)
    require(target.metadata["name"] == target.model, f"the name is {target.metadata['name']!r}")
    require(target.metadata.get("inputs"), "no inputs")
    require(target.metadata.get("outputs"), "no outputs")


def _plain(target: TriedServer) -> None:
    expected = {entry["name"]: entry for entry in target.metadata["outputs"]}
    outputs = target.answered(target.document())
    require({*outputs} == {*expected}, f"outputs {sorted(outputs)}, metadata {sorted(expected)}")
    for name, array in outputs.items():
        sizes = expected[name]["shape"]
        pairs = zip(array.shape, sizes, strict=False)
        fits = array.ndim == len(sizes) and all(n in (actual, -1) for actual, n in pairs)
        require(fits, f"'{name}' is of shape {[*array.shape]}, metadata say {sizes}")


def _model_name(target: TriedServer) -> None:
    answer = target.post(json.dumps(target.document()).encode())
    name = strict_json(answer.body).get("model_name")
    require(name == target.model, f"the answer is of model {name!r}")


def _no_nulls(target: TriedServer) -> None:
    metadata = target.get(target.path)
    check_model_metadata(strict_json(metadata.body))
    answer = target.post(json.dumps(target.document()).encode())
    checked_answer(answer.body, answer.headers.get(HEADER.lower()))


def _id(target: TriedServer) -> None:
    answer = target.post(json.dumps({"id": "armpy-42", **target.document()}).encode())
    require(answer.status == 200, shown(answer))
    actual = strict_json(answer.body).get("id")
    require(actual == "armpy-42", f"the answer's id is {actual!r}, sent was 'armpy-42'")


def _nested(target: TriedServer) -> None:
    document = target.document()
    for entry, tensor in zip(document["inputs"], target.inputs, strict=True):
        entry["data"] = tensor.array.tolist()
        applies(isinstance(entry["data"], list), "an input is a scalar")
    require_equal(target.answered(document), target.outputs)


def _any_order(target: TriedServer) -> None:
    applies(len(target.inputs) > 1, "the model has one input")
    document = target.document()
    document["inputs"].reverse()
    require_equal(target.answered(document), target.outputs)


def _chosen_output(target: TriedServer) -> None:
    name, array = next(iter(target.outputs.items()))
    document = target.document() | {"outputs": [{"name": name}]}
    require_equal(target.answered(document), {name: array})


def _parameters(target: TriedServer) -> None:
    parameters = {"armpy_a": "text", "armpy_b": 1, "armpy_c": True}
    document = target.document() | {"parameters": parameters}
    require_equal(target.answered(document), target.outputs)


def _applies_binary(target: TriedServer) -> None:
    extension = "binary_tensor_data"
    applies(extension in target.extensions, f"the server does not name {extension}")


def _binary(target: TriedServer, *, inputs: bool, outputs: bool) -> None:
    _applies_binary(target)
    document, tail = target.document(), b""
    if inputs:
        for entry, tensor in zip(document["inputs"], target.inputs, strict=True):
            raw = bytes_of(tensor.array)
            tail += raw
            del entry["data"]
            entry["parameters"] = {"binary_data_size": len(raw)}
    if outputs:
        document["parameters"] = {"binary_data_output": True}
    head = json.dumps(document).encode()
    headers = {HEADER: str(len(head)), "Content-Type": "application/octet-stream"}
    answer = target.post(head + tail, headers if inputs else None)
    require(answer.status == 200, shown(answer))
    length = answer.headers.get(HEADER.lower())
    require(not outputs or length is not None, f"no header {HEADER}: outputs are not bytes")
    require_equal(checked_answer(answer.body, length, allows_null=True), target.outputs)


def _first(target: TriedServer, condition: Callable[[ModelInput], bool], name: str) -> int:
    """Index of the first input of a kind."""
    for index, tensor in enumerate(target.inputs):
        if condition(tensor):
            return index
    applies(False, f"the model has no input of {name}")
    raise AssertionError


Change = Callable[[TriedServer, Document], object]
"""Spoils a right request."""


def _first_entry(**changes: object) -> Change:
    return lambda _, document: document["inputs"][0].update(changes)


def _data(elements: Callable[[list[Any]], object]) -> Change:  # Any: JSON
    """Change the elements of the first input."""

    def change(_: TriedServer, document: Document) -> None:
        entry = document["inputs"][0]
        entry["data"] = elements(entry["data"])

    return change


def _without(key: str) -> Change:
    return lambda _, document: document["inputs"][0].pop(key)


def _of_kind(kinds: str, name: str, element: object) -> Change:
    """Change an element of the first input of a kind."""

    def change(target: TriedServer, document: Document) -> None:
        index = _first(target, lambda tensor: tensor.array.dtype.kind in kinds, name)
        document["inputs"][index]["data"][0] = element

    return change


def _too_large(target: TriedServer, document: Document) -> None:
    index = _first(target, lambda tensor: tensor.array.dtype.kind in "iu", "integers")
    bits = target.inputs[index].array.dtype.itemsize * 8
    document["inputs"][index]["data"][0] = 2**bits


def _other_datatype(target: TriedServer, document: Document) -> None:
    other = "INT32" if target.inputs[0].datatype == "FP64" else "FP64"
    document["inputs"][0] |= {"datatype": other, "data": [1] * target.inputs[0].array.size}


def _other_rank(_: TriedServer, document: Document) -> None:
    entry = document["inputs"][0]
    entry["shape"] = [1, 1, 1, 1, 1, 1, *entry["shape"]]


WRONG: Mapping[str, Change] = {
    "an-input-is-missing": lambda _, document: document["inputs"].pop(),
    "an-unknown-input": lambda _, d: d["inputs"].append({**d["inputs"][0], "name": "armpy_other"}),
    "an-input-twice": lambda _, document: document["inputs"].append(document["inputs"][0]),
    "no-inputs": lambda _, document: document.pop("inputs"),
    "inputs-is-no-list": lambda _, document: document.update(inputs=1),
    "no-name": _without("name"),
    "no-shape": _without("shape"),
    "no-datatype": _without("datatype"),
    "no-data": _without("data"),
    "another-datatype": _other_datatype,
    "an-unknown-datatype": _first_entry(datatype="FP8"),
    "another-rank": _other_rank,
    "a-negative-size": _first_entry(shape=[-1, 1]),
    "a-fractional-size": _first_entry(shape=[1.5]),
    "too-few-elements": _data(lambda data: data[:-1]),
    "too-many-elements": _data(lambda data: [*data, *data[:1]]),
    "null-element": _data(lambda data: [None, *data[1:]]),
    "object-element": _data(lambda data: [{}, *data[1:]]),
    "text-for-a-number": _of_kind("iuf", "numbers", "armpy"),
    "a-fraction-for-an-integer": _of_kind("iu", "integers", 1.5),
    "an-integer-that-is-too-large": _too_large,
    "a-number-for-a-string": _of_kind("O", "strings", 1),
    "an-unknown-output": lambda _, document: document.update(outputs=[{"name": "armpy_nope"}]),
    "parameters-is-no-object": lambda _, document: document.update(parameters=[1]),
    "id-is-no-string": lambda _, document: document.update(id=7),
}
"""Changes that make a right request a wrong one, by rule."""

BODIES: Mapping[str, bytes] = {
    "empty-body": b"",
    "truncated-json": b'{"inputs": [',
    "a-list": b"[]",
    "no-utf-8": b"\xff\xfe{}",
    "deep-nesting": b"[" * 100_000,
    "trailing-text": b'{"inputs": []} rest',
}
"""Bodies that are no requests, by rule."""

HEADERS: Mapping[str, str] = {"no-number": "many", "negative": "-1", "too-long": "1000000000"}
"""Values of the header with the length of the JSON that are wrong."""


def _refused(answer: HttpAnswer) -> None:
    """Check that a wrong request was refused, as the client's fault."""
    require(400 <= answer.status < 500, f"expected a status of 400 to 499: {shown(answer)}")
    check_error(answer.status, answer.body)


def _wrong(change: Change, target: TriedServer) -> None:
    document = target.document()
    change(target, document)
    _refused(target.post(json.dumps(document).encode()))


def _wrong_body(body: bytes, target: TriedServer) -> None:
    _refused(target.post(body))


def _not_a_number(target: TriedServer) -> None:
    document = target.document()
    _of_kind("f", "floats", float("nan"))(target, document)
    _refused(target.post(json.dumps(document).encode()))


def _wrong_header(value: str, target: TriedServer) -> None:
    _applies_binary(target)
    _refused(target.post(json.dumps(target.document()).encode(), {HEADER: value}))


def _wrong_bytes(target: TriedServer, *, size: int, length: int) -> None:
    """Send more or fewer bytes of the first input than its shape has."""
    _applies_binary(target)
    document = target.document()
    raw = bytes_of(target.inputs[0].array)
    raw = raw[: len(raw) + length] if length < 0 else raw + bytes(length)
    del document["inputs"][0]["data"]
    document["inputs"][0]["parameters"] = {"binary_data_size": len(raw) + size}
    head = json.dumps(document).encode()
    headers = {HEADER: str(len(head)), "Content-Type": "application/octet-stream"}
    _refused(target.post(head + raw, headers))


def _not_found(verb: str, path: str, target: TriedServer) -> None:
    body = json.dumps(target.document()).encode() if verb == "POST" else None
    headers = {"Content-Type": "application/json"} if body else {}
    answer = target.send(verb, path, body, headers)
    require(answer.status in (400, 404), f"expected a status of 404: {shown(answer)}")
    check_error(answer.status, answer.body)


def _still_answers(target: TriedServer) -> None:
    expected: Mapping[str, Array] = target.outputs
    require_equal(target.answered(target.document()), expected)


_NOT_FOUND = {
    "infer": ("POST", "/v2/models/armpy_nope/infer"),
    "metadata": ("GET", "/v2/models/armpy_nope"),
    "ready": ("GET", "/v2/models/armpy_nope/ready"),
}

HTTP_RULES: tuple[ProtocolRule, ...] = (
    ProtocolRule("http/server/live", partial(_is_ok, "/v2/health/live")),
    ProtocolRule("http/server/ready", partial(_is_ok, "/v2/health/ready")),
    ProtocolRule("http/server/metadata", _server_metadata),
    ProtocolRule("http/model/ready", partial(_is_ok, "{model}/ready")),
    ProtocolRule("http/model/metadata", _model_metadata),
    ProtocolRule("http/right/plain", _plain),
    ProtocolRule("http/right/model-name", _model_name),
    ProtocolRule("http/right/no-nulls", _no_nulls),
    ProtocolRule("http/right/id", _id),
    ProtocolRule("http/right/nested-data", _nested),
    ProtocolRule("http/right/inputs-in-any-order", _any_order),
    ProtocolRule("http/right/one-output", _chosen_output),
    ProtocolRule("http/right/unknown-parameters", _parameters),
    ProtocolRule("http/binary/inputs", partial(_binary, inputs=True, outputs=False)),
    ProtocolRule("http/binary/outputs", partial(_binary, inputs=False, outputs=True)),
    ProtocolRule("http/binary/both", partial(_binary, inputs=True, outputs=True)),
    *(
        ProtocolRule(f"http/wrong/{name}", partial(_wrong, change))
        for name, change in WRONG.items()
    ),
    ProtocolRule("http/wrong/nan", _not_a_number),
    *(
        ProtocolRule(f"http/wrong/{name}", partial(_wrong_body, body))
        for name, body in BODIES.items()
    ),
    *(
        ProtocolRule(f"http/wrong-binary/header-{name}", partial(_wrong_header, value))
        for name, value in HEADERS.items()
    ),
    ProtocolRule("http/wrong-binary/too-few-bytes", partial(_wrong_bytes, size=0, length=-1)),
    ProtocolRule("http/wrong-binary/size-beyond-the-body", partial(_wrong_bytes, size=8, length=0)),
    ProtocolRule("http/wrong-binary/bytes-left-over", partial(_wrong_bytes, size=-8, length=8)),
    *(
        ProtocolRule(f"http/unknown-model/{name}", partial(_not_found, *request))
        for name, request in _NOT_FOUND.items()
    ),
    ProtocolRule("http/still-answers", _still_answers),
)
"""Rules in the order in which they are tried: the last one comes after all wrong requests."""
