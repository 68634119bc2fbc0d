"""Requests and answers of the Open Inference Protocol over HTTP: JSON, and bytes after it.

References
----------
Open Inference Protocol, version 2: ``inference_rest.md``; Triton's extension
``binary_tensor_data``: the tensors' bytes follow the JSON, in its order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError, UnimplementedError
from armpy.types import DataType
from armpy_serving.contents import Array, array_of_bytes, array_of_numbers, bytes_of, numbers_of
from armpy_serving.protocol import Parameter, datatype_of

HEADER = "Inference-Header-Content-Length"
"""Header that says how many bytes of a body are its JSON; without it all are."""

_NOTHING = memoryview(b"")


@dataclass(frozen=True, slots=True)
class InferenceRequest:
    """Request of an inference."""

    inputs: Mapping[str, Array]
    datatypes: Mapping[str, str]  # what each input was called to be
    outputs: tuple[str, ...] = ()  # those that are asked for; all if empty
    binary_outputs: frozenset[str] = frozenset()  # those that are wanted as bytes
    all_binary: bool = False  # whether that holds for all others, too
    id: str = ""  # empty if the request has none
    parameters: Mapping[str, Parameter] = field(default_factory=dict)

    @property
    def deadline_s(self) -> float | None:
        """Return how long it may take: parameter ``timeout``, in microseconds, as Triton has it."""
        timeout = self.parameters.get("timeout", 0)
        if type(timeout) is int and 0 <= timeout < 2**63:
            return timeout / 1e6 or None
        raise _wrong(
            "the time-out is negative or not a whole number", "a number of microseconds", timeout
        )


def json_length(header: str | None) -> int | None:
    """Return the bytes of JSON in a body, from the text of the header `HEADER`; None without it.

    Raises
    ------
    InvalidArgumentError
        If that is not a number.
    """
    if header is None:
        return None
    if header.isascii() and header.isdigit() and len(header) < 19:
        return int(header)
    raise _wrong(f"the header {HEADER} is not a number", "a number of bytes", repr(header))


def read_request(
    body: bytes | bytearray | memoryview, header_length: int | None = None
) -> InferenceRequest:
    """Read a request's body.

    Parameters
    ----------
    header_length : int, optional
        Value of the header `HEADER`; the body is all JSON without it.

    Raises
    ------
    InvalidArgumentError
        If it does not follow the protocol.
    UnimplementedError
        If an output is asked for in a way that there is not; see `check_output`.
    """
    whole = memoryview(body)
    length = len(whole) if header_length is None else header_length
    if not 0 <= length <= len(whole):
        raise _wrong("the length of the JSON is wrong", f"0 to {len(whole)} ({HEADER})", length)
    text = bytes(whole[:length])
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        actual = repr(text[:60].decode(errors="replace"))
        raise _wrong(
            f"the body is not JSON ({error})", "an object with 'inputs'", actual
        ) from error
    return request_of(document, whole[length:])


def request_of(document: object, binary: memoryview = _NOTHING) -> InferenceRequest:
    """The request that a JSON document is, with the bytes that follow it; see `read_request`."""
    if not isinstance(document, Mapping):
        raise _wrong(
            "the body is not an object", "an object with 'inputs'", type(document).__name__
        )
    inputs: dict[str, Array] = {}
    datatypes: dict[str, str] = {}
    for entry in _entries(document, "inputs"):
        name, datatype, shape = (_field(entry, *tensor_field) for tensor_field in _TENSOR)
        if name in inputs:
            raise _wrong("an input comes twice", "each once", repr(name))
        where = f"input '{name}'"
        tensor_parameters = _parameters(entry, where)
        size = tensor_parameters.get("binary_data_size")
        _flag(tensor_parameters, "binary_data", where)
        if size is None:
            array = array_of_numbers(name, datatype, shape, _field(entry, "data", list))
            # Python reads 1e400 as infinity.
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise _wrong(f"a number of '{name}' is too large", f"those of {datatype}", "1e309")
            inputs[name] = array
        else:
            if type(size) is not int or not 0 <= size <= len(binary):
                raise _wrong(
                    "binary_data_size is not a number of bytes of the body",
                    f"0 to {len(binary)}, which are left",
                    size,
                )
            if entry.get("data") is not None:
                raise InvalidArgumentError(
                    "there are both 'data' and binary_data_size",
                    where=where,
                    fix="Send its elements once",
                )
            inputs[name] = array_of_bytes(name, datatype, shape, binary[:size])
            binary = binary[size:]
        datatypes[name] = datatype
    if len(binary):
        raise _wrong("there are bytes that belong to no input", "none", len(binary))
    wanted = _entries(document, "outputs") if "outputs" in document else []
    names = tuple(_field(entry, "name", str) for entry in wanted)
    parameters = _parameters(document, "the request")
    return InferenceRequest(
        inputs,
        datatypes,
        names,
        frozenset(n for n, e in zip(names, wanted, strict=True) if _asks_binary(e, n)),
        _flag(parameters, "binary_data_output", "the request"),
        _field(document, "id", str) if "id" in document else "",
        parameters,
    )


def check_output(name: str, parameters: Mapping[str, Parameter]) -> None:
    """Check that an output is wanted in a way that there is.

    Raises
    ------
    UnimplementedError
        If it is to be labels, or to lie in shared memory, as Triton can do.
    """
    for word in ("classification", "shared_memory_region"):
        if parameters.get(word):
            raise UnimplementedError(
                f"the parameter {word} is Triton's alone",
                where=f"output '{name}'",
                fix="Ask for the output without it",
            )


def version_error(version: str) -> UnimplementedError:
    """The error for a request that names a model's version, where there are none."""
    return UnimplementedError(
        "models have no versions",
        where="request",
        expected="none",
        actual=repr(version),
        fix="Leave the version out",
    )


