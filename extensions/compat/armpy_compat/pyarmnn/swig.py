"""Marks that SWIG leaves on the classes of PyArmNN, which programs and Arm's tests read."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar


class SwigObject:
    """Base of the classes whose objects Python owns."""

    thisown: bool = True
    """Whether Python owns the object; `IRuntime.LoadNetwork` takes networks over."""
    __swig_destroy__: ClassVar[Callable[[object], None]]
    """Does nothing: objects end as all of Python's do."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()

        def destroy(_: object) -> None:
            """Do nothing."""

        destroy.__name__ = f"delete_{cls.__name__}"
        cls.__swig_destroy__ = staticmethod(destroy)


class SwigReference:
    """Base of the classes whose objects belong to a network or a runtime."""

    thisown: bool = False


def wrong_arguments(function: str) -> TypeError:
    """The error for arguments that fit none of a function's forms."""
    return TypeError(f"Wrong number or type of arguments for overloaded function '{function}'.")
