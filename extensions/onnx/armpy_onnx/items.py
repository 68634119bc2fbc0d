"""Values of a graph's names: tensors, sequences of them, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from armpy.core.dataclass import dataclass
from armpy.errors import LayerValidationError
from armpy.graph import Value
from armpy.types import DataType


@dataclass(frozen=True, eq=False, slots=True)
class ValueList:
    """A sequence, whose length is always known."""

    values: tuple[Value, ...]
    data_type: DataType  # of its tensors, also where it has none
    stack: Value | None = None  # all of them along a new first axis, where that exists


Item: TypeAlias = "Value | ValueList | None"
"""Operand of a node; None for one that is left out, or an optional that is empty."""

Form: TypeAlias = "DataType | tuple[DataType, int] | None"
"""Form of an item: a tensor, a sequence with its length, or nothing."""


class UnknownElements(Exception):  # noqa: N818 - it is not an error: the node waits
    """A node cannot be converted before the elements of some tensors are known.

    Parameters
    ----------
    what : str
        Purpose of the elements, for messages.
    """

    def __init__(self, decisive: Sequence[Value], what: str) -> None:
        super().__init__(what)
        self.decisive = tuple(decisive)
        self.what = what


def tensors(items: Sequence[Item]) -> list[Value]:
    """Items that have to be tensors.

    Raises
    ------
    LayerValidationError
        If one is not.
    """
    for number, item in enumerate(items):
        if not isinstance(item, Value):
            raise LayerValidationError(
                f"operand {number} is not a tensor",
                actual="nothing" if item is None else "a sequence",
            )
    return list(items)  # type: ignore[arg-type]  # they have been looked at


def form_of(item: Item) -> Form:
    """Return the form of an item."""
    if isinstance(item, ValueList):
        return (item.data_type, len(item.values))
    return None if item is None else item.info.data_type


def flat(items: Sequence[Item]) -> list[Value]:
    """The tensors of some items, in order."""
    values: list[Value] = []
    for item in items:
        if isinstance(item, ValueList):
            values.extend(item.values)
        elif item is not None:
            values.append(item)
    return values


def formed(values: Sequence[Value], forms: Sequence[Form]) -> list[Item]:
    """Items of given forms, of what `flat` gives."""
    rest = iter(values)
    items: list[Item] = []
    for form in forms:
        if isinstance(form, tuple):
            data_type, length = form
            items.append(ValueList(tuple(next(rest) for _ in range(length)), data_type))
        else:
            items.append(None if form is None else next(rest))
    return items
