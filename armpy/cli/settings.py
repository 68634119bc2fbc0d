"""Settings of every command besides its own options."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger


_SWITCHES = ("ARMPY_COMPILED_CACHE", "ARMPY_MODEL_CACHE", "ARMPY_NUMBA_CACHE")
_LIMITS = ("ARMPY_COMPILED_CACHE_MB", "ARMPY_NUMBA_CACHE_MB")


class CommandSettings:
    """Settings of how much a command says."""

    def __init__(self) -> None:
        self.debug = False  # whether tracebacks are shown
        self.verbosity = 0  # 0 for warnings, 1 for information, 2 for everything
        self.root_logger: Logger | None = None  # its level follows the verbosity

    def raise_verbosity(self, verbosity: int) -> None:
        """Say at least this much from now on."""
        import logging  # noqa: PLC0415

        self.verbosity = max(self.verbosity, verbosity)
        levels = (logging.WARNING, logging.INFO, logging.DEBUG)
        if self.root_logger is not None and self.verbosity:
            self.root_logger.setLevel(levels[min(self.verbosity, 2)])
            # Pillow describes every chunk of a picture file.
            logging.getLogger("PIL").setLevel(logging.INFO)

    @contextmanager
    def without_reasons(self) -> Iterator[None]:
        """Keep out of the log why backends are left out, unless more was asked for.

        It is for commands that print the reasons themselves.
        """
        import logging  # noqa: PLC0415

        logger = logging.getLogger("armpy.plugins")
        before = logger.level
        if not self.verbosity:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(before)


def wrong_values() -> Iterator[str]:
    """Environment variables of caches whose values cannot be, each with the fix.

    Commands that use the cache say it themselves only where they need what the variable is for.
    """
    yield from wrong_switches(_SWITCHES)
    for name in _LIMITS:
        value = os.environ.get(name, "")
        if value and not (value.isascii() and value.isdigit()):
            yield f"{name} is {value!r}, not a number of MiB. Set it to one, or unset it"


def wrong_switches(names: Iterable[str]) -> Iterator[str]:
    """Those of some variables that are neither on nor off, each with the fix."""
    for name in names:
        value = os.environ.get(name, "").strip()
        if value.lower() not in ("", "on", "off"):
            yield f"{name} is {value!r}, not on or off. Set it to one of these, or unset it"
