"""Digests of what compiled code depends on: parts of networks, options, anything made of fields."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from armpy.graph import Graph, SubgraphView, Value

_PLAIN = frozenset((type(None), bool, int, float, str, bytes))


class UnknownContentsError(Exception):
    """An object whose contents cannot be identified by its fields."""


def digest_of(
    # Subgraphs, graphs, arrays, numbers, texts, enumerations, dataclasses, and sequences and
    # mappings of these.
    *parts: object,
    origin: bytes = b"",  # what comes before them
) -> bytes:
    """Digest of some values, with everything that they consist of.

    Returns a SHA-256. Equal ones mean equal parts: constants are a part with all of their elements,
    and layers' names, which programs show to people.
    """
    digest = hashlib.sha256(origin)
    for part in parts:
        _DigestWriter(digest).value(part)
    return digest.digest()


@cache
def _field_names(kind: type[Any]) -> tuple[str, ...]:  # Any: a dataclass
    """Names of a class's fields."""
    return tuple(field.name for field in dataclasses.fields(kind))


class _DigestWriter:
    """Feeds values to a digest so that different ones never look alike."""

    def __init__(self, digest: Any) -> None:  # Any: hashlib's class has no name
        self._digest = digest
        self._numbers: dict[Value, int] = {}

    def _words(self, *words: str) -> None:
        """Add texts, each separated from the next one."""
        # With lengths, so that no two lists of texts run together to the same bytes.
        texts = "".join([f"{len(word)}:{word}" for word in words])
        self._digest.update(texts.encode(errors="surrogatepass"))

    def value(self, value: object) -> None:
        """Any value that attributes and infos consist of."""
        kind = type(value)
        if isinstance(value, SubgraphView):
            self._view(value)
        elif isinstance(value, Graph):
            self._view(SubgraphView(value.layers, value.inputs, value.outputs))
        elif isinstance(value, enum.Enum):
            self._words(kind.__qualname__, value.name)
        elif kind in _PLAIN:
            self._words(kind.__name__, repr(value))
        elif isinstance(value, (tuple, list)):
            self._sequence(value)
        elif isinstance(value, Mapping):
            self._words("mapping", str(len(value)))
            # The order in which a mapping was filled says nothing about its contents.
            for name in sorted(value):
                self._words(name)
                self.value(value[name])
        elif isinstance(value, (np.ndarray, np.generic)):
            self._array(np.asarray(value))
        elif dataclasses.is_dataclass(value):
            names = _field_names(kind)  # type: ignore[arg-type]  # classes have hashes
            self._words(kind.__module__, kind.__qualname__, str(len(names)), *names)
            for name in names:
                self.value(getattr(value, name))
        else:
            # An error and no guess: a wrong hit would run the wrong code.
            raise UnknownContentsError(f"the contents of a {kind.__name__} cannot be identified")

    def _sequence(self, items: tuple[object, ...] | list[object]) -> None:
        """A sequence's items; thousands of scales and zero points are quicker at once."""
        kinds = {type(item) for item in items}
        self._words(type(items).__name__, str(len(items)))
        if kinds == {float}:
            self._words("floats")
            self._array(np.array(items))
        elif kinds == {int}:
            self._words(repr(items))
        else:
            for item in items:
                self.value(item)

    def _array(self, array: np.ndarray[Any, Any]) -> None:  # Any: of every shape and type
        """An array's elements."""
        # Its bytes are addresses, which differ from process to process.
        if array.dtype.hasobject:
            raise UnknownContentsError("an array holds objects")
        self._words("array", array.dtype.str, str(array.shape))
        self._digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)

    def _view(self, view: SubgraphView) -> None:
        """A region: layers with attributes, tensors, constants, and how all is joined.

        Names are a part of it, because programs report the names of the layers they compute.
        """
        self._words("region", str(len(view.layers)))
        self._tensors(view.inputs)
        for layer in view.layers:
            self._words(layer.name)
            self.value(layer.operation)
            self._tensors(layer.inputs)
            self._tensors(layer.outputs)
        self._tensors(view.outputs)

    def _tensors(self, values: tuple[Value | None, ...]) -> None:
        """Tensors: everything at the first time, then a number."""
        self._words("tensors", str(len(values)))
        for value in values:
            if value is None:
                self._words("none")
            # Once in full: a constant may be large, and several layers may read it.
            elif value in self._numbers:
                self._words(str(self._numbers[value]))
            else:
                self._words("new", value.name)
                self._numbers[value] = len(self._numbers)
                self.value(value.info)
                self.value(value.data)
