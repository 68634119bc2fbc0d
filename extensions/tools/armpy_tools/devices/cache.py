"""The store of figures as a cache, for people to look at and clear."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from armpy.backend import CacheEntry, IBackendCache
from armpy_tools.devices.store import FiguresStore


class DevicesCache(IBackendCache):
    """Cache of this machine's measurements: figures of backends.

    Parameters
    ----------
    store : FiguresStore, optional
        This machine's if left out.
    """

    def __init__(self, store: FiguresStore | None = None) -> None:
        self._store = store or FiguresStore()

    @property
    def name(self) -> str:
        """``devices``."""
        return "devices"

    @property
    def location(self) -> str:
        """The machine's folder."""
        return str(self._store.directory)

    def list_entries(self) -> Sequence[CacheEntry]:
        """Every file, the last used first."""
        entries = [entry for path in self._store.files() if (entry := _entry(path)) is not None]
        return sorted(entries, key=lambda entry: -entry.last_used_s)

    def verify(self) -> Sequence[CacheEntry]:
        """The same, each read and checked."""
        entries = [
            entry
            for path in self._store.files()
            if (entry := _entry(path, self._store.problem_of(path))) is not None
        ]
        return sorted(entries, key=lambda entry: -entry.last_used_s)

    def clear(self) -> int:
        """Delete every file; figures have to be measured again then."""
        count = 0
        for path in self._store.files():
            path.unlink(missing_ok=True)
            count += 1
        return count


def _entry(path: Path, problem: str = "") -> CacheEntry | None:
    """One file; None if it has gone."""
    try:
        info = path.stat()
    # Another process may have dropped it since it was listed.
    except OSError:
        return None
    return CacheEntry(path.name, info.st_size, info.st_mtime, "figures of a backend", problem)
