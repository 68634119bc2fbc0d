# SPDX-License-Identifier: Apache-2.0
"""Answers of the Open Inference Protocol, held against what its description says of them.

References
----------
Open Inference Protocol, version 2: ``open_inference_rest.yaml``, ``inference_rest.md``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Document = Mapping[str, Any]  # Any: JSON

DTYPES: Mapping[str, type[np.generic]] = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
}
"""Datatypes of the protocol but BYTES, which armpy has no tensors of."""


def checked_answer(body: bytes, json_length: str | None) -> dict[str, npt.NDArray[np.generic]]:
    """Outputs of an inference's answer, if it is one by the protocol."""
    length = len(body) if json_length is None else int(json_length)
    document, rest = strict_json(body[:length]), body[length:]
    _check_keys(document, {"model_name", "outputs"}, {"model_version", "id", "parameters"})
    assert all(type(document[key]) is str for key in {*document} - {"outputs", "parameters"})
    outputs: dict[str, npt.NDArray[np.generic]] = {}
    for entry in document["outputs"]:
        _check_keys(entry, {"name", "shape", "datatype"}, {"parameters", "data"})
        shape = _shape(entry)
        dtype = np.dtype(DTYPES[entry["datatype"]])
        _check_parameters(entry)
        size = entry.get("parameters", {}).get("binary_data_size")
        assert (size is None) == ("data" in entry), "data are in the JSON or after it"
        if size is None:
            flat = _flat(entry["data"])
            kinds = {bool} if dtype.kind == "b" else {int, float} if dtype.kind == "f" else {int}
            assert {*map(type, flat)} <= kinds
            outputs[entry["name"]] = np.array(flat, dtype).reshape(shape)
        else:
            assert size == dtype.itemsize * math.prod(shape)
            raw, rest = rest[:size], rest[size:]
            outputs[entry["name"]] = np.frombuffer(raw, dtype.newbyteorder("<")).reshape(shape)
    assert not rest, "bytes that belong to no output"
    return outputs


def check_error(status: int, body: bytes) -> str:
    """The text of an error's answer, if it is one by the protocol."""
    document = strict_json(body)
    assert 400 <= status < 600
    _check_keys(document, {"error"}, set())
    assert isinstance(document["error"], str)
    assert document["error"]
    return document["error"]


def check_model_metadata(document: Document) -> None:
    """Check that metadata of a model are as the protocol says."""
    _check_keys(document, {"name", "platform"}, {"versions", "inputs", "outputs", "properties"})
    assert type(document["name"]) is type(document["platform"]) is str
    assert all(type(version) is str for version in document.get("versions", []))
    for entry in (*document.get("inputs", ()), *document.get("outputs", ())):
        # Parameters are no key of the description, which forbids no others.
        _check_keys(entry, {"name", "datatype", "shape"}, {"parameters"})
        assert entry["datatype"] in DTYPES or entry["datatype"] == "BF16"
        assert all(type(size) is int and size >= -1 for size in entry["shape"])
        _check_parameters(entry)


def check_server_metadata(document: Document) -> None:
    """Check that metadata of a server are as the protocol says."""
    _check_keys(document, {"name", "version", "extensions"}, set())
    assert all(type(document[key]) is str for key in ("name", "version"))
    assert all(type(text) is str for text in document["extensions"])


def strict_json(body: bytes) -> Document:
    """An object of JSON, which has no NaN, no infinity and no key twice."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        assert len({key for key, _ in pairs}) == len(pairs), "a key stands twice"
        return dict(pairs)

    def refuse(constant: str) -> object:
        raise AssertionError(f"{constant} is not a number of JSON")

    document = json.loads(body, object_pairs_hook=once, parse_constant=refuse)
    assert isinstance(document, dict)
    return document


def _check_keys(document: Document, needed: set[str], allowed: set[str]) -> None:
    """Check that an object has the keys that it has to have, and no unknown ones."""
    assert needed <= {*document} <= needed | allowed, f"keys {sorted(document)}"


def _check_parameters(entry: Document) -> None:
    """Check that parameters are strings, numbers or booleans."""
    for value in entry.get("parameters", {}).values():
        assert isinstance(value, (str, int, float, bool))


def _shape(entry: Document) -> tuple[int, ...]:
    """A tensor's shape."""
    assert all(type(size) is int and size >= 0 for size in entry["shape"])
    return tuple(entry["shape"])


def _flat(data: object) -> list[object]:
    """Elements of nested lists."""
    if isinstance(data, list):
        return [item for entry in data for item in _flat(entry)]
    return [data]
