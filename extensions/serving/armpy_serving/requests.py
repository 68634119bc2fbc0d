"""Requests and answers of the Open Inference Protocol over HTTP: JSON, and bytes after it.

References
----------
Open Inference Protocol, version 2: ``inference_rest.md``; Triton's extension
``binary_tensor_data``: the tensors' bytes follow the JSON, in its order.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import chain
from typing import Any

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.errors import ExecutionTimeoutError, InvalidArgumentError, UnimplementedError
from armpy.types import DEFAULT_MEMORY_LIMIT_BYTES, DataType
from armpy_serving.contents import (
    Array,
    answer_too_large,
    array_of_bytes,
    array_of_numbers,
    bytes_of,
    json_parts,
)
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
    received_s: float = field(default_factory=time.monotonic)  # when its deadline began to count

    @property
    def deadline_s(self) -> float | None:
        """Return the time left until its deadline; None if it has none.

        The parameter ``timeout`` is in microseconds, as Triton has it, from `received_s` on.
        """
        timeout = self.parameters.get("timeout", 0)
        if type(timeout) is int and 0 <= timeout < 2**63:
            left_s = self.received_s + timeout / 1e6 - time.monotonic()
            return max(left_s, 0.0) if timeout else None
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
    received_s = time.monotonic()
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
    return request_of(document, whole[length:], received_s)


def request_of(
    document: object, binary: memoryview = _NOTHING, received_s: float | None = None
) -> InferenceRequest:
    """The request that a JSON document is, with the bytes that follow it; see `read_request`."""
    if not isinstance(document, Mapping):
        raise _wrong(
            "the body is not an object", "an object with 'inputs'", type(document).__name__
        )
    document = _stated(document)
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
            if "data" in entry:
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
    all_binary = _flag(parameters, "binary_data_output", "the request")
    binary_names = [
        n for n, e in zip(names, wanted, strict=True) if _asks_binary(e, n, default=all_binary)
    ]
    return InferenceRequest(
        inputs,
        datatypes,
        names,
        frozenset(binary_names),
        all_binary and not names,
        _field(document, "id", str) if "id" in document else "",
        parameters,
        time.monotonic() if received_s is None else received_s,
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
    limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES,
) -> tuple[bytes, int | None]:
    """Write an answer's body.

    Parameters
    ----------
    data_types : mapping of str to DataType
        Types of the outputs.
    limit_bytes : int
        Most that the body may take.

    Returns
    -------
    bytes
    int or None
        Value for the header `HEADER`; None if all is JSON.

    Raises
    ------
    InvalidArgumentError
        If JSON cannot express an output's elements.
    MemoryQuotaError
        If the body is larger than the limit.
    ExecutionTimeoutError
        If the request's deadline passes before all is written.
    """
    document = {"model_name": model_name, "model_version": model_version, "id": request.id}
    head = json.dumps({key: text for key, text in document.items() if text}, separators=_PLAIN)
    body = _Body(request, limit_bytes)
    body.add(f'{head[:-1]},"outputs":['.encode())
    tail: list[bytes] = []
    for number, (name, array) in enumerate(outputs.items()):
        datatype = datatype_of(data_types[name])
        entry: dict[str, object] = {"name": name, "datatype": datatype, "shape": [*array.shape]}
        if request.all_binary or name in request.binary_outputs or datatype == "BF16":
            tail.append(bytes_of(array, limit_bytes, sum(map(len, tail))))
            entry["parameters"] = {"binary_data_size": len(tail[-1])}
            parts: Iterable[str] = ()
        else:
            parts = chain([',"data":['], json_parts(name, array), ["]"])
        begin = "," if number else ""
        body.add(f"{begin}{json.dumps(entry, separators=_PLAIN)[:-1]}".encode())
        for part in chain(parts, ["}"]):
            body.add(part.encode())
    body.add(b"]}")
    length = body.size_bytes
    for raw in tail:
        body.add(raw)
    return body.content(), length if tail else None


_PLAIN = (",", ":")
"""Separators of JSON without white space."""


class _Body:
    """An answer's body, written in parts up to a limit and until the request's deadline."""

    def __init__(self, request: InferenceRequest, limit_bytes: int) -> None:
        self._request, self._limit_bytes = request, limit_bytes
        self._buffer = io.BytesIO()

    @property
    def size_bytes(self) -> int:
        return self._buffer.tell()

    def add(self, part: bytes) -> None:
        """Write a part; errors as of `write_answer`."""
        if self._request.deadline_s == 0:
            raise ExecutionTimeoutError("the answer was not written at its deadline")
        if self.size_bytes + len(part) > self._limit_bytes:
            raise answer_too_large(self._limit_bytes)
        self._buffer.write(part)

    def content(self) -> bytes:
        """All of it, without a copy."""
        return self._buffer.getvalue()


_TENSOR = (("name", str), ("datatype", str), ("shape", list))


def _entries(document: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    """A list of objects in a document."""  # Any: JSON
    entries = _field(document, key, list)
    if not all(isinstance(entry, Mapping) for entry in entries):
        raise _wrong(f"an entry of '{key}' is not an object", "objects", entries)
    return [*map(_stated, entries)]


def _stated(document: Mapping[str, Any]) -> Mapping[str, Any]:  # Any: JSON
    """An object without its null fields, which many clients write for those left out."""
    return {key: value for key, value in document.items() if value is not None}


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
    if isinstance(parameters, Mapping):
        parameters = _stated(parameters)
        if all(isinstance(value, (str, bool, int, float)) for value in parameters.values()):
            return parameters
    raise _wrong(
        f"the parameters of {where} have the wrong type",
        "an object of strings, numbers and booleans",
        parameters,
    )


def _asks_binary(entry: Mapping[str, Any], name: str, *, default: bool) -> bool:  # Any: JSON
    """Return whether an output is asked for as bytes."""
    where = f"output '{name}'"
    parameters = _parameters(entry, where)
    check_output(name, parameters)
    return _flag(parameters, "binary_data", where, default=default)


def _flag(
    parameters: Mapping[str, Any], key: str, where: str, *, default: bool = False
) -> bool:  # Any: JSON
    """A parameter that is true or false."""
    flag = parameters.get(key, default)
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
