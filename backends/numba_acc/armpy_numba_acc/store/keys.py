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
from armpy_numba_acc.machine.cost_model.model import MachineModel
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.store.settings import disk_entries

_IMPORTED_NS = time.time_ns()
"""About when the code of this process was read."""

_SOURCES = (
    "armpy_numba_acc",
    "armpy.ops",
    "armpy.graph",
    "armpy.core.numerics",
    "armpy.types",
    "armpy.tensor",
)
"""Packages and modules that decide on what comes out."""

_DISTRIBUTIONS = ("armpy", "numba", "llvmlite", "numpy")

_IMPORTED_VERSIONS = {"armpy": __version__, "numpy": np.__version__}

_log = logging.getLogger("armpy.NumbaAcc")


def object_key(kernel: Kernel, isa: Isa) -> str:
    """Key of a kernel's object code; empty if it cannot be kept."""
    return _key("object", kernel, isa.strict())


def program_key(
    view: SubgraphView, isa: Isa, num_threads: int, model: MachineModel | None = None
) -> str:
    """Key of a region's program; empty if it cannot be kept.

    Parameters
    ----------
    model
        With `isa` and `num_threads`, all that the lowering receives besides the region. If it is
        left out, the key is that of results that do not depend on the figures.
    """
    return _key("program", view, isa, num_threads, "" if model is None else model.digest)


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


def _key(*parts: object) -> str:
    """Digest of some parts, the code, and the code's dependencies."""
    origin = _origin()
    if not origin:
        return ""
    try:
        return digest_of(*parts, origin=origin.encode()).hex()[:32]
    except UnknownContentsError as error:
        _log.info("nothing is kept: %s", error)
        return ""


@cache
def _origin() -> str:
    """Digest of the sources and versions; empty if they cannot be read."""
    digest = hashlib.sha256(sys.version.encode())
    for name in _DISTRIBUTIONS:
        digest.update(f"{name} {package_version(name)}\0".encode())
    sources = sources_digest()
    return hashlib.sha256(digest.digest() + sources.encode()).hexdigest() if sources else ""


@cache
def sources_digest() -> str:
    """Digest of the sources that decide on what kernels do; empty if they cannot be read.

    Kernels compiled from the same sources do the same, whatever compiled them.
    """
    # An installation may be under way: sources can vanish while they are listed.
    try:
        files = [(path, os.stat(path)) for path in _source_files()]
        if not files or max(map(_changed_ns, (info for _, info in files))) > _IMPORTED_NS:
            _log.info("nothing is kept on disk: the sources are not those that run")
            return ""
        return _sources_digest(files).hex()
    except OSError as error:
        _log.info("nothing is kept on disk: %s", error)
        return ""


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
        about = f"{len(files)} files of armpy's code"
        entries.write("sources", key, [digest.digest()], about, "armpy itself")
    return digest.digest()


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
                os.path.join(folder, file) for file in sorted(files) if file.endswith(".py")
            )


def _last_change_ns() -> int:
    """Return the time of a source's last change or placement."""
    return max((_changed_ns(os.stat(path)) for path in _source_files()), default=0)


def _changed_ns(info: os.stat_result) -> int:
    """Return the time of a file's change or placement."""
    return max(info.st_mtime_ns, info.st_ctime_ns)
