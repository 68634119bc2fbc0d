"""Arguments checked against a function's annotations, as ONNX Runtime's binding checks them."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from inspect import Parameter, signature
from numbers import Real
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

_P = ParamSpec("_P")
_T = TypeVar("_T")

_LEAST, _LARGEST = -(2**63), 2**64 - 1


def checked(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Check the arguments of each call by the annotations of the function.

    Raises
    ------
    TypeError
        By the new function, if an argument does not have the type of its annotation: ONNX
        Runtime's class for the arguments of its compiled functions.
    """
    parameters = cache(lambda: _kinds(function))
    bind = signature(function).bind

    @wraps(function)
    def call(*args: _P.args, **keywords: _P.kwargs) -> _T:
        kinds = parameters()
        for name, value in bind(*args, **keywords).arguments.items():
            kind, is_variadic = kinds[name]
            for part in value if is_variadic else (value,):
                if not _is_of(part, kind):
                    expected = getattr(kind, "__name__", None) if type(kind) is type else kind
                    raise TypeError(
                        f"{function.__name__}(): incompatible function arguments. '{name}' has"
                        f" the wrong type. Expected {expected}; got {part!r}."
                    )
        return function(*args, **keywords)

    return call


def _kinds(function: Callable[..., object]) -> dict[str, tuple[Any, bool]]:
    """The type of each parameter, and whether it stands for any number of arguments."""
    hints = get_type_hints(function)
    return {
        name: (hints.get(name, Any), parameter.kind is Parameter.VAR_POSITIONAL)
        for name, parameter in signature(function).parameters.items()
    }


def _is_of(value: object, kind: Any) -> bool:  # Any: an annotation
    """Whether a value has the type of an annotation: numbers are also truth values."""
    origin, arguments = get_origin(kind) or kind, get_args(kind)
    if alias := getattr(origin, "__value__", None):  # such as NumPy's NDArray since 2.5
        return _is_of(value, alias)
    if origin in (Any, object) or isinstance(origin, TypeVar):
        return True
    if origin in (Union, types.UnionType):
        return any(_is_of(value, option) for option in arguments)
    if origin is int:
        return hasattr(value, "__index__") and _is_in_range(value)
    if origin is bool:
        return value is None or isinstance(value, Real | np.bool_)
    if origin is Sequence:
        is_sequence = hasattr(value, "__len__") and hasattr(value, "__getitem__")
        if not is_sequence or isinstance(value, str | bytes | Mapping):
            return False
        return all(_is_of(item, arguments[0]) for item in value)  # type: ignore[attr-defined]
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _is_of(key, arguments[0]) and _is_of(item, arguments[1]) for key, item in value.items()
        )
    return callable(value) if origin is Callable else isinstance(value, origin)


def _is_in_range(value: Any) -> bool:  # Any: has __index__
    """Whether an integer fits into 64 bits; arrays that are none, as False."""
    try:
        return bool(_LEAST <= value.__index__() <= _LARGEST)
    except TypeError:
        return False
