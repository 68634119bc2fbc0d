"""Caches of which single entries can be deleted: what is kept of one model, for example."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection

from armpy.backend import IBackendCache


class IForgettingCache(IBackendCache):
    """A cache that can delete some of its entries."""

    @property
    def model_limit_bytes(self) -> int:
        """How much of it one model may take for different shapes; 0 if there is no such limit."""
        return 0

    @abstractmethod
    def forget(self, names: Collection[str]) -> int:
        """Delete entries.

        Returns
        -------
        int
            How many were deleted.
        """
