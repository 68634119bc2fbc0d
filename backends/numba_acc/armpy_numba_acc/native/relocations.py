"""Puts distances into code, where object files leave room for them.

Notes
-----
Code is linked for the beginning of a page, wherever that is: only distances are put in, and
distances between pages. Absolute addresses are refused; kernels have none.

References
----------
System V ABI, AMD64 supplement, "Relocation Types"; ELF for the Arm 64-bit Architecture,
"Relocation types"; Arm Architecture Reference Manual for the instructions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

from armpy_numba_acc.native.image import UnsupportedError

_WORD, _LONG = struct.Struct("<I"), struct.Struct("<q")
_DISTANCE = struct.Struct("<i")
_PAGE = 4096


class _Field(NamedTuple):
    """A field of an Arm instruction, which is 4 bytes."""

    mask: int  # what identifies the instructions that have the field
    expected: int
    # The field's bits for a target and the instruction's own place.
    insert: Callable[[int, int], int]


def _branch(target: int, place: int) -> int:
    """Distance of a jump or a call, in instructions."""
    return _signed(target - place, 28, 4) >> 2


def _page(target: int, place: int) -> int:
    """Distance between two pages, its two lowest bits apart from the others."""
    pages = _signed(target // _PAGE - place // _PAGE, 21, 1)
    return (pages & 3) << 29 | pages >> 2 << 5


def _near(target: int, place: int) -> int:
    """Distance in bytes, put together like one between pages."""
    distance = _signed(target - place, 21, 1)
    return (distance & 3) << 29 | distance >> 2 << 5


def _within(size: int) -> Callable[[int, int], int]:
    """Place within a page, in units of so many bytes."""

    def insert(target: int, place: int) -> int:
        offset = target % _PAGE
        if offset % size:
            raise UnsupportedError("an address is not aligned")
        return offset // size << 10

    return insert


def _signed(value: int, bits: int, unit: int) -> int:
    """A signed number in so many bits, as an unsigned one."""
    if value % unit or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise UnsupportedError("a distance does not fit its instruction")
    return value & (1 << bits) - 1


def _access(size: int) -> _Field:
    """The field of instructions that read or write so many bytes."""
    return _Field(0x3B000000, 0x39000000, _within(size))


_ARM_FIELDS: Mapping[int, _Field] = {
    274: _Field(0x9F000000, 0x10000000, _near),  # R_AARCH64_ADR_PREL_LO21
    275: _Field(0x9F000000, 0x90000000, _page),  # R_AARCH64_ADR_PREL_PG_HI21
    277: _Field(0xFFC00000, 0x91000000, _within(1)),  # R_AARCH64_ADD_ABS_LO12_NC
    278: _access(1),  # R_AARCH64_LDST8_ABS_LO12_NC, and so on
    282: _Field(0xFC000000, 0x14000000, _branch),  # R_AARCH64_JUMP26
    283: _Field(0xFC000000, 0x94000000, _branch),  # R_AARCH64_CALL26
    284: _access(2),
    285: _access(4),
    286: _access(8),
    299: _access(16),
}

_ROOM: Mapping[int, int] = {
    274: 0x60FFFFE0,
    275: 0x60FFFFE0,
    282: 0x03FFFFFF,
    283: 0x03FFFFFF,
}
"""Bits of the fields that are not those of addresses within a page."""

_WITHIN = 0x003FFC00

_DISTANCES: Mapping[str, Mapping[int, struct.Struct]] = {
    "x86_64": {2: _DISTANCE, 4: _DISTANCE},  # R_X86_64_PC32, R_X86_64_PLT32
    "aarch64": {260: _LONG, 261: _DISTANCE},  # R_AARCH64_PREL64, R_AARCH64_PREL32
}
"""Plain distances, by the number of the relocation."""


def relocate(
    code: bytearray, architecture: str, kind: int, place: int, target: int, room: int
) -> None:
    """Put what depends on a distance into code.

    Parameters
    ----------
    code
        Which will lie at the beginning of a page.
    kind
        Number of the relocation.
    place, target
        Where it is put, and where it leads to.
    room
        Bytes that may be written at `place`.

    Raises
    ------
    UnsupportedError
        If the kind is unknown, the place is wrong, or the distance is too large.
    """
    form = _DISTANCES[architecture].get(kind)
    if form is not None:
        _check_room(room, form.size)
        try:
            form.pack_into(code, place, target - place)
        except struct.error as error:
            raise UnsupportedError("a distance does not fit its place") from error
        return
    field = _ARM_FIELDS.get(kind) if architecture == "aarch64" else None
    if field is None:
        raise UnsupportedError(f"a reference is of kind {kind}")
    _check_room(room, _WORD.size)
    (instruction,) = _WORD.unpack_from(code, place)
    # Damaged code must not be patched: it is run.
    if instruction & field.mask != field.expected or place % _WORD.size:
        raise UnsupportedError("a reference does not lie in an instruction of its kind")
    opcode = instruction & ~_ROOM.get(kind, _WITHIN)
    _WORD.pack_into(code, place, opcode | field.insert(target, place))


def _check_room(room: int, size: int) -> None:
    """Refuse to write beyond a section."""
    if room < size:
        raise UnsupportedError("a reference reaches beyond its section")
