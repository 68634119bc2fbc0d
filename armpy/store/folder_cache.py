"""Caches that are folders: files are listed, checked, and deleted one by one."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from armpy.backend import GroupedCacheEntry, IBackendCache

FoundFile: TypeAlias = tuple[Path, os.stat_result]


def files_in(folder: str | os.PathLike[str], *suffixes: str) -> Iterator[FoundFile]:
    """Files with these suffixes in a folder, in no order; none if it cannot be listed."""
    with suppress(OSError), os.scandir(folder) as listing:
        for item in listing:
            if item.name.endswith(suffixes):
                with suppress(OSError):  # another process may have dropped it
                    yield Path(item.path), item.stat(follow_symlinks=False)


class IFolderCache(IBackendCache):
    """A cache with a file for each entry."""

    @property
    def model_limit_bytes(self) -> int:
        """Limit in bytes of one model with different shapes; 0 if there is no such limit."""
        return 0

    @abstractmethod
    def entry_files(self) -> Sequence[FoundFile]:
        """The entries' files, the last used first."""

    @abstractmethod
    def describe(
        self,
        file: FoundFile,
        *,
        verify: bool,  # whether all of the file is read and checked
    ) -> GroupedCacheEntry | None:
        """An entry, for people; None if another process drops it meanwhile."""

    def list_entries(self) -> Sequence[GroupedCacheEntry]:
        """List the entries, by the files' own descriptions."""
        return self._described(verify=False)

    def verify(self) -> Sequence[GroupedCacheEntry]:
        """List the entries, every file read and checked."""
        return self._described(verify=True)

    def _described(self, *, verify: bool) -> list[GroupedCacheEntry]:
        described = (self.describe(file, verify=verify) for file in self.entry_files())
        return [entry for entry in described if entry is not None]
