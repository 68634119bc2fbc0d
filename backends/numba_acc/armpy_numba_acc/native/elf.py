"""Loads object files as LLVM writes them for x86-64 Linux, without LLVM.

Notes
-----
Code and constants of all objects go into one mapping. What they refer to in each other is set
relative to where it is; calls of the C library go through jumps behind the code, because it may
be further away than a call reaches. Whatever else an object may hold is refused, and left to
LLVM: kernels refer to little.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_OFFSET = struct.Struct("<i")
_JUMP = struct.Struct("<6sQ")

_BEGINNING = b"\x7fELF\x02\x01\x01"
_RELOCATABLE, _X86_64 = 1, 62
_SYMBOLS, _RELOCATIONS = 2, 4
_BITS, _NO_BITS = 1, 8
_WRITABLE, _ALLOCATED = 1, 2
_UNDEFINED, _RESERVED = 0, 0xFF00
_PC32, _PLT32 = 2, 4
_JUMP_BYTES = 16
_JUMP_TO_WHAT_FOLLOWS = b"\xff\x25\x00\x00\x00\x00"


class UnsupportedError(Exception):
    """An object holds what only LLVM can load."""


@dataclass(frozen=True, slots=True)
class _Section:
    """A part of an object file."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int

    @property
    def is_loaded(self) -> bool:
        """Whether code needs it; tables for exceptions are of a kind of their own."""
        return bool(self.flags & _ALLOCATED) and self.kind in (_BITS, _NO_BITS) and self.size > 0


class _Object:
    """An object file.

    Parameters
    ----------
    data : bytes
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        header = _HEADER.unpack_from(data)
        if header[:3] != (data[:16], _RELOCATABLE, _X86_64) or not data.startswith(_BEGINNING):
            raise UnsupportedError("it is no object for x86-64")
        start, size, count = header[6], header[11], header[12]
        if size != _SECTION.size:
            raise UnsupportedError("its sections are of another form")
        self.sections = [
            _Section(*_SECTION.unpack_from(data, start + size * i)) for i in range(count)
        ]
        if any(section.is_loaded and section.flags & _WRITABLE for section in self.sections):
            raise UnsupportedError("it has variables")
        tables = [section for section in self.sections if section.kind == _SYMBOLS]
        if len(tables) != 1:
            raise UnsupportedError("it has no table of symbols, or several")
        self._names = self.sections[tables[0].link].offset
        self.symbols = list(self._records(_SYMBOL, tables[0]))
        self.places: dict[int, int] = {}

    def _records(self, form: struct.Struct, section: _Section) -> Iterator[tuple[int, ...]]:
        """The entries of a table."""
        end = section.offset + section.size
        return form.iter_unpack(self.data[section.offset : end])

    def name(self, symbol: tuple[int, ...]) -> str:
        """A symbol's name."""
        start = self._names + symbol[0]
        return self.data[start : self.data.index(b"\0", start)].decode()

    def place(self, start: int) -> int:
        """Say where each section will be, from some offset on; returns the end."""
        for number, section in enumerate(self.sections):
            if section.is_loaded:
                start += -start % max(section.alignment, 1)
                self.places[number] = start
                start += section.size
        return start

    def value(self, symbol: tuple[int, ...]) -> int:
        """Where a symbol of the object's own is."""
        number = symbol[3]
        if number >= _RESERVED or number not in self.places:
            raise UnsupportedError("it refers to what is not loaded")
        return self.places[number] + symbol[4]

    def references(self) -> Iterator[tuple[int, tuple[int, ...], int]]:
        """Where a distance is to be put, the symbol that it leads to, and what to add."""
        for table in self.sections:
            if table.kind != _RELOCATIONS or table.info not in self.places:
                continue
            for offset, what, addend in self._records(_RELOCATION, table):
                if what & 0xFFFFFFFF not in (_PC32, _PLT32):
                    raise UnsupportedError(f"a reference is of kind {what & 0xFFFFFFFF}")
                yield self.places[table.info] + offset, self.symbols[what >> 32], addend


