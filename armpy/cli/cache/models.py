"""Contents of caches, and each model's entries in all of them together."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field

from armpy.backend import CacheEntry, GroupedCacheEntry
from armpy.core.dataclass import dataclass
from armpy.types import BackendId

OWN = "armpy itself"
"""Entries for no model in particular."""

UNKNOWN = "unknown"
"""Entries without a purpose: stored by earlier versions, or by a backend."""

_KIND_OF_FILE = re.compile(r"(?P<kind>[a-z]+)-[0-9a-f]+\.entry")
_KINDS = {
    "program": "compiled part",
    "tuned": "what tuning found",
    "object": "compiled kernels",
    "host": "features of the processor",
    "sources": "state of armpy's code",
    "machine": "speed of the machine",
    "corrections": "what tuning has taught",
    "models": "a start without preparing",
    "node": "all processes of this machine",
    "devices": "measured figures",
}


@dataclass(frozen=True, slots=True)
class CacheReport:
    """One cache of a backend."""

    backend: BackendId
    name: str
    location: str
    # Of all entries, and of one model's; 0 if there is none.
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


@dataclass(slots=True)
class KeptModel:
    """Cache use of one model, in all caches together."""

    model: str  # its name; `OWN`, `UNKNOWN`, or what several share
    size_bytes: int = 0
    num_files: int = 0
    last_used_s: float = 0.0  # seconds since 1970
    # The files' purposes, and how many of each there are.
    kinds: dict[str, int] = field(default_factory=dict)

    def add(self, entry: CacheEntry, kind: str) -> None:
        """Count a file."""
        self.size_bytes += entry.size_bytes
        self.num_files += 1
        self.last_used_s = max(self.last_used_s, entry.last_used_s)
        self.kinds[kind] = self.kinds.get(kind, 0) + 1

    @property
    def kept_for(self) -> str:
        """Return the purpose of the files, in words."""
        counts = sorted(self.kinds.items(), key=lambda pair: -pair[1])
        return ", ".join(kind if count == 1 else f"{kind} ({count})" for kind, count in counts)


def model_name(report: CacheReport, entry: CacheEntry) -> str:
    """The model that a file was made for, as its row is called."""
    group = entry.group if isinstance(entry, GroupedCacheEntry) else ""
    return group or (OWN if report.backend == "armpy" and report.name == "devices" else UNKNOWN)


def kind_of(report: CacheReport, entry: CacheEntry) -> str:
    """Return the kind of a file: from its name, or its cache's name."""
    match = _KIND_OF_FILE.fullmatch(entry.name)
    kind = match["kind"] if match else report.name
    return _KINDS.get(kind, kind)


def summarize_models(reports: Iterable[CacheReport]) -> list[KeptModel]:
    """Return the notes on each model, the last used first."""
    models: dict[str, KeptModel] = {}
    for report in reports:
        for entry in report.entries:
            name = model_name(report, entry)
            models.setdefault(name, KeptModel(name)).add(entry, kind_of(report, entry))
    return sorted(models.values(), key=lambda model: (-model.last_used_s, model.model))
