"""Protocol between the application and a worker.

Notes
-----
Requests are frames on a stream socket, each answered before the next. The application's are
pickles, as the worker trusts it; a worker's answers are JSON, as the application does not trust the
worker.
"""

from __future__ import annotations

import json
import pickle
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import armpy.errors
from armpy.core.dataclass import dataclass
from armpy.core.processes.attachments import (
    Attachments,
    receive_beside,
    received,
    send_beside,
    written_for,
)
from armpy.core.processes.fitness import UnfitError, hold_standard_streams, why_unfit
from armpy.errors import ArmpyError, BackendError

UNFIT = "UnfitError"
"""Word in the place of an error's class: the worker cannot serve any more."""

MAX_ANSWER_BYTES = 1 << 20
"""Longest answer that is read from a worker."""
_LENGTH = struct.Struct("<I")
_CUT = 2000
_SHOWN = 200
_FIELDS = ("failed", "where", "expected", "actual", "fix")


class WorkerGoneError(Exception):
    """The other side has closed the connection, or does not keep to the protocol."""


def send_request(
    connection: socket.socket,
    request: object,
    attached: Sequence[int | socket.socket],  # descriptors of files, and sockets
    process: subprocess.Popen[bytes],  # that gets it
) -> None:
    """Send a request with files and sockets, which stay the sender's."""
    payload = pickle.dumps((request, written_for(process, attached)), protocol=5)
    message = _LENGTH.pack(len(payload)) + payload
    # Descriptors go with the first bytes; the rest may follow in pieces.
    sent = send_beside(connection, message, attached)
    connection.sendall(memoryview(message)[sent:])


@dataclass(frozen=True, slots=True)
class WorkerRequest:
    """A question of the application's."""

    content: Any  # Any: of any type
    attachments: Attachments
    are_whole: bool
    """Whether all attachments that were sent are here: a process that can have no more descriptors
    gets fewer.
    """


def receive_request(connection: socket.socket) -> WorkerRequest:
    """The next request with its attachments; raises EOFError when there are no more."""
    start, descriptors = receive_beside(connection, _LENGTH.size)
    if not start:
        raise EOFError
    start += _received(connection, _LENGTH.size - len(start))
    content, written = pickle.loads(_received(connection, *_LENGTH.unpack(start)))
    # Before they get numbers on Windows, where nothing can map the file with the number 0.
    hold_standard_streams()
    attachments = received(written, descriptors)
    count = len(attachments.files) + len(attachments.sockets)
    return WorkerRequest(content, attachments, are_whole=count == len(written))


def send_answer(connection: socket.socket, answer: Mapping[str, object]) -> None:
    """Send an answer."""
    payload = json.dumps(answer).encode()
    connection.sendall(_LENGTH.pack(len(payload)) + payload)


def receive_answer(
    connection: socket.socket, timeout_s: float
) -> dict[str, Any]:  # Any: the reader checks
    """The answer to a request.

    Parameters
    ----------
    timeout_s : float
        Time limit for the whole answer, however many pieces it comes in.

    Raises
    ------
    WorkerGoneError
        If it is missing or invalid.
    OSError
        If the connection fails, or the time-out passes.
    """
    end_s = time.monotonic() + timeout_s
    try:
        (length,) = _LENGTH.unpack(_received(connection, _LENGTH.size, end_s))
        if length > MAX_ANSWER_BYTES:
            raise WorkerGoneError(f"its answer is said to have {length} bytes")
        answer = json.loads(_received(connection, length, end_s))
    except EOFError as error:
        raise WorkerGoneError("it closed the connection") from error
    except (ValueError, RecursionError) as error:
        raise WorkerGoneError(f"its answer cannot be read: {error}") from error
    if not isinstance(answer, dict):
        raise WorkerGoneError("its answer is not a mapping")
    return answer


def _received(connection: socket.socket, length: int, end_s: float | None = None) -> bytes:
    """Exactly so many bytes; raises TimeoutError at a time by `time.monotonic`."""
    pieces = bytearray()
    while len(pieces) < length:
        if end_s is not None:
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            connection.settimeout(left_s)
        piece = connection.recv(min(length - len(pieces), 1 << 20))
        if not piece:
            raise EOFError
        pieces += piece
    return bytes(pieces)


def error_as_fields(error: BaseException) -> dict[str, str]:
    """An error in the form of JSON, in the worker in which it was raised."""
    if reason := why_unfit(error):
        return {"kind": UNFIT, "failed": reason}
    if not isinstance(error, ArmpyError):
        return {"kind": BackendError.__name__, "failed": f"it raised {_text(error, repr)}"[:_CUT]}
    kinds = [cls.__name__ for cls in type(error).__mro__ if cls.__module__ == "armpy.errors"]
    texts = {name: _text(getattr(error, name, "")) for name in _FIELDS}
    if getattr(error, "argument", None) is not None:
        texts["where"] = _text(error.location())
    texts["failed"] = texts["failed"] or f"it raised {type(error).__name__}"
    return {"kind": kinds[0], **texts}


def _text(value: object, make: Callable[[object], str] = str) -> str:
    try:
        return make(value)[:_CUT]
    except Exception:  # noqa: BLE001 - a backend's own __str__ or __repr__
        return f"one of {type(value).__name__}"


def shortened(fields: Mapping[str, str], length: int) -> dict[str, str]:
    """Fields of an error with texts of so many characters at most."""
    return {name: text[:length] for name, text in fields.items()}


def error_from_fields(fields: object) -> ArmpyError:
    """Rebuild the error of a worker; a `BackendError` if its class is not one of armpy's.

    Raises
    ------
    UnfitError
        If it says that it cannot serve any more.
    WorkerGoneError
        If these are not the fields of an error: each one is a text, and one says what failed.
    """
    known = ("kind", *_FIELDS)
    if not isinstance(fields, Mapping) or not fields.keys() <= set(known):
        raise _unreadable(fields)
    texts = [fields.get(name, "") for name in known]
    if not all(isinstance(text, str) for text in texts):
        raise _unreadable(fields)
    name, failed, where, expected, actual, fix = map(printable, texts)
    if not name or not failed.strip():
        raise _unreadable(fields)
    if name == UNFIT:
        raise UnfitError(failed)
    kind = getattr(armpy.errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, ArmpyError)):
        kind = BackendError
    try:
        return kind(failed, where=where, expected=expected, actual=actual, fix=fix)
    except TypeError:  # its signature is another one
        return BackendError(failed)


def _unreadable(fields: object) -> WorkerGoneError:
    return WorkerGoneError(f"its error cannot be read: {printable(repr(fields))[:_SHOWN]}")


def printable(text: str) -> str:
    """A text of a worker's as it can be printed: it may have halves of characters in it."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text[:_CUT])
