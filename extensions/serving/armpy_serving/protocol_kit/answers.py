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

from armpy.errors import ArmpyError
from armpy_serving.contents import RAW_ONLY, Array, array_of_bytes, contents_of
from armpy_serving.protocol import dtype_of

Document = Mapping[str, Any]  # Any: JSON


class BrokenRuleError(Exception):
    """An answer breaks a rule of the protocol; the text says which."""


def require(condition: object, text: str) -> None:
    """Raise `BrokenRuleError` unless a condition holds."""
    if not condition:
        raise BrokenRuleError(text)


def checked_answer(
    body: bytes, json_length: str | None, *, allows_null: bool = False
) -> dict[str, Array]:
    """Outputs of an inference's answer, if it is one by the protocol.

    Parameters
    ----------
    json_length : str, optional
        Value of the header ``Inference-Header-Content-Length``; None if all is JSON.
    allows_null : bool
        Whether optional keys may be null, as some servers write those that they have no value for.
    """
    length = len(body) if json_length is None else int(json_length)
    document, rest = strict_json(body[:length]), body[length:]
    if allows_null:
        document = without_nulls(document)
    _check_keys(document, {"model_name", "outputs"}, {"model_version", "id", "parameters"})
    for key in document.keys() - {"outputs", "parameters"}:
        require(type(document[key]) is str, f"'{key}' is {document[key]!r}, not a string")
    outputs: dict[str, Array] = {}
    for output in document["outputs"]:
        entry = without_nulls(output) if allows_null else output
        _check_keys(entry, {"name", "shape", "datatype"}, {"parameters", "data"})
        name, shape, datatype = entry["name"], _shape(entry), entry["datatype"]
        dtype = _dtype(datatype)
        _check_parameters(entry)
        size = entry.get("parameters", {}).get("binary_data_size")
        is_json = size is None
        require(is_json == ("data" in entry), "not one of 'data' and binary_data_size")
        if is_json:
            flat = _flat(entry["data"])
            kinds = _KINDS.get(dtype.kind, {int})
            require({*map(type, flat)} <= kinds, f"elements of '{name}' are not {datatype}")
            require(len(flat) == math.prod(shape), f"'{name}' has {len(flat)} elements for {shape}")
            outputs[name] = np.array(flat, dtype).reshape(shape)
        else:
            raw, rest = rest[:size], rest[size:]
            outputs[name] = _of_bytes(name, datatype, shape, raw)
    require(not rest, f"{len(rest)} bytes belong to no output")
    return outputs


def checked_message(answer: Any) -> dict[str, Array]:  # Any: protobuf's
    """Outputs of an inference's answer over gRPC, if it is one by the protocol."""
    raws = answer.raw_output_contents
    require(len(raws) in (0, len(answer.outputs)), "raw contents are of all outputs, or of none")
    outputs: dict[str, Array] = {}
    for index, tensor in enumerate(answer.outputs):
        shape = tuple(tensor.shape)
        if raws:
            is_raw = not tensor.contents.ByteSize()  # some servers write empty ones
            require(is_raw, f"'{tensor.name}' has raw and typed contents")
            outputs[tensor.name] = _of_bytes(tensor.name, tensor.datatype, shape, raws[index])
            continue
        dtype = _dtype(tensor.datatype)
        require(tensor.datatype not in RAW_ONLY, f"{tensor.datatype} has no typed contents")
        field = contents_of(tensor.datatype, np.zeros(0, dtype))[0]
        elements = [*getattr(tensor.contents, field)]
        require(
            len(elements) == math.prod(shape),
            f"'{tensor.name}' has {len(elements)} elements in {field} for {[*shape]}",
        )
        array = np.array(elements, dtype).reshape(shape)
        outputs[tensor.name] = _decoded(array) if dtype.kind == "O" else array
    return outputs


def without_nulls(document: Document) -> Document:
    """An object without the keys that are null."""
    require(isinstance(document, Mapping), f"{document!r} is not an object")
    return {key: value for key, value in document.items() if value is not None}


_KINDS: Mapping[str, set[type]] = {"b": {bool}, "f": {int, float}, "O": {str}}
"""Types that JSON's elements have, by the kind of dtype; integers for all others."""


def _of_bytes(name: str, datatype: str, shape: tuple[int, ...], raw: bytes) -> Array:
    """The array that an output's bytes are."""
    try:
        array = array_of_bytes(name, datatype, shape, raw)
    except ArmpyError as error:
        raise BrokenRuleError(str(error)) from error
    return _decoded(array) if array.dtype.kind == "O" else array


