"""Loads object files (ELF) as LLVM writes them for x86-64 and 64-bit Arm, without LLVM.

Notes
-----
Code and constants of all objects go into one mapping. References between them are set
relative to where it is; calls of the C library go through jumps after the code, because it may
be further away than a call reaches. Whatever else an object may hold is refused, and left to
LLVM: kernels refer to little. Any machine links code for both; none maps another's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from armpy_numba_acc.native.image import (
    JUMP,
    Image,
    MissingFunctionError,
    UnsupportedError,
    architecture_of_triple,
    can_load,
    load_image,
    own_architecture,
)
from armpy_numba_acc.native.object_file import ObjectFile
from armpy_numba_acc.native.relocations import relocate

__all__ = [
    "Image",
    "MissingFunctionError",
    "UnsupportedError",
    "can_load",
    "link",
    "load",
    "load_image",
]

_MOST_BYTES = 1 << 26
"""Of one mapping, so that every call within it reaches."""


def link(objects: Mapping[str, bytes], triple: str = "") -> Image:
    """Join object files of one architecture into one image; nothing of them is run.

    Parameters
    ----------
    objects : mapping of str to bytes
        By the name of the one function that each defines.
    triple
        LLVM's, that they were compiled for; for this system if left out.

    Raises
    ------
    UnsupportedError
        If an object is damaged, or of another kind.
    """
    read = {name: ObjectFile(data) for name, data in objects.items()}
    architectures = {item.architecture for item in read.values()}
    # One image runs on one processor: a mixture would fail at the first call, not here.
    if len(architectures) != 1:
        raise UnsupportedError("there are no objects, or of several architectures")
    (processor,) = architectures
    triple = triple or own_architecture()
    end = 0
    for item in read.values():
        end = item.place(end)
    # Aligned, as Arm's instructions and the addresses after them have to be.
    jumps = _jumps(read.values(), end + -end % JUMP.size)
    size = max(jumps.values(), default=end) + JUMP.size
    if size > _MOST_BYTES:
        raise UnsupportedError("together they are too large for one mapping")
    code = bytearray(size)
    for item in read.values():
        _copy(item, code, jumps)
    functions = {name: item.function(name) for name, item in read.items()}
    return Image(bytes(code), functions, jumps, architecture_of_triple(processor, triple))


def load(objects: Mapping[str, bytes]) -> dict[str, int]:
    """Load object files for good; parameters and errors as of `link` and `load_image`.

    Returns
    -------
    dict of str to int
        Address of each function. They stay until the process ends.
    """
    image = load_image(link(objects))
    image.keep()
    return image.addresses


def _jumps(objects: Iterable[ObjectFile], start: int) -> dict[str, int]:
    """Return the place of the jump to each function of the C library."""
    names = {
        item.name(reference.symbol)
        for item in objects
        for reference in item.references()
        if not reference.symbol.is_own
    }
    return {name: start + JUMP.size * number for number, name in enumerate(sorted(names))}


def _copy(item: ObjectFile, code: bytearray, jumps: Mapping[str, int]) -> None:
    """Put an object's sections in their places, with their references."""
    for place, contents in item.loaded():
        code[place : place + len(contents)] = contents
    for place, room, kind, symbol, addend in item.references():
        target = item.value(symbol) if symbol.is_own else jumps[item.name(symbol)]
        relocate(code, item.architecture, kind, place, target + addend, room)
