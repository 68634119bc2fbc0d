"""Elements for generators that still write with llvmlite's builder; see `tiles.elements`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from armpy_numba_acc.llvm.values import Code, Value
from armpy_numba_acc.machine.formats import FORMAT_BYTES
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles import elements

# Any, all over: llvmlite has no types.


def size_of(kind: str) -> int:
    """Bytes of a stored element."""
    return FORMAT_BYTES[kind]


def for_whole_vectors(
    isa: Isa, builder: Any, lanes: int, count: Any, compute: Callable[..., None]
) -> None:
    """As `elements.for_each_vector`."""

    def plain(lanes: int, index: Value, mask: Value | None) -> None:
        compute(lanes, index.value, None if mask is None else mask.value)

    elements.for_each_vector(isa, lanes, Code(builder).of(count), plain)


def load_elements(
    builder: Any, address: Any, kind: str, index: Any, lanes: int, mask: Any = None
) -> Any:
    """As `elements.load_elements`."""
    of = Code(builder).of
    given = None if mask is None else of(mask)
    return elements.load_elements(of(address), kind, of(index), lanes, given).value


def store_elements(
    builder: Any, value: Any, address: Any, kind: str, index: Any, mask: Any = None
) -> None:
    """As `elements.store_elements`."""
    of = Code(builder).of
    given = None if mask is None else of(mask)
    elements.store_elements(of(value), of(address), kind, of(index), given)
