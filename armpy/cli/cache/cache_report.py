"""One cache of a backend, with what is in it."""

from __future__ import annotations

from dataclasses import dataclass

from armpy.backend import CacheEntry
from armpy.types import BackendId


@dataclass(frozen=True, slots=True)
class CacheReport:
    """One cache of a backend.

    Parameters
    ----------
    backend, name, location : str
    limit_bytes, model_limit_bytes : int
        Of all entries, and of one model's; 0 if there is none.
    entries : tuple of CacheEntry
    """

    backend: BackendId
    name: str
    location: str
    limit_bytes: int
    model_limit_bytes: int
    entries: tuple[CacheEntry, ...]

    @property
    def size_bytes(self) -> int:
        """All entries together."""
        return sum(entry.size_bytes for entry in self.entries)

    @property
    def damaged(self) -> list[CacheEntry]:
        """Entries that have a problem."""
        return [entry for entry in self.entries if entry.problem]
