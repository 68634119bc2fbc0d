"""Contents of backends' caches on disk, for people to look at and clear."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from armpy.core.dataclass import dataclass
from armpy.types import BackendId


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One thing that is kept."""

    name: str  # unique in its cache
    size_bytes: int
    last_used_s: float  # seconds since 1970
    description: str = ""  # for people
    problem: str = ""
    """Why it cannot be used; empty if valid or not checked."""


@dataclass(frozen=True, slots=True)
class GroupedCacheEntry(CacheEntry):
    """One thing that is kept, of several summed up for people."""

    group: str = ""  # the name of a model, as a rule; see `model_name`


KEEPS_NOTHING = "the backend keeps nothing of it"
"""End of the reason of a miss after which no later look-up is a hit: `IPrograms.save` gave None."""


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Hit or miss of a cache lookup, with the reason of a miss."""

    backend_id: BackendId
    # For people, beginning with a number and a noun, which placement reports sum: ``2 layers from
    # 'conv_1'``, ``7 kernels from packs``.
    what: str
    is_hit: bool  # whether it was there
    reason: str = ""  # why it was not there, or is not kept; empty for a hit that needs no words

    def __str__(self) -> str:
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.backend_id}: {self.what}: {'found' if self.is_hit else 'compiled'}{reason}"


# In the context: backends report from deep inside, and other threads load, too.
_USES: ContextVar[list[CacheUse] | None] = ContextVar("cache uses", default=None)
_MODEL_NAME: ContextVar[str] = ContextVar("model name", default="")


@contextmanager
def gathered_cache_uses() -> Iterator[list[CacheUse]]:
    """Collect the reports of `report_cache_use` in a block; for the core."""
    uses: list[CacheUse] = []
    token = _USES.set(uses)
    try:
        yield uses
    finally:
        _USES.reset(token)


def report_cache_use(use: CacheUse) -> None:
    """Report the outcome of a cache look-up; for backends with a cache of their own.

    While a network is prepared, it becomes a part of the placement report.
    """
    uses = _USES.get()
    if uses is not None:
        uses.append(use)


@contextmanager
def model_named(name: str) -> Iterator[None]:
    """Say what a model is called while it is prepared; for the core."""
    token = _MODEL_NAME.set(name)
    try:
        yield
    finally:
        _MODEL_NAME.reset(token)


def model_name() -> str:
    """Name the model that is being prepared, for `CacheEntry.group`; may be empty."""
    return _MODEL_NAME.get()


class IBackendCache(ABC):
    """Something that a backend keeps on disk and can make again.

    Notes
    -----
    Looking at a cache, and clearing it, does no harm to processes that use it.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of its contents, unique in its backend: ``kernels``, ``models``."""

    @property
    @abstractmethod
    def location(self) -> str:
        """Place, for people, such as a folder; empty if nothing is kept."""

    @property
    def limit_bytes(self) -> int:
        """Largest size; 0 if there is no limit."""
        return 0

    @abstractmethod
    def list_entries(self) -> Sequence[CacheEntry]:
        """List the entries, the last used first if known without slow reads."""

    @abstractmethod
    def verify(self) -> Sequence[CacheEntry]:
        """The same with every entry read and checked; `problem` has the faults."""

    @abstractmethod
    def clear(self) -> int:
        """Delete every entry; returns how many there were.

        Raises
        ------
        OSError
            If one cannot be deleted.
        """
