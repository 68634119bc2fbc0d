"""Names of what is kept: digests of everything that it depends on."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import importlib.util
import logging
import os
import sys
import time
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from armpy.graph import SubgraphView, Value
from armpy_numba_acc.codegen.isa import Isa
from armpy_numba_acc.kernels import Kernel

_IMPORTED_NS = time.time_ns()
"""About when the code of this process was read."""

_SOURCES = ("armpy_numba_acc", "armpy.ops", "armpy.graph", "armpy.types", "armpy.tensor")
"""Packages and modules that decide on what comes out."""

_DISTRIBUTIONS = ("armpy", "numba", "llvmlite", "numpy")

_PLAIN = frozenset((type(None), bool, int, float, str))

_log = logging.getLogger("armpy.NumbaAcc")


def object_key(kernel: Kernel, isa: Isa) -> str:
    """Key of a kernel's object code; empty if it cannot be kept."""
    return _key("object", kernel, isa)


def program_key(view: SubgraphView, isa: Isa, num_threads: int) -> str:
    """Key of a region's program; empty if it cannot be kept.

    Parameters
    ----------
    view : SubgraphView
    isa : Isa
    num_threads : int
        With `isa`, all that the lowering is told besides the region.
    """
    return _key("program", view, isa, num_threads)


def is_current() -> bool:
    """Whether the sources on disk are those that this process has read.

    Notes
    -----
    A process that goes on while its code is exchanged must keep nothing under the new code's name.
    """
    try:
        return _last_change_ns() <= _IMPORTED_NS
    except OSError:
        return False


def _key(*parts: object) -> str:
    """Digest of some parts, the code, and what the code uses."""
    origin = _origin()
    if not origin:
        return ""
    digest = hashlib.sha256(origin.encode())
    try:
        for part in parts:
            _Feed(digest).value(part)
    except _UnknownError as error:
        _log.info("nothing is kept: %s", error)
        return ""
    return digest.hexdigest()[:32]


@cache
def _origin() -> str:
    """Digest of the sources and versions; empty if it cannot be told."""
    digest = hashlib.sha256(sys.version.encode())
    for name in _DISTRIBUTIONS:
        digest.update(f"{name} {_version(name)}\0".encode())
    try:
        files = list(_source_files())
        for path in files:
            contents = path.read_bytes()
            digest.update(f"{path.name} {len(contents)}\0".encode() + contents)
    except OSError as error:
        _log.info("nothing is kept on disk: %s", error)
        return ""
    if not files or not is_current():
        _log.info("nothing is kept on disk: the sources are not those that run")
        return ""
    return digest.hexdigest()


def _version(distribution: str) -> str:
    """A distribution's version; empty if it is not installed as one."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _source_files() -> Iterator[Path]:
    """Files of `_SOURCES`, in an order of their own."""
    for name in _SOURCES:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            continue
        if not spec.submodule_search_locations:
            yield Path(spec.origin)
            continue
        for folder, folders, files in os.walk(Path(spec.origin).parent):
            folders[:] = sorted(f for f in folders if f != "__pycache__")
            yield from (Path(folder, file) for file in sorted(files) if file.endswith(".py"))


def _last_change_ns() -> int:
    """When a source was changed, or put where it is, last."""
    infos = (os.stat(path) for path in _source_files())
    return max((max(info.st_mtime_ns, info.st_ctime_ns) for info in infos), default=0)


class _UnknownError(Exception):
    """Something whose contents cannot be told from its bytes."""


class _Feed:
    """Feeds values to a digest so that different ones never look alike."""

    def __init__(self, digest: Any) -> None:  # Any: hashlib's class has no name
        self._digest = digest
        self._numbers: dict[Value, int] = {}

    def _words(self, *words: str) -> None:
        """Texts, each told from the next one."""
        for word in words:
            data = word.encode(errors="surrogatepass")
            self._digest.update(f"{len(data)}:".encode() + data)

    def value(self, value: object) -> None:
        """Any value that attributes and infos consist of.

        Raises
        ------
        _UnknownError
            If it is of another kind.
        """
        kind = type(value)
        if isinstance(value, SubgraphView):
            self._view(value)
        elif isinstance(value, enum.Enum):
            self._words(kind.__qualname__, value.name)
        elif kind in _PLAIN:
            self._words(kind.__name__, repr(value))
        elif isinstance(value, (tuple, list)):
            self._sequence(value)
        elif isinstance(value, (np.ndarray, np.generic)):
            self._array(np.asarray(value))
        elif dataclasses.is_dataclass(value):
            self._words(kind.__module__, kind.__qualname__)
            for field in dataclasses.fields(value):
                self._words(field.name)
                self.value(getattr(value, field.name))
        else:
            raise _UnknownError(f"what a {kind.__name__} holds cannot be told")

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
        if array.dtype.hasobject:
            raise _UnknownError("an array holds objects")
        self._words("array", array.dtype.str, str(array.shape))
        self._digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)

    def _view(self, view: SubgraphView) -> None:
        """A region: layers with attributes, tensors, constants, and how all is joined.

        Notes
        -----
        Names are a part of it, because programs tell people which layers they compute.
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
            elif value in self._numbers:
                self._words(str(self._numbers[value]))
            else:
                self._words("new", value.name)
                self._numbers[value] = len(self._numbers)
                self.value(value.info)
                self.value(value.data)
