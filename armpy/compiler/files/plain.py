"""Records as JSON and back: which types there are is said by declarations, never by a file."""

from __future__ import annotations

import base64
import binascii
import enum
import math
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

from armpy.core.field_types import field_types
from armpy.errors import ArmpyError, ParserError

T = TypeVar("T")

_LARGEST = 2**63
_ODD_FLOATS = ("nan", "inf", "-inf")


def plain(value: object) -> object:
    """Convert a record or an attribute to values that JSON can hold."""
    # Nearly all values are numbers of exactly these types, and abstract classes are slow to ask.
    if type(value) is int:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else str(value)
    # In front of numbers, as a truth value is an Integral.
    if value is None or isinstance(value, (bool, str)):
        return value
    # In front of Enum, as flags together have no single name; both in front of IntEnum's numbers.
    if isinstance(value, enum.Flag):
        return value.value
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        # JSON has no infinity and no NaN.
        return number if math.isfinite(number) else str(number)
    # An error is of the process that it was raised in; its text stands beside it.
    if isinstance(value, ArmpyError):
        return None
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    kind: Any = type(value)  # Any: as `field_types` takes it
    if fields := field_types(kind):
        return {name: plain(getattr(value, name)) for name in fields}
    raise TypeError(type(value).__name__)


class PlainReader:
    """Makes records and attributes from what JSON holds."""

    def __init__(
        self,
        # Makes objects declared as one of these types.
        special: Mapping[object, Callable[[object, str], object]] | None = None,
    ) -> None:
        self._special = special or {}

    def read(self, kind: type[T], value: object, where: str) -> T:
        """Make a record of a type."""
        return self.value(kind, value, where)  # type: ignore[return-value]  # as declared

    def value(self, declared: Any, value: object, where: str) -> object:  # Any: a type, or a form
        """Make something of a declared type; errors as for `read`."""
        if declared in self._special:
            return self._special[declared](value, where)
        origin, arguments = typing.get_origin(declared), typing.get_args(declared)
        if declared is Any:
            return value
        if origin in (types.UnionType, typing.Union):
            return self._one_of(arguments, value, where)
        if origin is tuple:
            return self._tuple(arguments, value, where)
        if origin in (dict, Mapping):
            items = _expect(dict, value, where).items()
            return {name: self.value(arguments[1], item, f"{where}.{name}") for name, item in items}
        if isinstance(declared, type) and field_types(declared):
            return self._record(declared, value, where)
        return _simple(declared, value, where)

    def _one_of(self, kinds: tuple[Any, ...], value: object, where: str) -> object:
        """Something of the first type that it fits."""
        if value is None and types.NoneType in kinds:
            return None
        kinds = tuple([kind for kind in kinds if kind is not types.NoneType])
        if len(kinds) == 1:  # whose own error says more
            return self.value(kinds[0], value, where)
        for kind in kinds:
            try:
                return self.value(kind, value, where)
            except ParserError:
                continue
        raise _wrong(" or ".join(map(_name, kinds)), value, where)

    def _tuple(self, kinds: tuple[Any, ...], value: object, where: str) -> object:
        """A tuple of given length, or of any."""
        items = _expect(list, value, where)
        if len(kinds) == 2 and kinds[1] is Ellipsis:
            kinds = (kinds[0],) * len(items)
        if len(items) != len(kinds):
            raise _wrong(f"{len(kinds)} items", value, where)
        pairs = enumerate(zip(kinds, items, strict=True))
        return tuple([self.value(kind, item, f"{where}[{i}]") for i, (kind, item) in pairs])

    def _record(self, kind: Any, value: object, where: str) -> object:  # Any: a dataclass
        """An object of a dataclass, whose own checks apply."""
        fields = _expect(dict, value, where)
        declared = field_types(kind)
        if fields.keys() != declared.keys():
            raise _wrong(f"an object with {', '.join(declared)}", list(fields), where)
        values = {n: self.value(kinds, fields[n], f"{where}.{n}") for n, kinds in declared.items()}
        try:
            return kind(**values)
        except ArmpyError as error:
            raise ParserError(f"this cannot be: {error}", where=where) from error


def _simple(kind: Any, value: object, where: str) -> object:  # Any: a class
    """A number, a text, bytes, or a member of an enumeration."""
    if kind in (None, type(None)) and value is None:
        return None
    if kind is bool or kind is str:
        return _expect(kind, value, where)
    if kind is int:
        number: int = _expect(int, value, where)
        # Python's integers have no end, but the arrays that are made of them have.
        if -_LARGEST <= number < _LARGEST:
            return number
    elif kind is float:
        if type(value) in (int, float) or value in _ODD_FLOATS:
            return _float(value, where)
    elif kind is bytes:
        return _bytes(_expect(str, value, where), where)
    elif isinstance(kind, type) and issubclass(kind, enum.Flag):
        if type(value) is int and 0 <= value <= sum(member.value for member in kind):
            return kind(value)
    elif isinstance(kind, type) and issubclass(kind, enum.Enum) and type(value) is str:
        if value in kind.__members__:
            return kind[value]
        raise _wrong("one of " + ", ".join(kind.__members__), value, where)
    raise _wrong(_name(kind), value, where)


def _float(value: object, where: str) -> float:
    """A number that may be infinite or none."""
    try:
        return float(value)  # type: ignore[arg-type]  # a number or a text
    except OverflowError:
        raise _wrong("float", "an integer too large for one", where) from None


def _bytes(text: str, where: str) -> bytes:
    try:
        # Otherwise characters that are none of base64's would be skipped.
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _wrong("base64", text, where) from None


def read_key(value: object, where: str) -> Hashable:
    """The key of a variable: text, an integer, None, or a tuple of these."""
    if isinstance(value, list):
        return tuple([read_key(item, where) for item in value])
    if value is not None and type(value) not in (str, int):
        raise _wrong("text, integers, null, or lists of them", value, where)
    return value


def _expect(kind: type[T], value: object, where: str) -> T:
    """Check that a value is of exactly a type: a truth value is not a number."""
    if type(value) is not kind:
        raise _wrong(kind.__name__, value, where)
    return value


def _name(kind: object) -> str:
    """A type for messages."""
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _wrong(expected: str, value: object, where: str) -> ParserError:
    """The error for something of another form."""
    text = repr(value)
    shown = text if len(text) <= 80 else f"{text[:80]}..."
    return ParserError("the file is damaged", where=where, expected=expected, actual=shown)
