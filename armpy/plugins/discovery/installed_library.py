"""Record of a shared library that an installed distribution has."""

from __future__ import annotations

from typing import NamedTuple


class InstalledLibrary(NamedTuple):
    """A shared library of a distribution."""

    function: str  # exported, and what opens it is installed; empty if the file is not read
    path: str
    distribution: str
    version: str
    reason: str = ""  # why the file cannot be read; empty, too, if it is missing

    @property
    def is_missing(self) -> bool:
        """Whether the distribution lists the file, and it is not there."""
        return not self.function and not self.reason
