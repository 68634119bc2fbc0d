"""The server and model that the kit tries, over HTTP and gRPC."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy_serving.contents import Array, numbers_of
from armpy_serving.protocol import dtype_of
from armpy_serving.protocol_kit.answers import (
    BrokenRuleError,
    checked_answer,
    require,
    strict_json,
    without_nulls,
)
from armpy_serving.requests import HEADER

TIMEOUT_S = 60.0
"""Time limit of one request."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Answer over HTTP."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


JSON_HEADERS = {"Content-Type": "application/json"}

Send = Callable[[str, str, bytes | None, Mapping[str, str]], HttpAnswer]
"""Sends a request: verb, path, body and headers."""

Call = Callable[[str, Any], Any]
"""Makes a call of gRPC: its name and message; raises `CallError`."""  # Any: protobuf's


class CallError(Exception):
    """A call of gRPC that was refused."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


@dataclass(frozen=True, slots=True)
class ModelInput:
    """Input of the tried model, with an array for it."""

    name: str
    datatype: str
    array: Array

    def entry(self) -> dict[str, Any]:  # Any: JSON
        """The input in a request, without its elements."""
        return {"name": self.name, "datatype": self.datatype, "shape": [*self.array.shape]}


class TriedServer:
    """A server and one of its models.

    Parameters
    ----------
    model : str
        Name of the model.
    send : callable
        As `http_sender` makes it.
    call : callable, optional
        As `grpc_caller` makes it; without, nothing is tried over gRPC.
    """

    def __init__(self, model: str, send: Send, call: Call | None = None) -> None:
        self.model = model
        self.send = send
        self.call = call
        self.path = f"/v2/models/{quote(model, safe='')}"

    def get(self, path: str) -> HttpAnswer:
        """Get a page."""
        return self.send("GET", path, None, {})

    def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> HttpAnswer:
        """Post a body to the model's path for inferences."""
        sent = {**JSON_HEADERS, **(headers or {})}
        return self.send("POST", f"{self.path}/infer", body, sent)

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """The model's metadata over HTTP."""  # Any: JSON
        answer = self.get(self.path)
        require(answer.status == 200, f"metadata of the model: {shown(answer)}")
        return without_nulls(strict_json(answer.body))

    @cached_property
    def extensions(self) -> Sequence[str]:
        """Extensions that the server names."""
        answer = self.get("/v2")
        return strict_json(answer.body).get("extensions", []) if answer.status == 200 else []

    @cached_property
    def inputs(self) -> Sequence[ModelInput]:
        """Inputs of ones, by the model's metadata; open dimensions are 1."""
        inputs = []
        require(self.metadata.get("inputs"), "metadata of the model: no inputs")
        for entry in self.metadata["inputs"]:
            dtype = np.dtype(dtype_of(entry["datatype"]))
            shape = [max(size, 1) for size in entry["shape"]]
            ones = np.full(shape, "1" if dtype.kind == "O" else 1, dtype)
            inputs.append(ModelInput(entry["name"], entry["datatype"], ones))
        return inputs

    @cached_property
    def outputs(self) -> Mapping[str, Array]:
        """Outputs of a plain request."""
        outputs = self.answered(self.document())
        require(outputs, "a right request: no outputs in the answer")
        return outputs

    def document(self) -> dict[str, Any]:  # Any: JSON
        """A right request, with flat lists of elements."""
        return {
            "inputs": [
                tensor.entry() | {"data": numbers_of(tensor.name, tensor.array)}
                for tensor in self.inputs
            ]
        }

    def answered(self, document: object) -> Mapping[str, Array]:
        """Outputs of a request that has to be answered."""
        answer = self.post(json.dumps(document).encode())
        require(answer.status == 200, f"a right request: {shown(answer)}")
        length = answer.headers.get(HEADER.lower())
        return checked_answer(answer.body, length, allows_null=True)


def shown(answer: HttpAnswer) -> str:
    """An answer for people."""
    return f"{answer.status} {answer.body[:160].decode(errors='replace')}"


def http_sender(url: str) -> Send:
    """Return what sends requests to a server.

    Raises
    ------
    InvalidArgumentError
        If it is no URL of HTTP.
    """
    parts = urlsplit(url if "//" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidArgumentError(
            "not the URL of a server", expected="http://HOST:PORT", actual=repr(url)
        )
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection

    def send(verb: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> HttpAnswer:
        connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
        try:
            connection.request(verb, parts.path.rstrip("/") + path, body, dict(headers))
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return HttpAnswer(answer.status, names, answer.read())
        except (OSError, HTTPException) as error:
            raise BrokenRuleError(f"no answer: {type(error).__name__}: {error}") from error
        finally:
            connection.close()

    return send
