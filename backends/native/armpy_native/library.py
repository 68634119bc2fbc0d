"""Shared libraries with the interface of ``armpy_backend.h``, as ctypes sees them."""

from __future__ import annotations

import ctypes
import hashlib
import json
import logging
import os
import threading
from collections.abc import Callable
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    byref,
    c_char,
    c_char_p,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from functools import cache

import numpy as np

from armpy.backend import Support
from armpy.errors import (
    ArmpyError,
    BackendError,
    BackendUnavailableError,
    DeadObjectError,
    DeviceNotFoundError,
    ExecutionCancelledError,
    ExecutionTimeoutError,
    MemoryLimitError,
    UnimplementedError,
)
from armpy.ops.operation import Array
from armpy.types import DeviceType

SYMBOL = "armpy_backend_v1"
VERSION = (1, 2)
ALIGNMENT_BYTES = 64
MOST_TEXT_BYTES = 1 << 20
"""Most bytes of a description or of reasons; a library that asks for more is refused."""
MOST_SAVED_BYTES = 1 << 32
MOST_NAME_BYTES = 256
"""Most bytes of an id, a version, or a vendor."""

_log = logging.getLogger("armpy.native")

_ERRORS: dict[int, type[ArmpyError]] = {
    1: UnimplementedError,
    2: BackendError,
    3: MemoryLimitError,
    4: DeadObjectError,
    5: ExecutionTimeoutError,
    6: ExecutionCancelledError,
    7: DeviceNotFoundError,
    99: BackendError,
}
"""Kinds of errors, by ``ap_status``."""

DTYPES = {
    np.dtype(name): number
    for name, number in {
        "float32": 0,
        "float16": 1,
        "int32": 2,
        "uint8": 3,
        "int64": 4,
        "bool": 6,
        "int16": 7,
        "int8": 9,
        "float64": 10,
        "uint32": 15,
        "uint16": 16,
    }.items()
}
"""Numbers of ``ap_dtype``, by NumPy's types."""

DEVICE_TYPES = {
    "accelerator": DeviceType.ACCELERATOR,
    "gpu": DeviceType.GPU,
    "cpu": DeviceType.OTHER,  # after compiled code of armpy's own
}
"""Types of devices, by the ``type`` that a library describes."""


class Header(Structure):
    """``ap_header``."""

    _fields_ = (("struct_size", c_uint32), ("major", c_uint16), ("minor", c_uint16))


class Error(Structure):
    """``ap_error``."""

    _fields_ = (("code", c_int32), ("used", c_uint32), ("text", c_char * 1008))


class Span(Structure):
    """``ap_span``."""

    _fields_ = (("data", c_void_p), ("bytes", c_uint64))


class Tensor(Structure):
    """``ap_tensor``."""

    _fields_ = (
        ("data", c_void_p),
        ("bytes", c_uint64),
        ("dims", POINTER(c_int64)),
        ("rank", c_uint32),
        ("dtype", c_uint32),
        ("reserved", c_uint64),
    )


_LogFunction = CFUNCTYPE(None, c_void_p, c_int32, c_char_p)


class Host(Structure):
    """``ap_host``."""

    _fields_ = (("header", Header), ("log", _LogFunction), ("user", c_void_p))


_Error = POINTER(Error)
_Size = POINTER(c_uint64)
_Handle = POINTER(c_void_p)


class Backend(Structure):
    """``ap_backend``."""

    _fields_ = (
        ("header", Header),
        ("id", c_char_p),
        ("version", c_char_p),
        ("vendor", c_char_p),
        ("open", CFUNCTYPE(c_int32, POINTER(Host), Span, _Handle, _Error)),
        ("close", CFUNCTYPE(None, c_void_p)),
        ("describe", CFUNCTYPE(c_int32, c_void_p, c_void_p, c_uint64, _Size, _Error)),
        (
            "supported",
            CFUNCTYPE(
                c_int32,
                c_void_p,
                Span,
                POINTER(c_uint8),
                c_uint64,
                c_void_p,
                c_uint64,
                _Size,
                _Error,
            ),
        ),
        ("compile", CFUNCTYPE(c_int32, c_void_p, Span, _Handle, _Error)),
        ("save", CFUNCTYPE(c_int32, c_void_p, c_void_p, c_uint64, _Size, _Error)),
        ("load", CFUNCTYPE(c_int32, c_void_p, Span, _Handle, _Error)),
        (
            "execute",
            # Addresses instead of pointers, which ctypes checks at every call.
            CFUNCTYPE(
                c_int32, c_void_p, c_void_p, c_uint32, c_void_p, c_uint32, c_void_p, c_void_p
            ),
        ),
        ("release", CFUNCTYPE(None, c_void_p)),
        (
            "compile_shared",
            CFUNCTYPE(c_int32, c_void_p, Span, POINTER(Span), c_uint64, _Handle, _Error),
        ),
        (
            "start",
            CFUNCTYPE(
                c_int32,
                c_void_p,
                c_void_p,
                c_uint32,
                c_void_p,
                c_uint32,
                c_void_p,
                c_void_p,
                c_void_p,
            ),
        ),
        ("wait", CFUNCTYPE(c_int32, c_void_p, c_int64, c_void_p)),
    )


