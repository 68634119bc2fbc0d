"""Names of what is kept: digests of everything that it depends on."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import hashlib
import importlib.util
import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from armpy import __version__
from armpy.graph import Graph, SubgraphView, Value
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.store.settings import disk_entries

_IMPORTED_NS = time.time_ns()
"""About when the code of this process was read."""

_SOURCES = (
    "armpy_numba_acc",
    "armpy.ops",
    "armpy.graph",
    "armpy.numerics",
    "armpy.types",
    "armpy.tensor",
)
"""Packages and modules that decide on what comes out."""

_DISTRIBUTIONS = ("armpy", "numba", "llvmlite", "numpy")

_IMPORTED_VERSIONS = {"armpy": __version__, "numpy": np.__version__}

_PLAIN = frozenset((type(None), bool, int, float, str))

_log = logging.getLogger("armpy.NumbaAcc")


def object_key(kernel: Kernel, isa: Isa) -> str:
    """Key of a kernel's object code; empty if it cannot be kept."""
    return _key("object", kernel, isa.strict())


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


def tuned_key(key: str, measured: Mapping[str, tuple[int, ...]]) -> str:
    """Key of a region's program with measured answers, from the one without any."""
    answers = repr([(name, [*map(int, option)]) for name, option in sorted(measured.items())])
    return hashlib.sha256(f"{key} {answers}".encode()).hexdigest()[:32]


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
        digest.update(f"{name} {package_version(name)}\0".encode())
    try:
        files = [(path, os.stat(path)) for path in _source_files()]
        if not files or max(map(_changed_ns, (info for _, info in files))) > _IMPORTED_NS:
            _log.info("nothing is kept on disk: the sources are not those that run")
            return ""
        digest.update(_sources_digest(files))
    except OSError as error:
        _log.info("nothing is kept on disk: %s", error)
        return ""
    return digest.hexdigest()


def _sources_digest(files: Sequence[tuple[str, os.stat_result]]) -> bytes:
    """Digest of the sources, which is remembered as long as no file is touched."""
    states = [
        f"{path} {info.st_ino} {info.st_size} {info.st_mtime_ns} {info.st_ctime_ns}\0"
        for path, info in files
    ]
    key = hashlib.sha256("".join(states).encode(errors="surrogatepass")).hexdigest()[:32]
    entries = disk_entries()
    if entries is not None and (parts := entries.read("sources", key)):
        return bytes(parts[0])
    digest = hashlib.sha256()
    for path, _ in files:
        contents = Path(path).read_bytes()
        digest.update(f"{os.path.basename(path)} {len(contents)}\0".encode() + contents)
    if entries is not None and is_current():
        entries.write("sources", key, [digest.digest()], f"{len(files)} files of armpy's code")
    return digest.digest()


def package_version(distribution: str) -> str:
    """What tells a package's version, without importing it; empty if it is not there."""
    if distribution in _IMPORTED_VERSIONS:
        return _IMPORTED_VERSIONS[distribution]
    spec = importlib.util.find_spec(distribution)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for file in ("_version.py", "__init__.py"):
            with contextlib.suppress(OSError):
                return Path(folder, file).read_text("utf-8")
    return ""


def _source_files() -> Iterator[str]:
    """Files of `_SOURCES`, in an order of their own."""
    for name in _SOURCES:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            continue
        if not spec.submodule_search_locations:
            yield spec.origin
            continue
        for folder, folders, files in os.walk(os.path.dirname(spec.origin)):
            folders[:] = sorted(f for f in folders if f != "__pycache__")
            yield from (
                os.path.join(folder, file) for file in sorted(files) if file.endswith(".py")
            )


def _last_change_ns() -> int:
    """When a source was changed, or put where it is, last."""
    return max((_changed_ns(os.stat(path)) for path in _source_files()), default=0)


def _changed_ns(info: os.stat_result) -> int:
    """When a file was changed, or put where it is."""
    return max(info.st_mtime_ns, info.st_ctime_ns)


@cache
def _field_names(kind: type[Any]) -> tuple[str, ...]:  # Any: a dataclass
    """Names of a class's fields."""
    return tuple(field.name for field in dataclasses.fields(kind))


class _UnknownError(Exception):
    """Something whose contents cannot be told from its bytes."""


class _Feed:
    """Feeds values to a digest so that different ones never look alike."""

    def __init__(self, digest: Any) -> None:  # Any: hashlib's class has no name
        self._digest = digest
        self._numbers: dict[Value, int] = {}

    def _words(self, *words: str) -> None:
        """Texts, each told from the next one."""
        texts = "".join([f"{len(word)}:{word}" for word in words])
        self._digest.update(texts.encode(errors="surrogatepass"))

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
        elif isinstance(value, Graph):
            self._view(SubgraphView(value.layers, value.inputs, value.outputs))
        elif isinstance(value, enum.Enum):
            self._words(kind.__qualname__, value.name)
        elif kind in _PLAIN:
            self._words(kind.__name__, repr(value))
        elif isinstance(value, (tuple, list)):
            self._sequence(value)
        elif isinstance(value, (np.ndarray, np.generic)):
            self._array(np.asarray(value))
        elif dataclasses.is_dataclass(value):
            names = _field_names(kind)  # type: ignore[arg-type]  # classes have hashes
            self._words(kind.__module__, kind.__qualname__, str(len(names)), *names)
            for name in names:
                self.value(getattr(value, name))
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
