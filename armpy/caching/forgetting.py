"""Caches of which single entries can be deleted: what is kept of one model, for example."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection

from armpy.backend import IBackendCache


class IForgettingCache(IBackendCache):
    """A cache that can delete some of its entries."""

    @abstractmethod
    def forget(self, names: Collection[str]) -> int:
        """Delete entries.

        Parameters
        ----------
        names : collection of str
            As `CacheEntry.name` gives them; others are left out.

        Returns
        -------
        int
            How many were deleted.

        Raises
        ------
        OSError
            If one cannot be deleted.
        """
