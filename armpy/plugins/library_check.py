"""Checks that a shared library is a Python module or a backend in C, before its code runs."""

from __future__ import annotations

import mmap
import re
import struct
import sys

from armpy.plugins.discovery.candidate import RejectionError

C_INTERFACE = "armpy_backend_v1"
"""Function that a backend in C exports, see the package armpy-native."""

_ELF = b"\x7fELF"
_HEADER_BYTES = 20
_BITS = {1: 32, 2: 64}
_BYTE_ORDERS = {1: "<", 2: ">"}
_MACHINES = {
    3: "x86",
    8: "MIPS",
    20: "PowerPC",
    21: "PowerPC 64",
    22: "S/390",
    40: "Arm",
    62: "x86-64",
    183: "Arm 64 (AArch64)",
    243: "RISC-V",
    258: "LoongArch",
}
"""Names of the field ``e_machine``."""


def check_library(path: str, module: str) -> str:
    """Check that a library is for this machine, and return its kind.

    Returns ``PyInit_<module>`` for an extension module of the name, or `C_INTERFACE`.

    Files that are not in ELF are left to the system's loader. Names of exported functions lie in
    the file as they are.

    Raises
    ------
    RejectionError
        If it is not. The reason has the file, expected and actual values, and the fix.

    References
    ----------
    System V ABI, "ELF Header"; Python, "PyInit_modulename".
    """
    init = f"PyInit_{module}"
    if not check_machine(path):
        return init
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as contents:
        if contents.find(f"{init}\0".encode()) >= 0:
            return init
        if contents.find(f"{C_INTERFACE}\0".encode()) >= 0:
            return C_INTERFACE
        others = sorted({name.decode() for name in re.findall(rb"(?<!\w)(PyInit_\w+)\0", contents)})
    raise RejectionError(
        f"its library {path} is not the Python module {module}. Expected {init}() or "
        f"{C_INTERFACE}() of armpy-native; got {', '.join(others) or 'neither'}"
    )


def check_machine(path: str) -> str:
    """The machine that a library is for; empty if it is not in ELF.

    Raises RejectionError if it is another one than this Python's.
    """
    with open(path, "rb") as file:
        machine = _machine(file.read(_HEADER_BYTES))
    expected = _own_machine() if machine else ""
    if expected and machine != expected:
        raise RejectionError(
            f"its library {path} is compiled for another machine. Expected {expected}; got "
            f"{machine}. Compile it for this machine"
        )
    return machine


def _machine(header: bytes) -> str:
    """The machine that an ELF file is for; empty for other files."""
    bits = _BITS.get(header[4]) if len(header) == _HEADER_BYTES else None
    if not header.startswith(_ELF) or bits is None or header[5] not in _BYTE_ORDERS:
        return ""
    (number,) = struct.unpack_from(f"{_BYTE_ORDERS[header[5]]}H", header, 18)
    return f"{_MACHINES.get(number, f'machine {number}')}, {bits} bits"


def _own_machine() -> str:
    """The machine that this Python is compiled for; empty if its file cannot be read."""
    try:
        with open(sys.executable, "rb") as file:
            return _machine(file.read(_HEADER_BYTES))
    except OSError:
        return ""  # Python in another program may not know its file
