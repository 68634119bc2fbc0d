"""Operands by the names that an operation's definition gives them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Generic, TypeVar

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.ops.operation import Operation

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Operands(Generic[ItemT]):
    """Operands of an operation by name: infos, values or arrays, one for each input.

    Notes
    -----
    A variadic operand's name is that of its first item.
    """

    operation: Operation
    items: Sequence[ItemT | None]
    """Operands in the definition's order; None, or missing at the end, for an omitted one."""

    def __getitem__(self, name: str) -> ItemT:
        """The item of an operand that is there.

        Raises
        ------
        InvalidArgumentError
            If the operation has no such operand, or it is left out.
        """
        item = self.get(name)
        if item is None:
            raise InvalidArgumentError(
                f"the operand {name!r} is left out",
                where=self.operation.name,
                expected="an operand that is there",
                actual="none",
                fix="Ask for it with get(), which gives None then",
            )
        return item

    def get(self, name: str) -> ItemT | None:
        """The item of an operand; None if it is left out, `InvalidArgumentError` if unknown."""
        index = _indices(type(self.operation)).get(name)
        if index is None:
            raise InvalidArgumentError(
                f"there is no operand {name!r}",
                where=self.operation.name,
                expected=", ".join(operand.name for operand in self.operation.inputs),
                actual=name,
            )
        return self.items[index] if index < len(self.items) else None


@cache
def _indices(kind: type[Operation]) -> dict[str, int]:
    """Position of each operand among the inputs."""
    return {operand.name: index for index, operand in enumerate(kind.inputs)}