def write_answer(
    request: InferenceRequest,
    outputs: Mapping[str, Array],
    data_types: Mapping[str, DataType],
    model_name: str,
    model_version: str = "",
) -> tuple[bytes, int | None]:
    """Write an answer's body.

    Parameters
    ----------
    data_types : mapping of str to DataType
        Types of the outputs.

    Returns
    -------
    bytes
    int or None
        Value for the header `HEADER`; None if all is JSON.

    Raises
    ------
    InvalidArgumentError
        If JSON cannot express an output's elements.
    """
    entries: list[dict[str, object]] = []
    tail: list[bytes] = []
    for name, array in outputs.items():
        datatype = datatype_of(data_types[name])
        entry: dict[str, object] = {"name": name, "datatype": datatype, "shape": [*array.shape]}
        if request.all_binary or name in request.binary_outputs or datatype == "BF16":
            tail.append(bytes_of(array))
            entry["parameters"] = {"binary_data_size": len(tail[-1])}
        else:
            entry["data"] = numbers_of(name, array)
        entries.append(entry)
    document: dict[str, object] = {"model_name": model_name}
    if model_version:
        document["model_version"] = model_version
    if request.id:
        document["id"] = request.id
    head = json.dumps(document | {"outputs": entries}, separators=(",", ":")).encode()
    return (b"".join([head, *tail]), len(head)) if tail else (head, None)


_TENSOR = (("name", str), ("datatype", str), ("shape", list))


def _entries(document: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    """A list of objects in a document."""  # Any: JSON
    entries: Sequence[Mapping[str, Any]] = _field(document, key, list)
    if not all(isinstance(entry, Mapping) for entry in entries):
        raise _wrong(f"an entry of '{key}' is not an object", "objects", entries)
    return entries


def _field(document: Mapping[str, Any], key: str, kind: type) -> Any:  # Any: JSON
    """Return the value of a key."""
    value = document.get(key)
    if not isinstance(value, kind):
        expected = "a string" if kind is str else "a list"
        actual = "nothing" if key not in document else type(value).__name__
        raise _wrong(f"'{key}' is missing or of another kind", expected, actual)
    return value


def _parameters(document: Mapping[str, Any], where: str) -> Mapping[str, Any]:  # Any: JSON
    """Parameters of a request or tensor."""
    parameters = document.get("parameters", {})
    if isinstance(parameters, Mapping) and all(
        isinstance(value, (str, bool, int, float)) for value in parameters.values()
    ):
        return parameters
    raise _wrong(
        f"the parameters of {where} have the wrong type",
        "an object of strings, numbers and booleans",
        parameters,
    )


def _asks_binary(entry: Mapping[str, Any], name: str) -> bool:  # Any: JSON
    """Return whether an output is asked for as bytes."""
    where = f"output '{name}'"
    parameters = _parameters(entry, where)
    check_output(name, parameters)
    return _flag(parameters, "binary_data", where)


def _flag(parameters: Mapping[str, Any], key: str, where: str) -> bool:  # Any: JSON
    """A parameter that is true or false, which it is if it is not there."""
    flag = parameters.get(key, False)
    if isinstance(flag, bool):
        return flag
    raise _wrong(f"the parameter {key} of {where} is not a boolean", "true or false", repr(flag))


def _no_constant(text: str) -> float:
    """Refuse values that Python reads but JSON does not allow."""
    raise ValueError(f"{text} is not a number of JSON")


def _wrong(failed: str, expected: str, actual: object) -> InvalidArgumentError:
    """The error for a request that is not as the protocol says."""
    text = str(actual)
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    return InvalidArgumentError(
        failed,
        where="request",
        expected=expected,
        actual=shown,
        fix="Send it as the Open Inference Protocol says",
    )
