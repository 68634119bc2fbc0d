"""Reads and clears what backends keep on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from armpy.backend import CacheEntry, IBackendCache
from armpy.cli.cache.models import CacheReport
from armpy.compiler.compiled_cache import compiled_cache
from armpy.errors import BackendError
from armpy.model.archive.kept_models import ModelCache
from armpy.model.archive.model_cache import NODE_FOLDER, NODE_LIMIT_BYTES
from armpy.plugins import BackendRegistry, preferred_backends
from armpy.plugins.placers import Placers
from armpy.plugins.proxy.guard import BackendProxy
from armpy.plugins.proxy.guarded_call import ask_method, call_backend, read_backend
from armpy.store.folder_cache import IFolderCache
from armpy.types import BackendId

# `backend_ids` are those of the backends whose caches are meant; None is every backend.


def list_caches(
    registry: BackendRegistry, backend_ids: Sequence[BackendId] | None, *, verify: bool = False
) -> list[CacheReport]:
    """Describe every cache; `verify` has every entry read and checked."""
    return [
        CacheReport(
            backend_id,
            name,
            read_backend(backend_id, cache, "location", str),
            read_backend(backend_id, cache, "limit_bytes", int),
            cache.model_limit_bytes if isinstance(cache, IFolderCache) else 0,
            _entries(backend_id, cache, "verify" if verify else "list_entries"),
        )
        for backend_id, name, cache in _caches(registry, backend_ids)
    ]


def clear_caches(
    registry: BackendRegistry, backend_ids: Sequence[BackendId] | None, name: str = ""
) -> list[tuple[BackendId, str, int]]:
    """Clear every cache, or those of a name such as ``machine``, the machine's measurements.

    Each answer is a backend, the name of its cache, and how many entries there were.
    """
    return [
        (backend_id, its_name, ask_method(backend_id, int, cache, "clear"))
        for backend_id, its_name, cache in _caches(registry, backend_ids)
        if name in ("", its_name)
    ]


def _caches(
    registry: BackendRegistry, backend_ids: Sequence[BackendId] | None
) -> Iterator[tuple[BackendId, str, IBackendCache]]:
    """Every cache, and what armpy keeps of compiled parts, models and devices."""
    guarded = [BackendProxy(backend) for backend in preferred_backends(registry, backend_ids)]
    caches: list[tuple[BackendId, IBackendCache]] = [
        (backend.get_id(), cache) for backend in guarded for cache in backend.get_caches()
    ]
    # Without names, also that of backends which are no longer there.
    of_core = [("armpy", "")] if backend_ids is None else [(name, name) for name in backend_ids]
    for shown, backend_id in of_core:
        cache = compiled_cache(backend_id)
        if cache is not None and cache.list_entries():
            caches.append((shown, cache))
    if backend_ids is None:
        placed = Placers(registry).caches()
        own = (ModelCache(), ModelCache(NODE_FOLDER, NODE_LIMIT_BYTES), *placed)
        caches += [("armpy", cache) for cache in own if _entries("armpy", cache, "list_entries")]
    for backend_id, entry_cache in caches:
        yield backend_id, read_backend(backend_id, entry_cache, "name", str), entry_cache


def _entries(backend_id: BackendId, cache: IBackendCache, method: str) -> tuple[CacheEntry, ...]:
    listed = ask_method(backend_id, Sequence, cache, method)
    entries = call_backend(backend_id, lambda: tuple(listed))
    if not all(isinstance(entry, CacheEntry) for entry in entries):
        raise BackendError("a cache must list CacheEntry only", where=f"{backend_id} / {method}")
    return entries
