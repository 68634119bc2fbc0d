"""Constants that programs offer others to use, as long as they are there."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from armpy.ops.operation import Array

_offered: dict[int, weakref.ref[Array]] = {}


def offer_constants(constants: Array) -> None:
    """Let other programs use what lies among a program's constants.

    Parameters
    ----------
    constants : ndarray, uint8
        Begins at a cache line, and is never written to.
    """
    number = id(constants)
    _offered[number] = weakref.ref(constants, lambda _: _offered.pop(number, None))


def offered_constants() -> list[Array]:
    """Constants of all programs that are there."""
    constants_offered = [reference() for reference in [*_offered.values()]]
    return [constants for constants in constants_offered if constants is not None]
