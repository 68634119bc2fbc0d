"""Names of stored files: digests of everything that they depend on."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from armpy import __version__
from armpy.graph import SubgraphView
from armpy.store.digests import UnknownContentsError, digest_of
from armpy_numba_acc import kernels
from armpy_numba_acc.machine.cost_model.model import MachineModel
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.store.modules import files_behind, modules_in
from armpy_numba_acc.store.settings import disk_entries

_IMPORTED_NS = time.time_ns()
"""About when the code of this process was read."""

_SOURCES = (
    "armpy_numba_acc",
    "armpy_reference",
    "armpy.ops",
    "armpy.graph",
    "armpy.core.numerics",
    "armpy.core.quantization",
    "armpy.core.symbolic",
    "armpy.types",
    "armpy.tensor",
)
"""Packages and modules that decide on what comes out."""

_DISTRIBUTIONS = ("numba", "llvmlite", "numpy")
"""What translates and compiles, and computes the tables of kernels."""

_GENERATOR = "armpy_numba_acc.llvm.build"
"""The module that compiles kernels."""

_IMPORTED_VERSIONS = {"numpy": np.__version__}

_log = logging.getLogger("armpy.NumbaAcc")


def object_key(kernel: Kernel, isa: Isa) -> str:
    """Key of a kernel's object code, or of what kernels share; empty if it cannot be kept.

    Other parts of armpy may change without another key: `code_digest` says what it depends on.
    """
    code = code_digest(kernel.name)
    return _digest(("object", kernel, isa.strict()), f"{code} {_tools()}") if code else ""


def region_digest(view: SubgraphView) -> str:
    """Digest of a region and of the code that lowers it; empty if nothing can be kept."""
    origin = _origin()
    return _digest(("program", view), origin) if origin else ""


def program_key(region: str, isa: Isa, num_threads: int, model: MachineModel | None = None) -> str:
    """Key of a region's program; empty if it cannot be kept.

    Parameters
    ----------
    region
        `region_digest`.
    model
        With `isa` and `num_threads`, all that the lowering receives besides the region. If it is
        left out, the key is that of results that do not depend on the figures.
    """
    figures = "" if model is None else model.digest
    text = f"{region} {isa} {num_threads} {figures}"
    return hashlib.sha256(text.encode()).hexdigest()[:32] if region else ""


def tuned_key(key: str, measured: Mapping[str, tuple[int, ...]]) -> str:
    """Key of a region's program with measured answers, from the one without any."""
    answers = repr([(name, [*map(int, option)]) for name, option in sorted(measured.items())])
    return hashlib.sha256(f"{key} {answers}".encode()).hexdigest()[:32]


def is_current() -> bool:
    """Return whether the sources on disk are those that this process has read.

    A process that goes on while its code is exchanged must keep nothing under the new code's name.
    """
    try:
        return _last_change_ns() <= _IMPORTED_NS
    except OSError:
        return False


def _digest(parts: tuple[object, ...], origin: str) -> str:
    """Digest of some parts and their origin; empty if a part has unknown contents."""
    try:
        return digest_of(*parts, origin=origin.encode()).hex()[:32]
    except UnknownContentsError as error:
        _log.info("nothing is kept: %s", error)
        return ""


@cache
def _origin() -> str:
    """Digest of all sources and versions; empty if they cannot be read."""
    sources = _sources_digest()
    text = f"{__version__} {_tools()} {sources}"
    return hashlib.sha256(text.encode()).hexdigest() if sources else ""


@cache
def _tools() -> str:
    """Digest of the versions of Python and of `_DISTRIBUTIONS`."""
    versions = (f"{name} {package_version(name)}\0" for name in _DISTRIBUTIONS)
    return hashlib.sha256("".join([sys.version, *versions]).encode()).hexdigest()


@cache
def code_digest(name: str) -> str:
    """Digest of the sources that a kernel's code comes from; empty if they cannot be read.

    Kernels compiled from the same sources do the same, whatever compiled them.

    Parameters
    ----------
    name
        A module in `armpy_numba_acc.kernels`, or the name of what kernels share, in which the
        modules' names stand.
    """
    if not _sources_digest():
        return ""
    modules = [f"{kernels.__name__}.{name}"] if name.isidentifier() else modules_in(name)
    # Sources may be exchanged while a process runs: it must not take the new code for its own.
    try:
        files = files_behind([*modules, _GENERATOR], _SOURCES)
        digests = {module: _file_digest(path) for module, path in files.items()}
    except OSError as error:
        _log.info("no code of '%s' is kept on disk: %s", name, error)
        return ""
    if not all(digests.values()):
        _log.info("no code of '%s' is kept on disk: the sources are not those that run", name)
        return ""
    return hashlib.sha256(repr(digests).encode()).hexdigest()


@cache
def _sources_digest() -> str:
    """Digest of all sources; empty if they cannot be read, or are not those that run."""
    # An installation may be under way: sources can vanish while they are listed.
    try:
        files = [(path, os.stat(path)) for path in _source_files()]
        if not files or max(map(_changed_ns, (info for _, info in files))) > _IMPORTED_NS:
            _log.info("nothing is kept on disk: the sources are not those that run")
            return ""
        return _remembered_digest(files)
    except OSError as error:
        _log.info("nothing is kept on disk: %s", error)
        return ""


def _remembered_digest(files: Sequence[tuple[str, os.stat_result]]) -> str:
    """Digest of all sources, which is remembered as long as no file is touched.

    Empty if one has been exchanged meanwhile.
    """
    states = [
        f"{path} {info.st_ino} {info.st_size} {info.st_mtime_ns} {info.st_ctime_ns}\0"
        for path, info in files
    ]
    key = hashlib.sha256("".join(states).encode(errors="surrogatepass")).hexdigest()[:32]
    entries = disk_entries()
    if entries is not None and (parts := entries.read("sources", key)):
        return bytes(parts[0]).decode()
    digests = [(os.path.basename(path), _file_digest(path)) for path, _ in files]
    if not all(digest for _, digest in digests):
        return ""
    text = "".join(f"{name} {digest}\0" for name, digest in digests)
    digest = hashlib.sha256(text.encode()).hexdigest()
    if entries is not None and is_current():
        about = f"{len(files)} files of armpy's code"
        entries.write("sources", key, [digest.encode()], about, "armpy itself")
    return digest


@cache
def _file_digest(path: str) -> str:
    """Digest of a source's contents; empty if they are not those that run."""
    contents = Path(path).read_bytes()
    is_old = _changed_ns(os.stat(path)) <= _IMPORTED_NS
    return hashlib.sha256(contents).hexdigest() if is_old else ""


def package_version(distribution: str) -> str:
    """Return a package's version, without importing it; empty if it is not installed."""
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
                os.path.join(folder, file)
                for file in sorted(files)
                if file.endswith((".py", ".pyi"))
            )


def _last_change_ns() -> int:
    """Return the time of a source's last change or placement."""
    return max((_changed_ns(os.stat(path)) for path in _source_files()), default=0)


def _changed_ns(info: os.stat_result) -> int:
    """Return the time of a file's change or placement."""
    return max(info.st_mtime_ns, info.st_ctime_ns)
