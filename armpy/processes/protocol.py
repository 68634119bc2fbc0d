"""What the application and a worker say to each other.

Notes
-----
Requests are frames on a Unix stream socket, each answered before the next. The application's are
pickles, as the worker trusts it; a worker's answers are JSON, as the application does not trust the
worker.
"""

from __future__ import annotations

import json
import os
import pickle
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import armpy.errors
from armpy.errors import ArmpyError, BackendError

OUT_OF_MEMORY = "MemoryError"
"""In the place of an error's class: the worker has no memory left."""

MAX_ANSWER_BYTES = 1 << 20
"""Longest answer that is read from a worker."""
_LENGTH = struct.Struct("<I")
_MAX_DESCRIPTORS = 2
_CUT = 2000
_FIELDS = ("failed", "where", "expected", "actual", "fix")


class WorkerGoneError(Exception):
    """The other side has closed the connection, or does not keep to the protocol."""


def send_request(connection: socket.socket, request: object, descriptors: Sequence[int]) -> None:
    """Send a request with descriptors, which stay the sender's."""
    payload = pickle.dumps(request, protocol=5)
    message = _LENGTH.pack(len(payload)) + payload
    sent = socket.send_fds(connection, [message], descriptors) if descriptors else 0
    connection.sendall(memoryview(message)[sent:])


def receive_request(connection: socket.socket) -> tuple[Any, list[int]]:  # Any: of any type
    """The next request with its descriptors; raises EOFError when there are no more."""
    start, descriptors, _, _ = socket.recv_fds(connection, _LENGTH.size, _MAX_DESCRIPTORS)
    if not start:
        raise EOFError
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    start += _received(connection, _LENGTH.size - len(start))
    return pickle.loads(_received(connection, *_LENGTH.unpack(start))), descriptors


def send_answer(connection: socket.socket, answer: Mapping[str, object]) -> None:
    """Send an answer."""
    payload = json.dumps(answer).encode()
    connection.sendall(_LENGTH.pack(len(payload)) + payload)


def receive_answer(connection: socket.socket) -> dict[str, Any]:  # Any: the reader checks
    """The answer to a request.

    Raises
    ------
    WorkerGoneError
        If there is none, or it is no answer.
    OSError
        If the connection fails, or its time-out passes.
    """
    try:
        (length,) = _LENGTH.unpack(_received(connection, _LENGTH.size))
        if length > MAX_ANSWER_BYTES:
            raise WorkerGoneError(f"its answer is said to have {length} bytes")
        answer = json.loads(_received(connection, length))
    except EOFError as error:
        raise WorkerGoneError("it closed the connection") from error
    except (ValueError, RecursionError) as error:
        raise WorkerGoneError(f"its answer cannot be read: {error}") from error
    if not isinstance(answer, dict):
        raise WorkerGoneError("its answer is no mapping")
    return answer


def _received(connection: socket.socket, length: int) -> bytes:
    """Exactly so many bytes."""
    pieces = bytearray()
    while len(pieces) < length:
        piece = connection.recv(min(length - len(pieces), 1 << 20))
        if not piece:
            raise EOFError
        pieces += piece
    return bytes(pieces)


def error_as_fields(error: BaseException) -> dict[str, str]:
    """An error in the form of JSON."""
    if _is_out_of_memory(error):
        return {"kind": OUT_OF_MEMORY, "failed": str(error)[:_CUT]}
    if not isinstance(error, ArmpyError):
        return {"kind": "BackendError", "failed": f"it raised {error!r}"[:_CUT]}
    kinds = [cls.__name__ for cls in type(error).__mro__ if cls.__module__ == "armpy.errors"]
    texts = {name: str(getattr(error, name, ""))[:_CUT] for name in _FIELDS}
    return {"kind": kinds[0], **texts}


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Whether the process has no memory left, rather than an execution no right to more."""
    while error is not None:
        if isinstance(error, MemoryError) and not isinstance(error, ArmpyError):
            return True
        error = error.__cause__
    return False


def error_from_fields(fields: object) -> ArmpyError:
    """The error that a worker has told; a `BackendError` if it is none that armpy knows."""
    if not isinstance(fields, Mapping):
        return BackendError("the worker's error cannot be read", actual=repr(fields)[:_CUT])
    kind = getattr(armpy.errors, str(fields.get("kind")), None)
    if not (isinstance(kind, type) and issubclass(kind, ArmpyError)):
        kind = BackendError
    failed, *others = (str(fields.get(name, ""))[:_CUT] for name in _FIELDS)
    try:
        return kind(failed, **dict(zip(_FIELDS[1:], others, strict=True)))
    except TypeError:  # its signature is another one
        return BackendError(failed)
