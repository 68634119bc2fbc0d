"""Lists, checks and clears what backends keep on disk."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace

from armpy.backend import CacheEntry, IBackendCache, IBackendInternal
from armpy.cli.cache.cache_report import CacheReport
from armpy.cli.cache.models import KeptModel, check_patterns, is_chosen, model_of, models_of
from armpy.cli.printer import Printer
from armpy.compiler.compiled_cache import compiled_cache
from armpy.core.units import bytes_text
from armpy.errors import BackendError
from armpy.model.archive.kept_models import ModelCache
from armpy.model.archive.model_cache import NODE_FOLDER, NODE_LIMIT_BYTES
from armpy.plugins import BackendRegistry, preferred_backends
from armpy.plugins.placers import Placers
from armpy.plugins.proxy.guard import BackendProxy
from armpy.plugins.proxy.guarded_call import ask_method, call_backend, read_backend
from armpy.store.forgetting import IForgettingCache
from armpy.types import BackendId


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
            cache.model_limit_bytes if isinstance(cache, IForgettingCache) else 0,
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


def of_models(reports: Sequence[CacheReport], patterns: Sequence[str]) -> list[CacheReport]:
    """Reports with nothing in them but what is kept of the models that patterns name.

    Parameters
    ----------
    reports : sequence of CacheReport
    patterns : sequence of str
        Names, or patterns such as ``mobilenet*``; all models if empty.

    Raises
    ------
    InvalidArgumentError
        If a pattern names no model of which something is kept.
    """
    if not patterns:
        return [*reports]
    check_patterns(patterns, models_of(reports))
    kept = [
        replace(
            report,
            entries=tuple(e for e in report.entries if is_chosen(model_of(report, e), patterns)),
        )
        for report in reports
    ]
    return [report for report in kept if report.entries]


def forget_models(
    registry: BackendRegistry, backend_ids: Sequence[BackendId] | None, patterns: Sequence[str]
) -> list[tuple[BackendId, str, int, int]]:
    """Delete what is kept of the models that patterns name.

    Parameters
    ----------
    registry, backend_ids
        As for `list_caches`, and the errors.
    patterns : sequence of str
        As for `of_models`, and the errors.

    Returns
    -------
    list of (str, str, int, int)
        Backend, name of the cache, how many files were deleted, and how many were not, as the
        backend's cache can only be cleared as a whole.
    """
    chosen = of_models(list_caches(registry, backend_ids), patterns)
    entries = {(each.backend, each.name): each.entries for each in chosen}
    found = []
    for backend_id, cache in _caches(registry, backend_ids):
        name = read_backend(backend_id, cache, "name", str)
        names = {entry.name for entry in entries.get((backend_id, name), ())}
        if not names:
            continue
        count = 0
        if isinstance(cache, IForgettingCache):
            count = ask_method(backend_id, int, cache, "forget", names)
        found.append((backend_id, name, count, len(names) - count))
    return found


def _caches(
    registry: BackendRegistry, backend_ids: Sequence[BackendId] | None
) -> list[tuple[BackendId, IBackendCache]]:
    """Every cache with its backend, and what armpy keeps of compiled parts, models and devices."""
    backends: Sequence[IBackendInternal] = preferred_backends(registry, backend_ids)
    guarded = [BackendProxy(backend) for backend in backends]
    found = [(backend.get_id(), cache) for backend in guarded for cache in backend.get_caches()]
    # Without names, also that of backends which are no longer there.
    of_core = [("armpy", "")] if backend_ids is None else [(each, each) for each in backend_ids]
    for shown, backend_id in of_core:
        cache = compiled_cache(backend_id)
        if cache is not None and cache.list_entries():
            found.append((shown, cache))
    placed = Placers(registry).caches()
    for own in (ModelCache(), ModelCache(NODE_FOLDER, NODE_LIMIT_BYTES), *placed):
        if backend_ids is None and _entries("armpy", own, "list_entries"):
            found.append(("armpy", own))
    return found


def _entries(backend_id: BackendId, cache: IBackendCache, method: str) -> tuple[CacheEntry, ...]:
    """What a cache lists."""
    listed = ask_method(backend_id, Sequence, cache, method)
    entries = call_backend(backend_id, lambda: tuple(listed))
    if not all(isinstance(entry, CacheEntry) for entry in entries):
        raise BackendError("a cache lists what is no CacheEntry", where=f"{backend_id} / {method}")
    return entries


def print_caches(reports: Sequence[CacheReport], *, shows_all: bool = False) -> None:
    """Print what is in caches, the last used first: a row per model, or per file.

    Parameters
    ----------
    reports : sequence of CacheReport
    shows_all : bool
        Whether there is a row per file.
    """
    printer = Printer()
    if not reports:
        printer.line("no backend keeps anything")
        return
    models = models_of(reports)
    if not models:
        printer.line("nothing is kept")
    elif shows_all:
        printer.table(["last used", "size>", "model", "what", "name"], _file_rows(reports))
    else:
        printer.table(["last used", "size>", "files>", "model", "kept for"], _model_rows(models))
    printer.line("")
    for report in reports:
        printer.line(_summary(report))
    if models and not shows_all:
        printer.line(
            "All of it can be made again. --files lists every file; "
            "'armpy cache clear --model NAME' deletes what is kept of a model."
        )


def _model_rows(models: Sequence[KeptModel]) -> list[tuple[str, ...]]:
    """A row per model, and their sum where there are several."""
    rows: list[tuple[str, ...]] = [
        (_when(m.last_used_s), bytes_text(m.size_bytes), str(m.num_files), m.model, m.kept_for)
        for m in models
    ]
    if len(models) > 1:
        size = bytes_text(sum(m.size_bytes for m in models))
        rows.append(("", size, str(sum(m.num_files for m in models)), "all together", ""))
    return rows


def _file_rows(reports: Sequence[CacheReport]) -> list[tuple[str, ...]]:
    """A row per file of all caches."""
    pairs = [(report, entry) for report in reports for entry in report.entries]
    return [
        (
            _when(entry.last_used_s),
            bytes_text(entry.size_bytes),
            model_of(report, entry),
            entry.description,
            entry.name,
        )
        for report, entry in sorted(pairs, key=lambda pair: -pair[1].last_used_s)
    ]


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
    limit = f" of at most {bytes_text(report.limit_bytes)}" if report.limit_bytes else ""
    if limit and report.model_limit_bytes:
        limit += f", {bytes_text(report.model_limit_bytes)} for the shapes of one model"
    entries = "1 entry" if len(report.entries) == 1 else f"{len(report.entries)} entries"
    size = bytes_text(report.size_bytes)
    return f"{report.backend} {report.name} in {report.location}: {entries}, {size}{limit}"


def _when(time_s: float) -> str:
    """A time for people."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(time_s))


def caches_document(reports: Sequence[CacheReport]) -> dict[str, object]:
    """Everything about caches as a JSON document."""
    models = models_of(reports)
    return {
        "caches": [asdict(report) for report in reports],
        "models": [asdict(kept) for kept in models],
        "size_bytes": sum(kept.size_bytes for kept in models),
        "num_files": sum(kept.num_files for kept in models),
    }
