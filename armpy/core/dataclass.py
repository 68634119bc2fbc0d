"""Dataclasses whose methods are compiled when they are first used.

The standard library's decorator compiles up to six methods of each class while a module is
imported, which takes about a millisecond a class; a first start imports some 300 dataclasses, makes
objects of 125 and compares few of them. The decorator of this module makes the same classes: it
leaves fields and slots to the standard library and writes ``__init__``, ``__repr__``, ``__eq__``
and ``__hash__`` as it does, each when it is first looked up. `dataclasses.fields`, `replace` and
`asdict` take these classes, and other dataclasses may derive from them.

Type checkers read the standard library's decorator in its place. Not supported are the options that
armpy does not use, `dataclasses.InitVar` and fields named ``self``. A class without a docstring is
documented by its name alone, not by its signature.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(plain=None, /, *, frozen=False, slots=False, eq=True, repr=True):
        """Make a dataclass of a class, with the options of `dataclasses.dataclass`."""

        def made(plain):
            return _made(plain, frozen=frozen, slots=slots, eq=eq, shown=repr)

        return made if plain is None else made(plain)


def _made(plain: type, *, frozen: bool, slots: bool, eq: bool, shown: bool) -> Any:
    """Make a dataclass of a class as it is written."""
    methods: dict[str, Callable[[type], Callable[..., Any]]] = {"__init__": _init}
    if shown:
        methods["__repr__"] = _repr
    if eq:
        methods["__eq__"] = _eq
    if eq and frozen:
        methods["__hash__"] = _hash
    written = {name for name, method in vars(plain).items() if method is not None} - {"__init__"}
    # The standard library wants subclasses of a frozen dataclass to be frozen.
    bases = (vars(base).get("__dataclass_params__") for base in plain.__mro__)
    frozen_bases = any(parameters.frozen for parameters in bases if parameters is not None)
    make = dataclasses.dataclass(init=False, repr=False, eq=False, frozen=frozen_bases, slots=slots)
    plain.__doc__ = plain.__doc__ or plain.__name__
    made: Any = make(plain)
    made.__dataclass_params__.frozen = frozen
    if frozen and not frozen_bases:
        made.__setattr__ = _refuse_assignment
        made.__delattr__ = _refuse_deletion
        if slots:
            made.__getstate__ = _state
            made.__setstate__ = _set_state
    for name, write in methods.items():
        if name not in written:
            setattr(made, name, _FirstUse(made, name, write))
    if eq and not frozen and "__hash__" not in written:
        made.__hash__ = None
    return made


class _FirstUse:
    """A method of a class, written when it is first looked up."""

    def __init__(self, owner: type, name: str, write: Callable[[type], Callable[..., Any]]) -> None:
        self._owner = owner
        self._name = name
        self._write = write

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        method = self._write(self._owner)
        setattr(self._owner, self._name, method)
        return method.__get__(instance, owner)


class _NewValue:
    """The default of a parameter whose value is made by each call."""

    def __repr__(self) -> str:
        return "<factory>"


_NEW_VALUE = _NewValue()


def _init(owner: type) -> Callable[..., None]:
    """Write ``__init__``."""
    known: dict[str, object] = {"_NEW_VALUE": _NEW_VALUE, "_set": object.__setattr__}
    ordered: list[str] = []
    by_name: list[str] = []
    body: list[str] = []
    annotations: dict[str, object] = {}
    frozen = owner.__dataclass_params__.frozen  # type: ignore[attr-defined]  # of a dataclass
    for one in _fields(owner):
        name, given = one.name, one.name
        if one.default_factory is not MISSING:
            known[f"_new_{name}"] = one.default_factory
            given = f"_new_{name}()"
            if one.init:
                given = f"{given} if {name} is _NEW_VALUE else {name}"
        elif one.default is not MISSING:
            known[f"_default_{name}"] = one.default
            given = name if one.init else f"_default_{name}"
        elif not one.init:
            continue
        body.append(f"_set(self, '{name}', {given})" if frozen else f"self.{name} = {given}")
        if one.init:
            annotations[name] = one.type
            default = ""
            if one.default_factory is not MISSING:
                default = "=_NEW_VALUE"
            elif one.default is not MISSING:
                default = f"=_default_{name}"
            (by_name if one.kw_only else ordered).append(name + default)
    if hasattr(owner, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ["self", *ordered, *(["*", *by_name] if by_name else [])]
    init = _function(owner, "__init__", parameters, body or ["pass"], known)
    init.__annotations__ = {**annotations, "return": None}
    return init


def _repr(owner: type) -> Callable[[Any], str]:
    """Write ``__repr__``: a call that makes the object."""
    shown = [f"{one.name}={{self.{one.name}!r}}" for one in _fields(owner) if one.repr]
    text = f"return f'{{self.__class__.__qualname__}}({', '.join(shown)})'"
    return recursive_repr()(_function(owner, "__repr__", ["self"], [text], {}))


def _eq(owner: type) -> Callable[[Any, object], object]:
    """Write ``__eq__``: objects of the same class are compared as the tuples of their fields."""
    body = [
        "if other.__class__ is not self.__class__:",
        " return NotImplemented",
        f"return {_values(owner, 'self')} == {_values(owner, 'other')}",
    ]
    return _function(owner, "__eq__", ["self", "other"], body, {})


def _hash(owner: type) -> Callable[[Any], int]:
    """Write ``__hash__``: that of the tuple of the fields."""
    return _function(owner, "__hash__", ["self"], [f"return hash({_values(owner, 'self')})"], {})


def _fields(owner: type) -> tuple[Field[Any], ...]:
    """Return the fields of a dataclass, those of its bases first."""
    return dataclasses.fields(owner)


def _values(owner: type, of: str) -> str:
    """Write the tuple of an object's compared fields."""
    return f"({''.join(f'{of}.{one.name}, ' for one in _fields(owner) if one.compare)})"


def _function(
    owner: type, name: str, parameters: list[str], body: list[str], known: Mapping[str, object]
) -> Callable[..., Any]:
    """Compile a method of a class, in its module and with names that the method knows."""
    lines = [
        f"def make({', '.join(known)}):",
        f" def {name}({', '.join(parameters)}):",
        *(f"  {line}" for line in body),
        f" return {name}",
    ]
    made: dict[str, Any] = {}
    exec("\n".join(lines), vars(sys.modules[owner.__module__]), made)  # of the lines above
    method: Callable[..., Any] = made["make"](**known)
    method.__qualname__ = f"{owner.__qualname__}.{name}"
    return method


def _refuse_assignment(self: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: object) -> list[object]:
    return [getattr(self, one.name) for one in _fields(type(self))]


def _set_state(self: object, state: list[object]) -> None:
    for one, value in zip(_fields(type(self)), state, strict=True):
        object.__setattr__(self, one.name, value)
