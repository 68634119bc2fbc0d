"""What armpy keeps of kernel packs in a process."""

from __future__ import annotations

from armpy.store.archive import kernel_packs


def forget_opened_packs() -> None:
    """Have packs opened anew, which are opened once per process."""
    kernel_packs._found.cache_clear()
