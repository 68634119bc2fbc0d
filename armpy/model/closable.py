"""Protocol of models, as far as those go that open and close others for them."""

from __future__ import annotations

from typing import Protocol


class Closable(Protocol):
    """Something that is open until it is closed."""

    @property
    def is_closed(self) -> bool:
        """Whether it has been closed."""

    def close(self) -> None:
        """Close it, if it is open."""
