"""Constants of live programs, which other programs may use."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from armpy.ops.operation import Array

_offered: dict[int, weakref.ref[Array]] = {}


def offer_constants(constants: Array) -> None:
    """Let other programs use a program's constants as long as the program is alive.

    Parameters
    ----------
    constants : ndarray, uint8
        Begins at a cache line, and is never written to.
    """
    number = id(constants)
    _offered[number] = weakref.ref(constants, lambda _: _offered.pop(number, None))


def live_constants() -> list[Array]:
    """Return the constants of all live programs."""
    references = [reference() for reference in [*_offered.values()]]
    return [constants for constants in references if constants is not None]
