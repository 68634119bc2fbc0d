"""Dataclasses whose methods are compiled when they are first used.

The standard library's decorator compiles up to six methods of each class while a module is
imported, which takes about a millisecond a class; a first start imports some 300 dataclasses, makes
objects of 125 and compares few of them. The decorator of this module leaves
fields and slots to the standard library and writes ``__init__``, ``__repr__``, ``__eq__`` and
``__hash__`` as it does, each when it is first looked up. `dataclasses.fields`, `replace` and
`asdict` take these classes, and other dataclasses may derive from them.

Type checkers read the standard library's decorator in its place, and so refuse what it refuses.
Not supported are the options that armpy does not use, `dataclasses.InitVar` and fields named
``self``. A class without a docstring is documented by its name alone, not by its signature.
"""

from __future__ import annotations

import abc
import dataclasses
import sys
from collections.abc import Callable, Iterable
from dataclasses import MISSING, FrozenInstanceError
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeAlias

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
    written = {*vars(plain)}
    if vars(plain).get("__hash__") is None and "__eq__" in written:
        written.discard("__hash__")  # Python has set it to None
    frozen_bases = _check_bases(plain, frozen)
    if frozen and not written.isdisjoint(("__setattr__", "__delattr__")):
        raise TypeError(f"{plain.__qualname__} is frozen and writes __setattr__ or __delattr__")
    make = dataclasses.dataclass(init=False, repr=False, eq=False, frozen=frozen_bases, slots=slots)
    plain.__doc__ = plain.__doc__ or plain.__name__
    made: Any = make(plain)
    made.__dataclass_params__.frozen = frozen
    methods: dict[str, object] = {"__init__": _FirstUse(made, "__init__", _init)}
    if shown:
        methods["__repr__"] = _FirstUse(made, "__repr__", _repr)
    if eq:
        methods["__eq__"] = _FirstUse(made, "__eq__", _eq)
        methods["__hash__"] = _FirstUse(made, "__hash__", _hash) if frozen else None
    if frozen and not frozen_bases:
        methods |= {"__setattr__": _set_attribute, "__delattr__": _delete_attribute}
        if slots:
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
    for name, method in methods.items():
        if name not in written:
            setattr(made, name, method)
    return abc.update_abstractmethods(made)


def _check_bases(plain: type, frozen: bool) -> bool:
    """Return whether a class derives from frozen dataclasses, which only frozen ones may do."""
    bases = (vars(base).get("__dataclass_params__") for base in plain.__mro__[1:])
    kinds = {parameters.frozen for parameters in bases if parameters is not None}
    if kinds and kinds != {frozen}:
        raise TypeError(f"{plain.__qualname__}: dataclasses and their bases are all frozen or none")
    return True in kinds


Method: TypeAlias = Callable[..., Any]

Compile: TypeAlias = Callable[[list[str], list[str], dict[str, object]], Method]
"""Compiles a method of its parameters, its lines, and names that it knows with what they mean."""

Write: TypeAlias = Callable[[Any, Compile], Method]
"""Writes a method of a class."""


class _FirstUse:
    """A method of a class, written when it is first looked up."""

    def __init__(self, owner: type, name: str, write: Write) -> None:
        self._owner = owner
        self._name = name
        self._write = write
        # A module may be forgotten while its classes live.
        self._module: dict[str, Any] = getattr(sys.modules.get(owner.__module__), "__dict__", {})

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self._method().__get__(instance, owner)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._method()(*arguments, **named)

    def _method(self) -> Method:
        method = self._write(self._owner, self._compiled)
        if vars(self._owner).get(self._name) is self:  # nobody has replaced it meanwhile
            setattr(self._owner, self._name, method)
        return method

    def _compiled(self, parameters: list[str], body: list[str], known: dict[str, object]) -> Method:
        """Compile the method, in its module and with the names that it knows."""
        lines = [
            f"def make({', '.join(known)}):",
            f" def {self._name}({', '.join(parameters)}):",
            *(f"  {line}" for line in body),
            f" return {self._name}",
        ]
        made: dict[str, Any] = {}
        exec("\n".join(lines), self._module, made)  # of the lines above
        method: Method = made["make"](**known)
        method.__qualname__ = f"{self._owner.__qualname__}.{self._name}"
        return method


class _NewValue:
    """The default of a parameter whose value is made by each call."""

    def __repr__(self) -> str:
        return "<factory>"


def _init(owner: Any, compiled: Compile) -> Method:
    """Write ``__init__``."""
    known: dict[str, object] = {_NEW: _NewValue(), _SET: object.__setattr__}
    ordered: list[str] = []
    by_name: list[str] = []
    body: list[str] = []
    annotations: dict[str, object] = {}
    for one in dataclasses.fields(owner):
        name, given, parameter = one.name, one.name, one.name
        if one.default_factory is not MISSING:
            made = f"__dataclass_new_{name}__"
            known[made] = one.default_factory
            given = f"{made}() if {name} is {_NEW} else {name}" if one.init else f"{made}()"
            parameter = f"{name}={_NEW}"
        elif one.default is not MISSING:
            default = f"__dataclass_default_{name}__"
            known[default] = one.default
            given = name if one.init else default
            parameter = f"{name}={default}"
        elif not one.init:
            continue
        is_frozen = owner.__dataclass_params__.frozen
        body.append(f"{_SET}(self, '{name}', {given})" if is_frozen else f"self.{name} = {given}")
        if one.init:
            annotations[name] = one.type
            (by_name if one.kw_only else ordered).append(parameter)
    if hasattr(owner, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ["self", *ordered, *(["*", *by_name] if by_name else [])]
    init = compiled(parameters, body or ["pass"], known)
    init.__annotations__ = {**annotations, "return": None}
    return init


_NEW, _SET = "__dataclass_new_value__", "__dataclass_set__"
"""Names in ``__init__`` that no field has."""


def _repr(owner: Any, compiled: Compile) -> Method:
    """Write ``__repr__``: a call that makes the object."""
    fields = dataclasses.fields(owner)
    shown = ", ".join(f"{one.name}={{self.{one.name}!r}}" for one in fields if one.repr)
    text = f"return f'{{self.__class__.__qualname__}}({shown})'"
    return recursive_repr()(compiled(["self"], [text], {}))


def _eq(owner: Any, compiled: Compile) -> Method:
    """Write ``__eq__``: objects of the same class are compared as the tuples of their fields."""
    names = [one.name for one in dataclasses.fields(owner) if one.compare]
    body = [
        "if other.__class__ is not self.__class__:",
        " return NotImplemented",
        f"return {_values('self', names)} == {_values('other', names)}",
    ]
    return compiled(["self", "other"], body, {})


def _hash(owner: Any, compiled: Compile) -> Method:
    """Write ``__hash__``: that of the tuple of the fields."""
    fields = dataclasses.fields(owner)
    names = [one.name for one in fields if (one.compare if one.hash is None else one.hash)]
    return compiled(["self"], [f"return hash({_values('self', names)})"], {})


def _values(of: str, names: Iterable[str]) -> str:
    """Write a tuple of fields."""
    return f"({''.join(f'{of}.{name}, ' for name in names)})"


def _set_attribute(self: Any, name: str, value: object) -> None:
    if _is_fixed(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delete_attribute(self: Any, name: str) -> None:
    if _is_fixed(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_fixed(one: Any, name: str) -> bool:
    """Return whether an attribute is a field, or of a dataclass rather than a subclass of one."""
    return "__dataclass_fields__" in vars(type(one)) or name in one.__dataclass_fields__


def _state(self: Any) -> list[object]:
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
