"""Dataclasses that are quick to define.

Notes
-----
The standard decorator writes and compiles the text of half a dozen methods for each class: half
a millisecond that every process pays again, for a hundred classes and more. This one takes
general methods instead, and writes ``__init__`` when the first object is made. What it gives is
a dataclass to everything that asks for one: `dataclasses.fields`, `replace` and `asdict`,
pattern matching, subclasses by the standard decorator, pickling, and type checkers.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Mapping
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

_Kind = type[Any]  # Any: decorates every class
_Fields = Mapping[str, "dataclasses.Field[Any]"]  # Any: as above


class _Factory:
    """Stands in a signature for a default that is made for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _dataclass(
    *,
    eq: bool = True,
    frozen: bool = False,
    repr: bool = True,
    slots: bool = False,
) -> Callable[[_Kind], _Kind]:
    """As `dataclasses.dataclass` with these parameters; ``__init__`` takes every field in order."""

    def decorate(kind: _Kind) -> _Kind:
        own, params = _described(kind)
        params.eq, params.frozen, params.repr = eq, frozen, repr
        fields = _inherited(kind, frozen=frozen) | own
        _check_order(fields)
        init = _Init(fields, frozen=frozen)
        methods: dict[str, object] = {"__init__": init, "__match_args__": tuple(fields)}
        methods["__replace__"] = dataclasses.replace
        if repr:
            methods["__repr__"] = _repr_of(fields)
        if eq:
            methods |= _comparison(fields, frozen=frozen)
        if frozen:
            methods |= _FROZEN
        if frozen and slots:
            methods |= {"__getstate__": _get_state, "__setstate__": _set_state}
        methods = {name: m for name, m in methods.items() if not _defines(kind, name)}
        methods |= {"__dataclass_fields__": fields, "__dataclass_params__": params}
        init.kind = _slotted(kind, own, methods) if slots else _extended(kind, own, methods)
        return init.kind

    return decorate


def _described(kind: _Kind) -> tuple[dict[str, dataclasses.Field[Any]], Any]:
    """A class's own fields, and parameters to be filled in, as the standard decorator sees them.

    Notes
    -----
    It is shown a class that has nothing but the fields, and asked for no methods.
    """
    annotations = inspect.get_annotations(kind)
    contents = {name: kind.__dict__[name] for name in annotations if name in kind.__dict__}
    contents |= {"__annotations__": annotations, "__module__": kind.__module__}
    contents["__doc__"] = "Fields."  # or the decorator would work one out
    bare = dataclasses.dataclass(init=False, repr=False, eq=False, match_args=False)
    made: Any = bare(type(kind.__name__, (), contents))
    return {field.name: field for field in dataclasses.fields(made)}, made.__dataclass_params__


def _inherited(kind: _Kind, *, frozen: bool) -> dict[str, dataclasses.Field[Any]]:
    """The fields of a class's bases, which are frozen all or none."""
    fields: dict[str, dataclasses.Field[Any]] = {}
    for base in kind.__mro__[:0:-1]:
        if "__dataclass_fields__" in base.__dict__:
            if base.__dict__["__dataclass_params__"].frozen != frozen:
                raise TypeError(f"of {kind.__name__} and {base.__name__} one is frozen only")
            fields |= {field.name: field for field in dataclasses.fields(base)}
    return fields


def _check_order(fields: _Fields) -> None:
    """Check what the standard decorator checks when it writes ``__init__``."""
    missing, default = dataclasses.MISSING, ""
    for name, field in fields.items():
        if not field.init or field.kw_only:
            raise TypeError(f"the field {name!r} has to be an argument in order")
        if not (field.default is missing and field.default_factory is missing):
            default = name
        elif default:
            raise TypeError(f"field {name!r} has no default, but {default!r} before it has one")


def _defines(kind: _Kind, name: str) -> bool:
    """Whether a class has a method of its own; None as a hash comes from defining ``__eq__``."""
    found = kind.__dict__.get(name, _FACTORY)
    return found is not _FACTORY and not (name == "__hash__" and found is None)


def _extended(kind: _Kind, own: _Fields, methods: Mapping[str, object]) -> _Kind:
    """The class itself with methods, and with plain defaults in the place of fields."""
    for name, field in own.items():
        if isinstance(kind.__dict__.get(name), dataclasses.Field):
            if field.default is dataclasses.MISSING:
                delattr(kind, name)
            else:
                setattr(kind, name, field.default)
    for name, method in methods.items():
        setattr(kind, name, method)
    return kind