def can_load() -> bool:
    """Whether this process can run what is loaded here."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and sys.maxsize > 1 << 32


class Image(NamedTuple):
    """Code of several objects, linked: it runs wherever it is put at the beginning of a page.

    Parameters
    ----------
    code : bytes
        Zeros where the jumps are.
    functions : dict of str to int
        Offset of each object's function, by name.
    jumps : dict of str to int
        Offset of the jump to each function of the C library, by the function's name.
    """

    code: bytes
    functions: Mapping[str, int]
    jumps: Mapping[str, int]


def link(objects: Mapping[str, bytes]) -> Image:
    """Join object files into one image; nothing of them is run.

    Parameters
    ----------
    objects : mapping of str to bytes
        By the name of the one function that each defines.

    Raises
    ------
    UnsupportedError
        If an object is of another kind.
    """
    read = {name: _Object(data) for name, data in objects.items()}
    end = 0
    for item in read.values():
        end = item.place(end)
    jumps = _jumps(read.values(), end + -end % _JUMP_BYTES)
    code = bytearray(max(jumps.values(), default=end) + _JUMP_BYTES)
    for item in read.values():
        _copy(item, code, jumps)
    return Image(bytes(code), {name: _function(item, name) for name, item in read.items()}, jumps)


def load_image(image: Image) -> dict[str, int]:
    """Put linked code into memory where it can be run, and no longer be written.

    Returns
    -------
    dict of str to int
        Address of each function. They stay until the process ends.

    Raises
    ------
    UnsupportedError
        If it calls what the process does not have, or memory cannot be made executable.
    """
    size = len(image.code)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[:] = image.code
    for name, place in image.jumps.items():
        _JUMP.pack_into(memory, place, _JUMP_TO_WHAT_FOLLOWS, _library_address(name))
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    _make_executable(start, size)
    # One more reference than there are: no interpreter that ends may unmap what threads still run.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
    return {name: start + offset for name, offset in image.functions.items()}


def load(objects: Mapping[str, bytes]) -> dict[str, int]:
    """Load object files; parameters, result and errors as of `link` and `load_image`."""
    return load_image(link(objects))


def _jumps(objects: Iterable[_Object], start: int) -> dict[str, int]:
    """Where the jump to each function of the C library will be."""
    names = {
        item.name(symbol)
        for item in objects
        for _, symbol, _ in item.references()
        if symbol[3] == _UNDEFINED
    }
    return {name: start + _JUMP_BYTES * number for number, name in enumerate(sorted(names))}


def _copy(item: _Object, memory: bytearray, jumps: Mapping[str, int]) -> None:
    """Put an object's sections in their places, with what they refer to."""
    for number, place in item.places.items():
        section = item.sections[number]
        if section.kind == _BITS:
            end = section.offset + section.size
            memory[place : place + section.size] = item.data[section.offset : end]
    for place, symbol, addend in item.references():
        is_own = symbol[3] != _UNDEFINED
        target = item.value(symbol) if is_own else jumps[item.name(symbol)]
        _OFFSET.pack_into(memory, place, target + addend - place)


def _function(item: _Object, name: str) -> int:
    """Where an object's function is."""
    found = [s for s in item.symbols if s[3] != _UNDEFINED and item.name(s) == name]
    if len(found) != 1:
        raise UnsupportedError(f"it does not define '{name}'")
    return item.value(found[0])


def _library_address(name: str) -> int:
    """Address of a function that the process has."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except AttributeError as error:
        raise UnsupportedError(f"it calls '{name}', which the process does not have") from error
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _make_executable(start: int, size: int) -> None:
    """Let memory be run, and no longer be written."""
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protect(start, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise UnsupportedError(f"memory cannot be made executable: error {ctypes.get_errno()}")