def _decoded(strings: Array) -> Array:
    """Strings as JSON has them, of an array of bytes."""
    texts = [string.decode(errors="replace") for string in strings.ravel().tolist()]
    return np.array(texts, object).reshape(strings.shape)


def _dtype(datatype: object) -> np.dtype[Any]:
    """NumPy's dtype of a datatype."""
    try:
        return np.dtype(dtype_of(str(datatype)))
    except ArmpyError as error:
        raise BrokenRuleError(str(error)) from error


def check_error(status: int, body: bytes) -> str:
    """The text of an error's answer, if it is one by the protocol."""
    document = strict_json(body)
    require(400 <= status < 600, f"the status of an error is {status}")
    _check_keys(document, {"error"}, set())
    text = document["error"]
    require(isinstance(text, str) and text, f"'error' is {text!r}, not a text")
    return str(text)


def check_model_metadata(document: Document) -> None:
    """Check that metadata of a model are as the protocol says."""
    _check_keys(document, {"name", "platform"}, {"versions", "inputs", "outputs", "properties"})
    for key in ("name", "platform"):
        require(type(document[key]) is str, f"'{key}' is {document[key]!r}, not a string")
    versions = document.get("versions", [])
    require(isinstance(versions, list), f"'versions' is {versions!r}, not a list")
    require(all(type(version) is str for version in versions), "a version is no string")
    properties = document.get("properties", {})
    require(isinstance(properties, dict), f"'properties' is {properties!r}, not an object")
    for entry in (*document.get("inputs", ()), *document.get("outputs", ())):
        # Parameters are no key of the description, which forbids no others.
        _check_keys(entry, {"name", "datatype", "shape"}, {"parameters"})
        _dtype(entry["datatype"])
        _shape(entry, least=-1)
        _check_parameters(entry)


def check_server_metadata(document: Document) -> None:
    """Check that metadata of a server are as the protocol says."""
    _check_keys(document, {"name", "version", "extensions"}, set())
    for key in ("name", "version"):
        require(type(document[key]) is str, f"'{key}' is {document[key]!r}, not a string")
    extensions = document["extensions"]
    require(all(type(text) is str for text in extensions), f"'extensions' is {extensions!r}")


def strict_json(body: bytes) -> Document:
    """An object of JSON, which has no NaN, no infinity and no key twice."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        require(len({key for key, _ in pairs}) == len(pairs), "a key stands twice")
        return dict(pairs)

    def refuse(constant: str) -> object:
        raise BrokenRuleError(f"{constant} is not a number of JSON")

    try:
        document = json.loads(body, object_pairs_hook=once, parse_constant=refuse)
    except ValueError as error:
        raise BrokenRuleError(f"not JSON: {body[:60]!r}") from error
    require(isinstance(document, dict), f"not an object: {body[:60]!r}")
    return document  # type: ignore[no-any-return]  # JSON


def _check_keys(document: Document, needed: set[str], allowed: set[str]) -> None:
    """Check that an object has the keys that it has to have, and no unknown ones."""
    require(isinstance(document, dict), f"{document!r} is not an object")
    missing = sorted(needed - document.keys())
    unknown = sorted(document.keys() - needed - allowed)
    require(not missing, f"{', '.join(missing)} missing")
    require(not unknown, f"unknown: {', '.join(unknown)}")


def _check_parameters(entry: Document) -> None:
    """Check that parameters are strings, numbers or booleans."""
    parameters = entry.get("parameters", {})
    require(isinstance(parameters, dict), f"'parameters' is {parameters!r}, not an object")
    for key, value in parameters.items():
        allowed = isinstance(value, (str, int, float, bool))
        require(allowed, f"the parameter {key} is {value!r}, not a string, number or boolean")


def _shape(entry: Document, least: int = 0) -> tuple[int, ...]:
    """A tensor's shape, with sizes of `least` or more."""
    sizes = entry["shape"]
    require(isinstance(sizes, list), f"the shape is {sizes!r}, not a list")
    require(all(type(size) is int and size >= least for size in sizes), f"the shape is {sizes}")
    return tuple(entry["shape"])


def _flat(data: object) -> list[object]:
    """Elements of nested lists."""
    if isinstance(data, list):
        return [item for entry in data for item in _flat(entry)]
    return [data]
