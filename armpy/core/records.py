"""Records: frozen dataclasses whose methods are there already, and not generated for each class.

Notes
-----
A dataclass takes up to a millisecond to define, and `dataclasses` as long to import. Records are
for the few classes that every start defines; whatever knows dataclasses takes them for such.
"""

from __future__ import annotations

import sys
from functools import cache
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform

from armpy.core import late

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(kind: type[T]) -> type[T]:
    """Make a frozen dataclass of a class whose annotations are its fields, two at least.

    Parameters
    ----------
    kind : type
        With ``__slots__``, it needs an ``__init__`` that calls `set_field`, as slots have no
        defaults. What else it defines itself stays as well.
    """
    names = tuple(dict.fromkeys((*getattr(kind, "__match_args__", ()), *kind.__annotations__)))
    made = {"__match_args__": names, "_record_values": attrgetter(*names)}
    made |= {name: _OfDataclass(kind, name) for name in _ASKED}
    own = vars(kind)
    for name, value in (_METHODS | made).items():
        # Python gives a class with an `__eq__` alone None for a hash.
        if own.get(name) is None:
            setattr(kind, name, value)
    own["__init__"].__annotations__["return"] = None  # as dataclasses have it, and not its name
    return kind


def changed(one: T, **fields: object) -> T:
    """The same record with other fields; what it checks when it is made is checked again."""
    whole: Any = one  # Any: a record, of whatever kind
    values = {name: getattr(one, name) for name in whole.__match_args__}
    return type(one)(**{**values, **fields})


@cache
def declared_types(kind: Any) -> dict[str, Any]:  # Any: types have no common type
    """Declared type of each field of a record or another dataclass; none of what is neither."""
    if "_record_values" in vars(kind):  # without making a dataclass of it
        texts = _annotations(kind)
        return {name: _evaluated(kind, name, texts[name]) for name in kind.__match_args__}
    if not hasattr(kind, "__dataclass_fields__"):
        return {}
    return {field.name: _evaluated(kind, field.name, field.type) for field in late.fields(kind)}


def _annotations(kind: type) -> dict[str, Any]:  # Any: as above
    """What is written of a class's fields, and of those that it inherits."""
    found: dict[str, Any] = {}  # Any: as above
    for base in reversed(kind.__mro__):
        found |= getattr(base, "__annotations__", {})
    return found


def _evaluated(kind: type, name: str, declared: Any) -> Any:  # Any: as above
    """A field's type, which most modules write as text, without looking at all other hints."""
    if not isinstance(declared, str):
        return declared
    homes = (base for base in kind.__mro__ if name in getattr(base, "__annotations__", ()))
    return eval(declared, vars(sys.modules[next(homes).__module__]))


set_field = object.__setattr__
"""Sets a field of a record that is being made."""


_ASKED = ("__dataclass_fields__", "__dataclass_params__")
"""What tells a dataclass."""


class _OfDataclass:
    """Attribute that the dataclass of the same fields has, made when somebody asks."""

    def __init__(self, kind: type, name: str) -> None:
        self._kind = kind
        self._name = name

    def __get__(self, one: object, kind: type) -> Any:  # Any: whatever dataclasses keep
        made = self._kind
        types = _annotations(made)
        init: Any = vars(made)["__init__"]
        behind = reversed(init.__defaults__ or ())
        defaults = dict(zip(reversed(types), behind, strict=False))
        if init is _init:
            defaults = {name: vars(made)[name] for name in types if name in vars(made)}
        fields = [
            (name, text, late.field(default=defaults[name])) if name in defaults else (name, text)
            for name, text in types.items()
        ]
        whole = late.make_dataclass(made.__name__, fields, frozen=True)
        for name in _ASKED:
            setattr(made, name, vars(whole)[name])
        return getattr(made, self._name)


def _init(self: Any, *values: object, **named: object) -> None:  # Any: of whatever kind
    names = self.__match_args__
    fields = dict(zip(names, values, strict=False))
    others = named.keys() - set(names) | fields.keys() & named.keys()
    if len(values) > len(names) or others:
        raise TypeError(f"{type(self).__name__} has the fields {', '.join(names)}")
    fields |= named
    missing = [name for name in names if name not in fields and not hasattr(type(self), name)]
    if missing:
        raise TypeError(f"{type(self).__name__} needs {', '.join(missing)}")
    self.__dict__.update(fields)
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def _repr(self: Any) -> str:  # Any: as above
    values = zip(self.__match_args__, self._record_values(self), strict=True)
    return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in values)})"


def _eq(self: Any, other: Any) -> Any:  # Any: as above; NotImplemented has no type
    if type(other) is not type(self):
        return NotImplemented
    return self._record_values(self) == self._record_values(other)


def _hash(self: Any) -> int:  # Any: as above
    return hash(self._record_values(self))


def _reduce(self: Any) -> tuple[object, ...]:  # Any: as above
    return type(self), self._record_values(self)


def _refuse(self: object, name: str, *_: object) -> NoReturn:
    raise late.FrozenInstanceError(f"cannot assign to field {name!r}")


_METHODS = {
    "__init__": _init,
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__reduce__": _reduce,
    "__replace__": changed,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
}
