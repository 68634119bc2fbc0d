"""Lists, checks and clears what backends keep on disk."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from armpy.backend import CacheEntry, GroupedCacheEntry, IBackendCache, IBackendInternal
from armpy.caching.compiled import compiled_cache
from armpy.cli.printer import Printer
from armpy.devices import DevicesCache
from armpy.errors import BackendError
from armpy.plugins import BackendRegistry, preferred_backends
from armpy.plugins.boundary import ask_method, call_backend, read_backend
from armpy.plugins.guard import GuardedBackend
from armpy.runtime.keeping import ModelCache
from armpy.types import BackendId

_NO_GROUP = "(not said)"


@dataclass(frozen=True, slots=True)
class CacheReport:
    """One cache of a backend.

    Parameters
    ----------
    backend, name, location : str
    limit_bytes : int
        0 if there is none.
    entries : tuple of CacheEntry
    """

    backend: BackendId
    name: str
    location: str
    limit_bytes: int
    entries: tuple[CacheEntry, ...]

    @property
    def size_bytes(self) -> int:
        """All entries together."""
        return sum(entry.size_bytes for entry in self.entries)

    @property
    def damaged(self) -> list[CacheEntry]:
        """Entries that have a problem."""
        return [entry for entry in self.entries if entry.problem]


def list_caches(
    registry: BackendRegistry, backend_ids: Sequence[BackendId] | None, *, verify: bool = False
) -> list[CacheReport]:
    """Describe every cache.

    Parameters
    ----------
    registry : BackendRegistry
    backend_ids : sequence of str, optional
        Whose caches; every backend's if left out.
    verify : bool
        Read and check every entry.

    Raises
    ------
    BackendUnavailableError
        If a named backend cannot be used.
    BackendError
        If a cache raises, or answers against the contract.
    """
    return [
        CacheReport(
            backend_id,
            read_backend(backend_id, cache, "name", str),
            read_backend(backend_id, cache, "location", str),
            read_backend(backend_id, cache, "limit_bytes", int),
            _entries(backend_id, cache, "verify" if verify else "list_entries"),
        )
        for backend_id, cache in _caches(registry, backend_ids)
    ]


def clear_caches(
    registry: BackendRegistry, backend_ids: Sequence[BackendId] | None, name: str = ""
) -> list[tuple[BackendId, str, int]]:
    """Clear every cache; or those of a name alone.

    Parameters
    ----------
    registry, backend_ids
        As for `list_caches`, and the errors.
    name : str
        Such as ``machine``: what a backend has measured of the machine.

    Returns
    -------
    list of (str, str, int)
        Backend, name of the cache, and how many entries there were.
    """
    return [
        (
            backend_id,
            read_backend(backend_id, cache, "name", str),
            ask_method(backend_id, int, cache, "clear"),
        )
        for backend_id, cache in _caches(registry, backend_ids)
        if name in ("", read_backend(backend_id, cache, "name", str))
    ]


def _caches(
    registry: BackendRegistry, backend_ids: Sequence[BackendId] | None
) -> list[tuple[BackendId, IBackendCache]]:
    """Every cache with its backend, and what armpy keeps of compiled parts and devices."""
    backends: Sequence[IBackendInternal] = preferred_backends(registry, backend_ids)
    guarded = [GuardedBackend(backend) for backend in backends]
    found = [(backend.backend_id, cache) for backend in guarded for cache in backend.get_caches()]
    # Without names, also that of backends which are no longer there.
    of_core = [("armpy", "")] if backend_ids is None else [(each, each) for each in backend_ids]
    for shown, backend_id in of_core:
        cache = compiled_cache(backend_id)
        if cache is not None and cache.list_entries():
            found.append((shown, cache))
    models = ModelCache()
    if backend_ids is None and models.list_entries():
        found.append(("armpy", models))
    devices = DevicesCache()
    if backend_ids is None and devices.list_entries():
        found.append(("armpy", devices))
    return found


def _entries(backend_id: BackendId, cache: IBackendCache, method: str) -> tuple[CacheEntry, ...]:
    """What a cache lists."""
    listed = ask_method(backend_id, Sequence, cache, method)
    entries = call_backend(backend_id, lambda: tuple(listed))
    if not all(isinstance(entry, CacheEntry) for entry in entries):
        raise BackendError("a cache lists what is no CacheEntry", where=f"{backend_id} / {method}")
    return entries


def print_caches(reports: Sequence[CacheReport], *, shows_all: bool = False) -> None:
    """Print what is in caches, the last used first: a row per model, or per entry.

    Parameters
    ----------
    reports : sequence of CacheReport
    shows_all : bool
        Whether there is a row per entry also where entries say what they are a part of.
    """
    printer = Printer()
    if not reports:
        printer.line("no backend keeps anything")
    is_summed = False
    for report in reports:
        printer.line(_summary(report))
        groups = _grouped(report.entries)
        if report.entries and groups and not shows_all:
            is_summed = True
            rows = [_sum_row(name, entries) for name, entries in groups.items()]
            printer.table(["last used", "size>", "entries>", "of"], rows)
        elif report.entries:
            rows = [
                (_when(e.last_used_s), _size(e.size_bytes), e.description, e.name)
                for e in report.entries
            ]
            printer.table(["last used", "size>", "what", "name"], rows)
    if is_summed:
        printer.line("--all lists every entry.")


def _grouped(entries: Sequence[CacheEntry]) -> dict[str, list[CacheEntry]]:
    """Entries by what they are a part of, the last used first; empty if none says it."""
    groups: dict[str, list[CacheEntry]] = {}
    for entry in sorted(entries, key=lambda e: -e.last_used_s):
        name = entry.group if isinstance(entry, GroupedCacheEntry) else ""
        groups.setdefault(name or _NO_GROUP, []).append(entry)
    return {} if groups.keys() <= {_NO_GROUP} else groups


def _sum_row(name: str, entries: Sequence[CacheEntry]) -> tuple[str, str, str, str]:
    """A row for several entries."""
    size = sum(entry.size_bytes for entry in entries)
    return _when(entries[0].last_used_s), _size(size), str(len(entries)), name


def print_verified(reports: Sequence[CacheReport]) -> None:
    """Print what is wrong with entries of caches."""
    printer = Printer()
    for report in reports:
        num_damaged = len(report.damaged)
        verdict = f"{num_damaged} cannot be used" if num_damaged else "all are sound"
        printer.line(f"{_summary(report)}: {verdict}")
        if num_damaged:
            rows = [(entry.name, entry.problem) for entry in report.damaged]
            printer.table(["name", "problem"], rows)
            printer.line("They do no harm: what cannot be used is made again when it is needed.")


def _summary(report: CacheReport) -> str:
    """One line about a cache."""
    if not report.location:
        return f"{report.backend} {report.name}: switched off"
    limit = f" of at most {_size(report.limit_bytes)}" if report.limit_bytes else ""
    entries = "1 entry" if len(report.entries) == 1 else f"{len(report.entries)} entries"
    size = _size(report.size_bytes)
    return f"{report.backend} {report.name} in {report.location}: {entries}, {size}{limit}"


def _size(size_bytes: int) -> str:
    """A number of bytes for people."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} GiB"


def _when(time_s: float) -> str:
    """A time for people."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(time_s))


def caches_document(reports: Sequence[CacheReport]) -> dict[str, object]:
    """Everything about caches as a JSON document."""
    return {"caches": [asdict(report) for report in reports]}
