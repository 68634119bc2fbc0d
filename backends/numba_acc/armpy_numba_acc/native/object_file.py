"""Reads object files (ELF) as LLVM writes them for Linux on x86-64 and 64-bit Arm.

Notes
-----
They may come from a file that is damaged: whatever does not lie within its bounds is refused.

References
----------
System V ABI, "Object Files"; ELF for the Arm 64-bit Architecture.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from armpy_numba_acc.native.image import UnsupportedError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

BEGINNING = b"\x7fELF\x02\x01\x01"
"""64 bits, little-endian, of the current version."""

ARCHITECTURES = {62: "x86_64", 183: "aarch64"}
"""As LLVM's triples begin, by the number in the file's header."""

_RELOCATABLE = 1
_BITS, _SYMBOLS, _NAMES, _RELOCATIONS, _NO_BITS = 1, 2, 3, 4, 8
_WRITABLE, _ALLOCATED, _EXECUTABLE = 1, 2, 4
_UNDEFINED, _RESERVED = 0, 0xFF00
_LARGEST_ALIGNMENT = 4096
_MOST_BYTES = 1 << 26
"""That an object may take in memory: far more than any kernel does, and near enough for calls."""

_UNWINDING = ".eh_frame"
"""What only debuggers and exceptions need. x86-64 has a kind of its own for it."""


class ElfSection(NamedTuple):
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


class Symbol(NamedTuple):
    """A name in an object file."""

    name: int
    info: int
    other: int
    section: int
    value: int
    size: int

    @property
    def is_own(self) -> bool:
        """Return whether the object defines it."""
        return self.section != _UNDEFINED


class Reference(NamedTuple):
    """A place where code or data depends on where something else is."""

    place: int  # offset from where all objects begin
    room: int  # bytes from there to the section's end
    kind: int  # number of the relocation
    symbol: Symbol
    addend: int


class ObjectFile:
    """An object file.

    Attributes
    ----------
    places : dict of int to int
        Where each section that is loaded will be, by its number, once `place` has said so.

    Raises
    ------
    UnsupportedError
        If it is none, or holds what kernels do not.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.architecture = object_architecture(data)
        header = _HEADER.unpack_from(data)
        start, size, count, names = (header[i] for i in (6, 11, 12, 13))
        # Every offset is checked before it is used, as files on disk can be damaged.
        if size != _SECTION.size or start + size * count > len(data) or names >= count:
            raise UnsupportedError("its table of sections is damaged")
        table = data[start : start + size * count]
        self.sections = [ElfSection(*fields) for fields in _SECTION.iter_unpack(table)]
        self._titles = self._checked_names(names)
        self._loaded = {
            number: section
            for number, section in enumerate(self.sections)
            if self._is_loaded(section)
        }
        for section in self._loaded.values():
            _check_loaded(section)
        tables = [section for section in self.sections if section.kind == _SYMBOLS]
        # LLVM writes one; with several, indices of symbols would mean different things.
        if len(tables) != 1:
            raise UnsupportedError("it has no table of symbols, or several")
        self._names = self._checked_names(tables[0].link)
        self.symbols = [Symbol(*fields) for fields in self._records(_SYMBOL, tables[0])]
        self.places: dict[int, int] = {}

    def _is_loaded(self, section: ElfSection) -> bool:
        """Return whether code needs a section."""
        return (
            bool(section.flags & _ALLOCATED)
            and section.kind in (_BITS, _NO_BITS)
            and section.size > 0
            and self._text(self._titles, section.name) != _UNWINDING
        )

    def _contents(self, section: ElfSection) -> bytes:
        end = section.offset + section.size
        if end > len(self.data):
            raise UnsupportedError("a section reaches beyond the file")
        return self.data[section.offset : end]

    def _records(self, form: struct.Struct, section: ElfSection) -> Iterator[tuple[int, ...]]:
        """The entries of a table."""
        contents = self._contents(section)
        if section.entry_size != form.size or len(contents) % form.size:
            raise UnsupportedError("a table has entries of another size")
        return form.iter_unpack(contents)

    def _checked_names(self, number: int) -> bytes:
        if number >= len(self.sections) or self.sections[number].kind != _NAMES:
            raise UnsupportedError("it refers to names that are not there")
        return self._contents(self.sections[number])

    def _text(self, names: bytes, start: int) -> str:
        """A name among others."""
        end = names.find(b"\0", start)
        if end < 0 or not (name := names[start:end]).isascii():
            raise UnsupportedError("a name is damaged")
        return name.decode("ascii")

    def name(self, symbol: Symbol) -> str:
        """A symbol's name."""
        return self._text(self._names, symbol.name)

    def place(self, start: int) -> int:
        """Say where each section will be, from some offset on; returns the end."""
        for number, section in self._loaded.items():
            start += -start % max(section.alignment, 1)
            self.places[number] = start
            start += section.size
        if start > _MOST_BYTES:
            raise UnsupportedError("it takes more memory than kernels do")
        return start

    def loaded(self) -> Iterator[tuple[int, bytes]]:
        """Return the places of the file's loaded bytes, and the bytes; all others are zero."""
        for number, place in self.places.items():
            if self.sections[number].kind == _BITS:
                yield place, self._contents(self.sections[number])

    def value(self, symbol: Symbol) -> int:
        """Return the address of a symbol of the object's own."""
        number = symbol.section
        if number >= _RESERVED or number not in self.places:
            raise UnsupportedError("it refers to a symbol that is not loaded")
        if symbol.value > self.sections[number].size:
            raise UnsupportedError("a symbol lies outside of its section")
        return self.places[number] + symbol.value

    def function(self, name: str) -> int:
        """Return the address of a function of the object's."""
        matches = [symbol for symbol in self.symbols if symbol.is_own and self.name(symbol) == name]
        if len(matches) != 1:
            raise UnsupportedError(f"it does not define '{name}'")
        place, section = self.value(matches[0]), self.sections[matches[0].section]
        if not section.flags & _EXECUTABLE or matches[0].value >= section.size:
            raise UnsupportedError(f"'{name}' is not a function")
        return place

    def references(self) -> Iterator[Reference]:
        """Return the places that code and data refer to."""
        for table in self.sections:
            if table.kind != _RELOCATIONS or table.info not in self.places:
                continue
            size = self.sections[table.info].size
            for offset, info, addend in self._records(_RELOCATION, table):
                number = info >> 32
                if offset > size or number >= len(self.symbols):
                    raise UnsupportedError("a reference lies outside of its section")
                place = self.places[table.info] + offset
                symbol = self.symbols[number]
                yield Reference(place, size - offset, info & 0xFFFFFFFF, symbol, addend)


def object_architecture(data: bytes) -> str:
    """The architecture in an object file's header.

    Raises
    ------
    UnsupportedError
        If the header is not that of an object file for Linux on x86-64 or 64-bit Arm.
    """
    if len(data) < _HEADER.size or not data.startswith(BEGINNING):
        raise UnsupportedError("it is not an object file of 64 bits")
    _, kind, machine, *_ = _HEADER.unpack_from(data)
    if kind != _RELOCATABLE or machine not in ARCHITECTURES:
        raise UnsupportedError("it is not an object for x86-64 or 64-bit Arm")
    return ARCHITECTURES[machine]


def _check_loaded(section: ElfSection) -> None:
    """Refuse what kernels do not have."""
    if section.flags & _WRITABLE:
        raise UnsupportedError("it has variables")
    alignment = section.alignment
    if alignment & (alignment - 1) or alignment > _LARGEST_ALIGNMENT:
        raise UnsupportedError("a section is aligned to what no memory is")
    if section.size > _MOST_BYTES:
        raise UnsupportedError("a section is larger than kernels are")