_REQUIRED = ("open", "close", "supported", "compile", "execute", "release")


def _write_log(_user: int | None, level: int, text: bytes | None) -> None:
    """Write a line of a library to armpy's log."""
    _log.log(level, "%s", (text or b"").decode("utf-8", "replace"))


_HOST = Host(Header(ctypes.sizeof(Host), *VERSION), _LogFunction(_write_log), None)
"""Never freed, as threads of a library may use it after their device is closed."""


class Library:
    """A shared library with the function ``armpy_backend_v1``.

    Parameters
    ----------
    path : str
        Path of the library, or its name for the system's loader.

    Attributes
    ----------
    id, version, vendor : str
    digest : str
        SHA-256 of the file, which distinguishes builds of one version; empty if the system's
        loader finds the library by its name.

    Raises
    ------
    BackendUnavailableError
        If it cannot be loaded, lacks the function, or its table is not one of version 1, or of a
        later minor version.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            function = getattr(ctypes.CDLL(path), SYMBOL)
        except (OSError, AttributeError) as error:
            is_loaded = isinstance(error, AttributeError)
            raise BackendUnavailableError(
                f"the library {'lacks a function' if is_loaded else 'cannot be loaded'} ({error})",
                where=path,
                expected=f"a shared library that exports {SYMBOL}()",
                fix="Build it with armpy_backend.h, for this machine",
            ) from error
        self.digest = ""
        if os.path.isfile(path):
            with open(path, "rb") as file:
                self.digest = hashlib.file_digest(file, "sha256").hexdigest()
        function.restype = c_void_p
        function.argtypes = ()
        address = function()
        if not address:
            raise self._wrong("the table", "a table of functions", "NULL")
        header = Header.from_address(address)
        if header.major != VERSION[0] or header.minor > VERSION[1]:
            text = f"{header.major}.{header.minor}"
            known = f"{VERSION[0]}.0 to {VERSION[0]}.{VERSION[1]}"
            fix = "Install a newer armpy-native, or an older version of the library"
            if header.major < VERSION[0]:
                fix = f"Build it with armpy_backend.h of version {known}"
            raise self._wrong("the version of the table", known, text, fix)
        least = Backend.release.offset + Backend.release.size
        if header.struct_size < least:
            raise self._wrong("struct_size", f"at least {least}", str(header.struct_size))
        # A copy, which the library cannot change after it has been checked. The members that an
        # older library lacks are NULL.
        size_bytes = ctypes.sizeof(Backend)
        table = ctypes.string_at(address, min(header.struct_size, size_bytes))
        self.table = Backend.from_buffer_copy(table.ljust(size_bytes, b"\0"))
        for name in _REQUIRED:
            if not getattr(self.table, name):
                raise self._wrong(f"the function {name}", "a function", "NULL")
        for first, second in (("save", "load"), ("start", "wait")):
            if bool(getattr(self.table, first)) != bool(getattr(self.table, second)):
                raise self._wrong(f"{first} and {second}", "both or neither", "one of them")
        self.id = self._text("id")
        self.version = self._text("version")
        self.vendor = self._text("vendor")
        if not (self.id.isascii() and self.id.isalnum()):
            raise self._wrong("id", "letters and digits of ASCII", repr(self.id))

    def _text(self, name: str) -> str:
        address = c_void_p.from_buffer(self.table, getattr(Backend, name).offset).value
        if address is None:
            raise self._wrong(name, "a text", "NULL")
        text = b""
        # Byte by byte: what follows the zero may not be readable.
        while byte := ctypes.string_at(address + len(text), 1).rstrip(b"\0"):
            text += byte
            if len(text) > MOST_NAME_BYTES:
                raise self._wrong(name, f"at most {MOST_NAME_BYTES} bytes", repr(text[:40]))
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._wrong(name, "UTF-8", repr(text[:40])) from error

    def _wrong(
        self,
        subject: str,
        expected: str,
        actual: str,
        fix: str = f"Build it with armpy_backend.h of version {VERSION[0]}",
    ) -> BackendUnavailableError:
        return BackendUnavailableError(
            f"{subject} of the library is wrong",
            where=self.path,
            expected=expected,
            actual=actual,
            fix=fix,
        )


@cache
def load_library(path: str) -> Library:
    """Load a library, once in a process; errors as of `Library`."""
    return Library(path)


class Device:
    """An open device of a library, closed with the object, after all of its programs.

    Parameters
    ----------
    library : Library
    options : mapping of str to value
        The application's options, handed to the library as JSON.

    Raises
    ------
    ArmpyError
        If the library refuses; DeviceNotFoundError if there is no device.
    """

    def __init__(self, library: Library, options: str = "{}") -> None:
        self.library = library
        self.lock = threading.RLock()
        # About single layers, as long as the device is open.
        self.answers: dict[object, Support] = {}
        # Of executions that are under way, by their handles.
        self.events: dict[int, object] = {}
        self.lost = ""  # why, once it is
        text = options.encode()
        self._options = ctypes.create_string_buffer(text, len(text) + 1)
        span = Span(ctypes.addressof(self._options), len(text))
        self.handle = c_void_p()
        self.call("open", byref(_HOST), span, byref(self.handle))
        if not self.handle.value:
            raise self.broken("open", "returned no device")
        self.facts = self._describe()

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the table; raise the error that it reports.

        Raises
        ------
        ArmpyError
            With the library's text, by its status; BackendError for an unknown status.
        """
        self.check_is_there(name)
        error = Error()
        status = getattr(self.library.table, name)(*arguments, byref(error))
        if status:
            raise self.failure(name, status, error)

    def check_is_there(self, name: str) -> None:
        """Raise DeadObjectError if the device is lost."""
        if self.lost:
            where = f"{self.library.id} / {name}"
            raise DeadObjectError(f"the device is lost: {self.lost}", where=where)

    def failure(self, name: str, status: int, error: Error) -> ArmpyError:
        """The error of a function that did not return AP_OK."""
        text = bytes(error.text[: min(error.used, 1008)]).decode("utf-8", "replace")
        error.used = 0  # the next failure may have no text
        where = f"{self.library.id} / {name}"
        if status not in _ERRORS:
            return BackendError(
                f"the status {status} is not an ap_status ({text or 'no text'})", where=where
            )
        return _ERRORS[status](text or f"status {status}, without a text", where=where)

    def broken(self, name: str, failed: str) -> BackendError:
        """The error of a library that breaks the rules of the header."""
        return BackendError(failed, where=f"{self.library.id} / {name}")

    def _describe(self) -> dict[str, object]:
        """The device's description, with its type in any case."""
        if not self.library.table.describe:
            return {"type": "accelerator"}
        text = self.sized_text("describe", lambda *room: self.call("describe", self.handle, *room))
        try:
            facts = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.broken("describe", f"the description is not JSON ({error})") from error
        if not isinstance(facts, dict):
            raise self.broken("describe", "the description is not a JSON object")
        kind = facts.setdefault("type", "accelerator")
        if kind not in DEVICE_TYPES:
            known = ", ".join(DEVICE_TYPES)
            raise self.broken("describe", f"the type is {kind!r}. Expected one of {known}")
        return facts

    def sized_text(
        self,
        name: str,
        fill: Callable[[c_void_p, int, object], None],
        most_bytes: int = MOST_TEXT_BYTES,
        room: int = 1024,
    ) -> bytes:
        """Have a function fill memory that is as large as it asks for.

        Raises
        ------
        BackendError
            If it asks for more than is sensible, or for another size the second time.
        """
        for _ in range(2):
            # Zeros after the end are seen if it writes there.
            memory = ctypes.create_string_buffer(room + ALIGNMENT_BYTES)
            needed = c_uint64()
            fill(ctypes.cast(memory, c_void_p), room, byref(needed))
            if any(memory.raw[room:]):
                raise self.broken(name, f"it wrote more than the {room} bytes of room")
            if needed.value <= room:
                return memory.raw[: needed.value]
            if needed.value > most_bytes:
                raise self.broken(name, f"it needs {needed.value} bytes, more than {most_bytes}")
            room = needed.value
        raise self.broken(name, "it needs more room than it has said")

    def supports(self, graph: Span, num_operators: int) -> list[str]:
        """Ask about each operator of a model: the reason, empty if it is supported."""
        yes = (c_uint8 * (num_operators + ALIGNMENT_BYTES))()

        def fill(memory: c_void_p, room: int, needed: object) -> None:
            self.call("supported", self.handle, graph, yes, num_operators, memory, room, needed)

        with self.lock:
            text = self.sized_text("supported", fill)
        if any(yes[num_operators:]):
            raise self.broken("supported", f"it wrote more than {num_operators} answers")
        lines = text.rstrip(b"\0").decode("utf-8", "replace").split("\n")
        lines += [""] * (num_operators - len(lines))
        answers = yes[:num_operators]
        if wrong := set(answers) - {0, 1}:
            raise self.broken("supported", f"an answer is {min(wrong)}. Expected 0 or 1")
        return [
            "" if is_supported else line or "no reason given"
            for is_supported, line in zip(answers, lines, strict=False)
        ]

    def __del__(self) -> None:
        handle = getattr(self, "handle", None)
        if handle and not self.lost:
            # When the interpreter ends, the names of this module can be gone already.
            address, handle.value = handle.value, None
            self.library.table.close(address)


def address_of(array: Array) -> int:
    """Where the elements of an array begin."""
    address: int = array.__array_interface__["data"][0]
    return address


def aligned(data: bytes | memoryview) -> Array:
    """A copy of bytes that begins at a multiple of 64."""
    memory = np.empty(len(data) + ALIGNMENT_BYTES, np.uint8)
    first = -address_of(memory) % ALIGNMENT_BYTES
    view = memory[first : first + len(data)]
    view[:] = np.frombuffer(data, np.uint8)
    view.flags.writeable = False
    return view


def span_of(data: Array) -> Span:
    """The bytes of an array, as a C function reads them."""
    return Span(address_of(data), data.nbytes)
