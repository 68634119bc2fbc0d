"""Functions that a shared library exports, read from its file; nothing of it is loaded.

Notes
-----
Names of functions that a library calls are in its file too, so that a search for the text does not
do: ONNX Runtime itself has the name of the function that it looks for in its plugins. The text is
searched for first all the same, as most libraries do not have it.

References
----------
System V ABI, "Object Files"; Microsoft, "PE Format"; Apple, "mach-o/loader.h" and "mach-o/fat.h".
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Collection, Iterator

from armpy.core.file_digest import open_regular

_DYNAMIC_SYMBOLS = 11  # a kind of section of ELF
_ELF_LAYOUTS = {
    # Header, section, symbol; the names' places in a section and in a symbol follow.
    1: ("16xHHIIIIIHHHHHH", "IIIIIIIIII", "IIIBBH", 5),
    2: ("16xHHIQQQIHHHHHH", "IIQQQQIIQQ", "IBBHQQ", 3),
}
_BYTE_ORDERS = {1: "<", 2: ">"}

_FAT = b"\xca\xfe\xba\xbe"
_MACH_LAYOUTS = {b"\xce\xfa\xed\xfe": ("<7I", "<IBBHI"), b"\xcf\xfa\xed\xfe": ("<8I", "<IBBHQ")}
_SYMBOL_TABLE = 2  # a command of Mach-O
_EXTERNAL, _KIND = 0x01, 0x0E  # bits of a Mach-O symbol; a kind of 0 is not defined there


def exported_functions(path: str, names: Collection[str]) -> frozenset[str]:
    """Those of some names that a shared library exports.

    Parameters
    ----------
    path : str
    names : collection of str
        Functions of C, as they are called in sources.

    Returns
    -------
    frozenset of str
        Empty for a damaged file, and for one that is not a library in ELF, PE or Mach-O.

    Raises
    ------
    OSError
        If the file cannot be read, or is not a regular one.
    """
    with open_regular(path) as file:
        if not file.seek(0, 2):
            return frozenset()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as contents:
            wanted = {f"{n}\0".encode() for n in names if contents.find(f"{n}\0".encode()) >= 0}
            if not wanted:
                return frozenset()
            try:
                found = wanted.intersection(_exports(contents, wanted))
            # An offset leads out of the file, or out of any.
            except (struct.error, KeyError, IndexError, OverflowError):
                return frozenset()
    return frozenset(name[:-1].decode() for name in found)


def _exports(contents: mmap.mmap, wanted: Collection[bytes]) -> Iterator[bytes]:
    """Exported names with the zero after them, as far as they may be wanted."""
    longest = max(map(len, wanted)) + 1
    magic = contents[:4]
    if magic == b"\x7fELF":
        yield from _elf_exports(contents, longest)
    elif magic[:2] == b"MZ":
        yield from _pe_exports(contents, longest)
    elif magic == _FAT:
        (count,) = struct.unpack_from(">I", contents, 4)
        for number in range(count):
            (start,) = struct.unpack_from(">I", contents, 16 + 20 * number)
            yield from _mach_exports(contents, start, longest)
    else:
        yield from _mach_exports(contents, 0, longest)


def _name(contents: mmap.mmap, start: int, longest: int) -> bytes:
    """A text up to the zero at its end, which is part of it."""
    text, zero, _ = contents[start : start + longest].partition(b"\0")
    return text + zero


def _elf_exports(contents: mmap.mmap, longest: int) -> Iterator[bytes]:
    header, section, symbol, place = _ELF_LAYOUTS[contents[4]]
    order = _BYTE_ORDERS[contents[5]]
    _, _, _, _, _, start, _, _, _, _, size, count, _ = struct.unpack_from(order + header, contents)
    sections = [
        struct.unpack_from(order + section, contents, start + size * number)
        for number in range(count)
    ]
    for _, kind, _, _, offset, length, link, _, _, _ in sections:
        if kind != _DYNAMIC_SYMBOLS:
            continue
        texts = sections[link][4]
        for fields in struct.iter_unpack(order + symbol, contents[offset : offset + length]):
            if fields[place]:  # 0 if another library defines it
                yield _name(contents, texts + fields[0], longest)


def _pe_exports(contents: mmap.mmap, longest: int) -> Iterator[bytes]:
    (start,) = struct.unpack_from("<I", contents, 0x3C)
    count, optional_bytes = struct.unpack_from("<2xH12xH", contents, start + 4)
    optional = start + 24
    is_wide = contents[optional : optional + 2] == b"\x0b\x02"
    (exports,) = struct.unpack_from("<I", contents, optional + (112 if is_wide else 96))
    sections = [
        struct.unpack_from("<8x4I", contents, optional + optional_bytes + 40 * number)
        for number in range(count)
    ]

    def place(address: int) -> int:
        for size, virtual, raw_bytes, raw in sections:
            if virtual <= address < virtual + max(size, raw_bytes):
                return int(address - virtual + raw)
        raise IndexError(address)

    if not exports:
        return
    directory = place(exports)
    count, _, addresses = struct.unpack_from("<III", contents, directory + 24)
    start = place(addresses)
    for (address,) in struct.iter_unpack("<I", contents[start : start + 4 * count]):
        yield _name(contents, place(address), longest)


def _mach_exports(contents: mmap.mmap, start: int, longest: int) -> Iterator[bytes]:
    if (layout := _MACH_LAYOUTS.get(contents[start : start + 4])) is None:
        return
    header, symbol = layout
    commands = struct.unpack_from(header, contents, start)[4]
    position = start + struct.calcsize(header)
    for _ in range(commands):
        command, size = struct.unpack_from("<II", contents, position)
        if not size:  # of a damaged file: the same command would be read again
            return
        if command == _SYMBOL_TABLE:
            symbols, count, texts = struct.unpack_from("<III", contents, position + 8)
            for number in range(count):
                place = start + symbols + struct.calcsize(symbol) * number
                text, kind, *_ = struct.unpack_from(symbol, contents, place)
                if kind & _EXTERNAL and kind & _KIND:
                    # Names of C begin with an underscore there.
                    yield _name(contents, start + texts + text, longest).removeprefix(b"_")
        position += size