def _slotted(kind: _Kind, own: _Fields, methods: Mapping[str, object]) -> _Kind:
    """The class made again with a slot for each field, which cannot be added later."""
    left_out = {*own, "__dict__", "__weakref__"}
    contents = {name: value for name, value in kind.__dict__.items() if name not in left_out}
    inherited = {slot for base in kind.__mro__[1:] for slot in base.__dict__.get("__slots__", ())}
    contents["__slots__"] = tuple(name for name in own if name not in inherited)
    contents["__qualname__"] = kind.__qualname__
    made: _Kind = type(kind)(  # type: ignore[misc]  # its metaclass
        kind.__name__, kind.__bases__, {**contents, **methods}
    )
    return made


class _Init:
    """Becomes the class's ``__init__`` when that is first asked for."""

    def __init__(self, fields: _Fields, *, frozen: bool) -> None:
        self._fields = fields
        self._frozen = frozen
        self.kind: _Kind = object

    def __get__(self, instance: object, owner: _Kind | None = None) -> Any:  # Any: a method
        made = _init_of(self.kind, self._fields, frozen=self._frozen)
        type.__setattr__(self.kind, "__init__", made)
        return made.__get__(instance, owner)


def _init_of(kind: _Kind, fields: _Fields, *, frozen: bool) -> Any:  # Any: a function
    """The ``__init__`` of a class, written for its fields."""
    # Names that no field has.
    scope: dict[str, Any] = {"__set": object.__setattr__, "__factory": _FACTORY}
    item = "__self" if "self" in fields else "self"
    parameters, lines = [item], ["pass"]
    for name, field in fields.items():
        value = name
        parameters.append(name)
        if field.default_factory is not dataclasses.MISSING:
            scope[f"__make_{name}"] = field.default_factory
            parameters[-1] += "=__factory"
            value = f"__make_{name}() if {name} is __factory else {name}"
        elif field.default is not dataclasses.MISSING:
            scope[f"__default_{name}"] = field.default
            parameters[-1] += f"=__default_{name}"
        lines.append(f"__set({item}, {name!r}, {value})" if frozen else f"{item}.{name} = {value}")
    if hasattr(kind, "__post_init__"):
        lines.append(f"{item}.__post_init__()")
    text = f"def make({', '.join(scope)}):\n def __init__({', '.join(parameters)}):\n  "
    text += "\n  ".join(lines) + "\n return __init__"
    # In the module's scope, where those who ask for the types of parameters look for them.
    made_here: dict[str, Any] = {}
    home = getattr(sys.modules.get(kind.__module__), "__dict__", {})
    exec(text, home, made_here)  # of the file there are only the names of fields in it
    made = made_here["make"](**scope)
    made.__qualname__ = f"{kind.__qualname__}.__init__"
    made.__module__ = kind.__module__
    made.__annotations__ = {name: f.type for name, f in fields.items()} | {"return": None}
    return made


def _repr_of(fields: _Fields) -> Callable[[object], str]:
    """The ``__repr__`` of fields."""
    names = [name for name, field in fields.items() if field.repr]

    def text(self: object) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({values})"

    return recursive_repr()(text)


def _comparison(fields: _Fields, *, frozen: bool) -> dict[str, object]:
    """The ``__eq__`` and ``__hash__`` of fields; what can change has no hash."""
    compared = _values_of([name for name, field in fields.items() if field.compare])
    hashed = _values_of([n for n, f in fields.items() if (f.compare if f.hash is None else f.hash)])

    def are_equal(self: object, other: object) -> Any:  # Any: or NotImplemented
        return compared(self) == compared(other) if type(other) is type(self) else NotImplemented

    def number(self: object) -> int:
        return hash(hashed(self))

    return {"__eq__": are_equal, "__hash__": number if frozen else None}


def _values_of(names: list[str]) -> Callable[[object], Any]:  # Any: a tuple of anything
    """What reads some fields of an object, always as a tuple, which looks for identity first."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda item: tuple(getattr(item, name) for name in names)


def _refuse_change(self: object, name: str, value: object = None) -> None:
    """Refuse to set or delete a field, or anything of an object that has fields only."""
    kind = type(self)
    if "__dataclass_fields__" in kind.__dict__ or name in getattr(kind, "__dataclass_fields__", ()):
        raise dataclasses.FrozenInstanceError(f"cannot change field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_deletion(self: object, name: str) -> None:
    """Refuse to delete as `_refuse_change` refuses to set."""
    if name in getattr(type(self), "__dataclass_fields__", ()):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _get_state(self: Any) -> list[object]:  # Any: a dataclass
    """What a pickle holds of an object."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:  # Any: as above
    """Fill an object from a pickle."""
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_FROZEN: dict[str, object] = {"__setattr__": _refuse_change, "__delattr__": _refuse_deletion}

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(kind=None, /, **options):
        """Decorate a class; with or without options."""
        return _dataclass(**options) if kind is None else _dataclass(**options)(kind)
