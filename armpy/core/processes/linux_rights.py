"""Rights that Linux lets a process give up: files outside of directories, the network, signals.

Notes
-----
Landlock and seccomp are called by number through the C library, as Python has no functions for
them. Both hold for all that the process does afterwards and for every process that it starts.

References
----------
Linux Documentation/userspace-api/landlock.rst and seccomp_filter.rst.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

if sys.platform != "linux":
    raise ImportError("Landlock and seccomp are Linux's")

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38
_SECCOMP_MODE_FILTER = 2

_WRITE_FILE = 1 << 1
_CHANGES = sum(1 << bit for bit in range(4, 13))  # make and remove whatever there is
_REFER, _TRUNCATE = 1 << 13, 1 << 14  # since versions 2 and 3
_TCP = 3  # bind and connect, since version 4
_SCOPES = 3  # abstract Unix sockets and signals, since version 6

_WRITABLE_DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/dri",
    "/dev/kfd",
    "/dev/accel",
)
"""Devices that computing needs, and those of the null kind."""

_ARCHITECTURES = {  # audit number, and those of socket and io_uring_setup
    "x86_64": (0xC000003E, 41, 425),
    "aarch64": (0xC00000B7, 198, 425),
}
_FIRST_X32 = 0x40000000
_LOAD, _JUMP_EQUAL, _JUMP_GREATER_OR_EQUAL, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000 | errno.EACCES
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # places in struct seccomp_data


def give_up_rights(writable: Sequence[str]) -> dict[str, str]:
    """Give up writing outside of directories, the network, and signals to others; what is gone."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return {}
    in_force = _apply_landlock(library, writable)
    if _apply_seccomp(library):
        in_force["network"] = "no sockets but Unix ones (seccomp)"
    return in_force


def _apply_landlock(library: ctypes.CDLL, writable: Sequence[str]) -> dict[str, str]:
    version = _call(library, _CREATE_RULESET, None, 0, _VERSION_FLAG)
    if version < 1:
        return {}
    files = _WRITE_FILE | _CHANGES
    files |= (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    fields = [files, _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0]
    if version < 4:
        known = 1
    elif version < 6:
        known = 2
    else:
        known = 3
    attributes = struct.pack(f"={known}Q", *fields[:known])
    ruleset = _call(library, _CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        return {}
    try:
        for path in writable:
            _allow(library, ruleset, path, files)
        for path in (*_WRITABLE_DEVICES, *map(str, Path("/dev").glob("nvidia*"))):
            _allow(library, ruleset, path, _WRITE_FILE)
        if _call(library, _RESTRICT_SELF, ruleset, 0) != 0:
            return {}
    finally:
        os.close(ruleset)
    in_force = {"files": f"writable in {', '.join(writable)} (Landlock {version})"}
    if version >= 4:
        in_force["network"] = f"no TCP (Landlock {version})"
    if version >= 6:
        in_force["signals"] = f"to its own processes only (Landlock {version})"
    return in_force


def _allow(library: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    with suppress(OSError):
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            rule = struct.pack("=Qi", rights, place)
            _call(library, _ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
        finally:
            os.close(place)


def _call(library: ctypes.CDLL, number: int, *arguments: object) -> int:
    plain = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result: int = library.syscall(ctypes.c_long(number), *plain)
    return result


def _apply_seccomp(library: ctypes.CDLL) -> bool:
    known = _ARCHITECTURES.get(platform.machine())
    if known is None or sys.maxsize < 2**32:
        return False
    architecture, socket_number, io_uring_number = known
    program = b"".join(
        struct.pack("=HBBI", code, if_true, if_false, value)
        for code, if_true, if_false, value in (
            (_LOAD, 0, 0, _ARCHITECTURE),
            (_JUMP_EQUAL, 0, 7, architecture),  # others have other numbers
            (_LOAD, 0, 0, _NUMBER),
            (_JUMP_GREATER_OR_EQUAL, 5, 0, _FIRST_X32),
            (_JUMP_EQUAL, 4, 0, io_uring_number),  # it opens sockets, too
            (_JUMP_EQUAL, 0, 2, socket_number),
            (_LOAD, 0, 0, _FIRST_ARGUMENT),
            (_JUMP_EQUAL, 0, 1, int(socket.AF_UNIX)),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _REFUSE),
        )
    )
    code = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    return bool(
        library.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.c_char_p(described), 0, 0) == 0
    )
