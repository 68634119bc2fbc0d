"""Vectors of elements: loaded from memory as expressions take them, and stored again."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.arithmetic.bfloat16 import from_bfloat16, to_bfloat16
from armpy_numba_acc.llvm.control import loop, when
from armpy_numba_acc.llvm.values import (
    F32,
    I1,
    I8,
    I16,
    I32,
    I64,
    CodeValue,
    Kind,
    Number,
    element_bytes,
    first_lanes,
    vector,
)
from armpy_numba_acc.machine.isa import Isa

_FORMATS: dict[str, tuple[Kind, str, Kind]] = {
    "f32": (F32, "", F32),
    "bf16": (I16, "bfloat16", F32),
    "i32": (I32, "", I32),
    "i64": (I64, "", I64),
    "u8": (I8, "zext", I32),
    "i8": (I8, "sext", I32),
    "u16": (I16, "zext", I32),
    "i16": (I16, "sext", I32),
    "bool": (I8, "", I1),
    "raw8": (I8, "", I8),
    "raw16": (I16, "", I16),
}
"""The type in memory, how it is widened, and to what, by `machine.formats`. What is raw is handed
on as it is."""

Compute = Callable[[int, CodeValue, CodeValue | None], None]
"""Writes the code for so many elements from an index on; of a mask's elements only, if there is
one."""


def stored_kind(name: str) -> Kind:
    """Type in memory of a format's elements."""
    return _FORMATS[name][0]


def register_bytes(name: str) -> int:
    """Bytes of an element in a register; bits are kept as narrow as the others allow."""
    stored, widening, _ = _FORMATS[name]
    return 4 if widening else element_bytes(stored)


def widened(values: CodeValue, name: str) -> CodeValue:
    """Stored elements as expressions take them."""
    _, widening, element = _FORMATS[name]
    if name == "bool":
        return values.differs(0)
    if name == "bf16":
        return from_bfloat16(values)
    return values.converted(widening, element) if widening else values


def load_elements(
    address: CodeValue, name: str, index: Number, lanes: int, mask: CodeValue | None = None
) -> CodeValue:
    """Load a vector of elements as expressions take them.

    Parameters
    ----------
    address
        Of an array.
    name
        Format of its elements.
    index
        Of the first element.
    mask
        The elements that are there.
    """
    stored = stored_kind(name)
    place = address.place(stored, index)
    return widened(place.load(vector(stored, lanes), mask=mask), name)


def store_elements(
    values: CodeValue, address: CodeValue, name: str, index: Number, mask: CodeValue | None = None
) -> None:
    """Store a vector of elements that an expression has given; parameters as `load_elements`."""
    stored = stored_kind(name)
    if name == "bf16":
        values = to_bfloat16(values)
    elif values.element != stored:
        values = values.converted("zext" if values.element == I1 else "trunc", stored)
    address.place(stored, index).store(values, mask=mask)


def for_each_vector(isa: Isa, lanes: int, count: CodeValue, compute: Compute) -> None:
    """Write a loop over vectors of elements, and over the rest.

    Parameters
    ----------
    lanes
        Elements of a vector.
    count
        Number of elements.
    compute : callable
        See `Compute`.
    """
    code, whole = count.code, count & -lanes

    def of(lanes: int) -> Callable[[CodeValue, list[CodeValue]], list[CodeValue]]:
        def step(index: CodeValue, values: list[CodeValue]) -> list[CodeValue]:
            compute(lanes, index, None)
            return values

        return step

    def rest() -> list[CodeValue]:
        compute(lanes, whole, first_lanes(count - whole, lanes))
        return []

    loop(code, whole, [], of(lanes), by=lanes)
    if isa.vector_bytes == 64:
        when(whole < count, rest)
    else:  # other processors have no masks, or not for all types
        loop(code, count, [], of(1), start=whole)
