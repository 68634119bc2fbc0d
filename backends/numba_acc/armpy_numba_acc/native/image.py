"""Puts linked code into memory where it can be run: Linux on x86-64 and Arm, Windows on x86-64.

Notes
-----
What links code is in `armpy_numba_acc.native.elf`: prepared models start without it.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
from bisect import bisect_right
from collections.abc import Mapping
from typing import NamedTuple

from armpy_numba_acc.machine.code_memory import (
    CodeMemory,
    CodeMemoryError,
    MissingAddressError,
    library_address,
)

JUMP = struct.Struct("<8sQ")
"""To a function of the C library: instructions, and the function's address."""

_JUMPS = {
    "x86_64": b"\xff\x25\x02\x00\x00\x00\x0f\x0b",  # jmp [rip + 2]; ud2
    "aarch64": b"\x50\x00\x00\x58\x00\x02\x1f\xd6",  # ldr x16, . + 8; br x16
}
"""A jump to the address that follows, by processor."""

_OWN = {
    ("linux", "x86_64"): "x86_64",
    ("linux", "aarch64"): "aarch64",
    ("win32", "AMD64"): "x86_64-windows",
}
"""What `Image.architecture` is for code of a system and its name of a processor."""


class UnsupportedError(Exception):
    """Code is damaged, or of a kind that only LLVM can load."""


class MissingFunctionError(UnsupportedError):
    """Code calls a function that no loader finds."""


class Image(NamedTuple):
    """Code of several objects, linked: it runs wherever it is put at the beginning of a page."""

    code: bytes  # zeros where the jumps are
    functions: Mapping[str, int]  # offset of each object's function, by name
    # Offset of the jump to each function of the C library, by the function's name.
    jumps: Mapping[str, int]
    # Of the processor, and of the system whose calling convention the code has: Linux's has none,
    # Windows' is ``-windows``. An object file does not say it.
    architecture: str

    @property
    def processor(self) -> str:
        """Name of the processor alone."""
        return self.architecture.partition("-")[0]


class LoadedImage:
    """Code in memory where it can be run, which is unmapped with the last reference to it.

    Whatever has an address of it refers to it as well: programs, their instances, which functions
    handed out refer to, and workers. So no thread is inside when it goes.

    Attributes
    ----------
    addresses : dict of str to int
        Address of each function.
    """

    __slots__ = ("_memory", "addresses")

    def __init__(self, memory: CodeMemory, addresses: dict[str, int]) -> None:
        self._memory = memory
        self.addresses = addresses

    def keep(self) -> None:
        """Let the code stay until the process ends, whoever has its addresses."""
        # Not in a module's list: an interpreter that ends empties it while threads may still run.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._memory))


def own_architecture() -> str:
    """The architecture of this process, as `Image` has it; empty for others and other systems."""
    is_known = sys.maxsize > 1 << 32 and sys.byteorder == "little"
    return _OWN.get((sys.platform, platform.machine()), "") if is_known else ""


def architecture_of_triple(processor: str, triple: str) -> str:
    """What `Image.architecture` is for objects of a processor that a triple was named for."""
    return f"{processor}-windows" if "-windows" in triple else processor


def can_load() -> bool:
    """Return whether this process can run code that is loaded here."""
    return bool(own_architecture())


def load_image(image: Image) -> LoadedImage:
    """Put linked code into memory where it can be run, and no longer be written.

    Raises
    ------
    UnsupportedError
        If it is for another processor, or memory cannot be made executable.
    MissingFunctionError
        If it calls what the process does not have.
    """
    if image.architecture != own_architecture():
        here = own_architecture() or "another system"
        raise UnsupportedError(f"it is code for {image.architecture}, and this is {here}")
    # What comes from a file is checked before anything of it is written or run.
    size = len(image.code)
    inside = range(size - JUMP.size + 1)
    if not all(place in inside for place in image.jumps.values()):
        raise UnsupportedError("a jump lies outside of the code")
    if not all(0 <= place < size for place in image.functions.values()):
        raise UnsupportedError("a function lies outside of the code")
    try:
        addresses = {name: library_address(name) for name in image.jumps}
        memory = CodeMemory(size)
        with memory.writable() as code:
            code[:] = image.code
            for name, place in image.jumps.items():
                JUMP.pack_into(code, place, _JUMPS[image.processor], addresses[name])
        memory.make_executable()
    except MissingAddressError as error:
        raise MissingFunctionError(str(error)) from error
    except CodeMemoryError as error:
        raise UnsupportedError(str(error)) from error
    start = memory.start
    # Not imported here: few trace, and each start from a compiled model would pay for it.
    if (trace := sys.modules.get("armpy.core.system_trace")) is not None:
        trace.name_code(_named(image, start))
    return LoadedImage(memory, {name: start + at for name, at in image.functions.items()})


def _named(image: Image, start: int) -> list[tuple[str, int, int]]:
    """Name, address and bytes of each function, up to the next one or the first jump."""
    code_ends = min(image.jumps.values(), default=len(image.code))
    ends = sorted({*image.functions.values(), code_ends, len(image.code)})
    return [
        (name, start + place, ends[bisect_right(ends, place)] - place)
        for name, place in image.functions.items()
    ]
