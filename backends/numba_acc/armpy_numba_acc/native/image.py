# SPDX-License-Identifier: Apache-2.0
"""Puts linked code into memory where it can be run, on Linux, x86-64 and 64-bit Arm.

Notes
-----
What links code is in `armpy_numba_acc.native.elf`: prepared models start without it.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

JUMP = struct.Struct("<8sQ")
"""To a function of the C library: instructions, and the function's address."""

_JUMPS = {
    "x86_64": b"\xff\x25\x02\x00\x00\x00\x0f\x0b",  # jmp [rip + 2]; ud2
    "aarch64": b"\x50\x00\x00\x58\x00\x02\x1f\xd6",  # ldr x16, . + 8; br x16
}
"""A jump to the address that follows."""


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
    architecture: str


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

    def __init__(self, memory: mmap.mmap, addresses: dict[str, int]) -> None:
        self._memory = memory
        self.addresses = addresses

    def keep(self) -> None:
        """Let the code stay until the process ends, whoever has its addresses."""
        # Not in a module's list: an interpreter that ends empties it while threads may still run.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._memory))


def own_architecture() -> str:
    """The architecture of this process on Linux; empty for others and other systems."""
    is_known = sys.platform == "linux" and sys.maxsize > 1 << 32 and sys.byteorder == "little"
    machine = platform.machine()
    return machine if is_known and machine in _JUMPS else ""


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
        raise UnsupportedError(f"it is code for {image.architecture} on Linux")
    # What comes from a file is checked before anything of it is written or run.
    size = len(image.code)
    inside = range(size - JUMP.size + 1)
    if not all(place in inside for place in image.jumps.values()):
        raise UnsupportedError("a jump lies outside of the code")
    if not all(0 <= place < size for place in image.functions.values()):
        raise UnsupportedError("a function lies outside of the code")
    addresses = {name: library_address(name) for name in image.jumps}
    # Written first and made executable then: memory that is both is refused by some systems.
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[:] = image.code
    for name, place in image.jumps.items():
        JUMP.pack_into(memory, place, _JUMPS[image.architecture], addresses[name])
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    _make_executable(start, size)
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


@cache
def _process() -> ctypes.CDLL:
    """The functions that the process has: each such object is a class of its own, slowly made."""
    return ctypes.CDLL(None, use_errno=True)


_COMPILERS_LIBRARY = "libgcc_s.so.1"
"""Has what compilers call for what a processor lacks, such as conversions of float16."""


def library_address(name: str) -> int:
    """Address of a function that the process or the compiler's library has."""
    for library in (None, _COMPILERS_LIBRARY):
        try:
            functions = _process() if library is None else ctypes.CDLL(library)
            return ctypes.cast(getattr(functions, name), ctypes.c_void_p).value or 0
        except (OSError, AttributeError):
            continue
    raise MissingFunctionError(
        f"it calls '{name}', which neither the process nor {_COMPILERS_LIBRARY} has"
    )


def _make_executable(start: int, size: int) -> None:
    """Let memory be run, and no longer be written."""
    # Ahead of the change of rights, after which nothing is written any more.
    if (flush := _flush_instructions()) is not None:
        flush(start, start + size)
    protect = _process().mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protect(start, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise UnsupportedError(f"memory cannot be made executable: error {ctypes.get_errno()}")


@cache
def _flush_instructions() -> Callable[[int, int], object] | None:
    """Return a function that clears Arm's instruction cache; None where that is not needed.

    x86-64 has no need of it. On Arm, Linux does it itself for pages that become executable
    (``__sync_icache_dcache`` in ``arch/arm64/mm/flush.c``), on which the loader of shared
    libraries relies; the compiler's library follows the architecture manual.
    """
    if own_architecture() != "aarch64":
        return None
    for library in (None, _COMPILERS_LIBRARY):
        try:
            function = ctypes.CDLL(library).__clear_cache
        except (OSError, AttributeError):
            continue
        function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_void_p), None
        flush: Callable[[int, int], object] = function
        return flush
    return None
