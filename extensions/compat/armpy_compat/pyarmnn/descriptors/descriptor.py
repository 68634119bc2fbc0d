"""Base of the descriptors, which configure layers."""

from __future__ import annotations

from typing import ClassVar

from armpy_compat.pyarmnn.fields import ListField, ObjectField, ScalarField, checked_arguments
from armpy_compat.pyarmnn.swig import SwigObject, wrong_arguments
from armpy_compat.pyarmnn.tensors.tensor_info import TensorShape


class Descriptor(SwigObject):
    """A structure with members that a constructor may take in order.

    Raises
    ------
    TypeError
        If the arguments fit no constructor.
    """

    _arguments: ClassVar[tuple[str, ...]] = ()
    """Members that a constructor takes, in order."""
    _least: ClassVar[int] = 0
    """Least number of arguments, if there are any."""

    def __init__(self, *args: object) -> None:
        name = type(self).__name__
        if args and not self._arguments:
            raise TypeError(
                f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given"
            )
        try:
            members = checked_arguments(args, self._arguments, self._least)
            for member, value in members.items():
                setattr(self, member, value)
        except (TypeError, OverflowError) as error:
            raise wrong_arguments(f"new_{name}") from error

    def members(self) -> dict[str, object]:
        """The value of each member, by name."""
        kinds = (ScalarField, ListField, ObjectField)
        return {
            name: getattr(self, name)
            for name, member in vars(type(self)).items()
            if isinstance(member, kinds)
        }

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return _comparable(self) == _comparable(other)

    __hash__ = None  # type: ignore[assignment]  # as of every class with an operator ==


def _comparable(descriptor: Descriptor) -> dict[str, object]:
    """Members by name, with shapes as tuples."""
    return {
        name: tuple(value) if isinstance(value, TensorShape) else value
        for name, value in descriptor.members().items()
    }
