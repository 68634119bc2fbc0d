"""Settings of where compiled parts are kept, of the application or the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from armpy.core.dataclass import dataclass
from armpy.core.file_ownership import cache_directory
from armpy.errors import InvalidArgumentError
from armpy.store.owned_files import SWITCH_VARIABLE

LIMIT_VARIABLE = "ARMPY_COMPILED_CACHE_MB"
"""Environment variable for how many MiB it may take."""

FOLDER = "compiled"
"""Name of the folder in armpy's cache directory."""

TOKEN_BYTES = 32
"""Length of an application's token."""

_DEFAULT_LIMIT_MB = 1024
# Enough for every disk, and `int` refuses texts of more than 4,300 digits.
_MOST_DIGITS = 12


@dataclass(frozen=True, slots=True)
class CompilationCaching:
    """Settings of keeping compiled parts of networks from one process to the next.

    Raises
    ------
    InvalidArgumentError
        If the token has another length, the folder's name cannot be one, or there is no room.

    References
    ----------
    NNAPI ``ANeuralNetworksCompilation_setCaching``.
    """

    # ``compiled`` in armpy's cache directory if left out. The folder that goes with a token has to
    # be there.
    folder: str | os.PathLike[str] | None = None
    # 32 bytes by which the application names the model. Left out, parts are named by all that they
    # consist of.
    token: bytes | None = None
    # Most that the folder may take; the least recently used goes first. By default 1 GiB, or what
    # ``ARMPY_COMPILED_CACHE_MB`` says. It does not count where there is a token: such a folder is
    # the application's.
    limit_bytes: int | None = None
    # Whether anything is kept at all. ``ARMPY_COMPILED_CACHE=off`` switches it off without a token.
    enabled: bool = True

    def __post_init__(self) -> None:
        if self.token is not None and len(self.token) != TOKEN_BYTES:
            raise InvalidArgumentError(
                "the caching token has the wrong length",
                where="token",
                expected=f"{TOKEN_BYTES} bytes",
                actual=f"{len(self.token)} bytes",
            )
        if self.token is not None and self.folder is None:
            raise InvalidArgumentError("a caching token goes with a folder", where="folder")
        if self.folder is not None and not _can_be_path(self.folder):
            raise InvalidArgumentError(
                "the folder is not a path", where="folder", actual=repr(self.folder)
            )
        if self.limit_bytes is not None and self.limit_bytes <= 0:
            raise InvalidArgumentError(
                "the cache has no room",
                where="limit_bytes",
                expected="a positive number, or enabled=False",
                actual=str(self.limit_bytes),
            )

    def resolved(self, environment: Mapping[str, str] | None = None) -> tuple[Path, int] | None:
        """The folder, and how much it may take; None if nothing is to be kept.

        Raises
        ------
        InvalidArgumentError
            If a variable has a value that it cannot have.
        """
        variables = os.environ if environment is None else environment
        switch = variables.get(SWITCH_VARIABLE, "").strip().lower()
        if switch not in ("", "on", "off"):
            raise InvalidArgumentError(
                "the switch cannot have this value",
                where=SWITCH_VARIABLE,
                expected="on or off",
                actual=repr(switch[:40]),
                fix="ARMPY_CACHE_DIR says where things are kept",
            )
        # With a token the folder is the application's, and so is the decision.
        if not self.enabled or (switch == "off" and self.token is None):
            return None
        limit_bytes = self.limit_bytes or _limit_bytes(variables)
        if self.folder is not None:
            return Path(self.folder), limit_bytes
        try:
            return cache_directory(variables) / FOLDER, limit_bytes
        except RuntimeError:  # the user has no home
            return None


def _limit_bytes(variables: Mapping[str, str]) -> int:
    """Return how much the folder may take if the application does not say it."""
    text = variables.get(LIMIT_VARIABLE, "") or str(_DEFAULT_LIMIT_MB)
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise InvalidArgumentError(
            "the limit is not a number of MiB",
            where=LIMIT_VARIABLE,
            expected=f"a number of MiB with at most {_MOST_DIGITS} digits",
            actual=repr(text[:40]),
        )
    return int(text) << 20


def _can_be_path(folder: str | os.PathLike[str]) -> bool:
    """Return whether the system can be asked about a path."""
    try:
        return b"\0" not in os.fsencode(folder)
    except (TypeError, ValueError):
        return False
