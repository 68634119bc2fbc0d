"""Options of finding and loading backends."""

from __future__ import annotations

import os
from collections.abc import Sequence

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError

PathText = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class PluginOptions:
    """Options by which a `BackendRegistry` finds and loads backends.

    Raises InvalidArgumentError if an option has the wrong type or range.
    """

    dynamic_backends_path: PathText | Sequence[PathText] = ()
    """Directories in which to look for modules named ``<vendor>_<name>_backend``. If it is
    empty, ``ARMPY_DYNAMIC_BACKENDS_PATH`` is read; otherwise that is ignored.
    """
    trust_insecure_paths: bool = False
    """Take modules (and a trust file) that other users can change."""
    trust_file: PathText | None = None
    """Trust file, which says what may be loaded; None for that of ``ARMPY_TRUST_FILE``."""
    probe: bool = False
    """Load each backend in a child process first, and never here if it does not pass there."""
    probe_timeout_s: float = 10.0
    """Longest time to probe one candidate."""

    def __post_init__(self) -> None:
        for name in ("trust_insecure_paths", "probe"):
            if not isinstance(getattr(self, name), bool):
                raise _wrong(name, "true or false", getattr(self, name))
        seconds = self.probe_timeout_s
        # True is an int to `isinstance`, and would pass for a second.
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise _wrong("probe_timeout_s", "a number of seconds", seconds)
        # Without an end, a candidate that hangs would hang the application.
        if not 0 < seconds < float("inf"):
            raise _wrong("probe_timeout_s", "more than 0 seconds, and an end", seconds)
        if self.trust_file is not None and not _is_path(self.trust_file):
            raise _wrong("trust_file", "a path", self.trust_file)
        path = self.dynamic_backends_path
        several = isinstance(path, Sequence) and all(_is_path(part) for part in path)
        if not _is_path(path) and not several:
            raise _wrong("dynamic_backends_path", "a path or a sequence of paths", path)

    @property
    def directories(self) -> tuple[str, ...]:
        """The given directories as text; none if the option is empty."""
        path = self.dynamic_backends_path
        if isinstance(path, str | os.PathLike):
            return (os.fspath(path),) if os.fspath(path) else ()
        return tuple(os.fspath(part) for part in path)


def _is_path(value: object) -> bool:
    return isinstance(value, str) or (
        isinstance(value, os.PathLike) and isinstance(os.fspath(value), str)
    )


def _wrong(name: str, expected: str, actual: object) -> InvalidArgumentError:
    return InvalidArgumentError(
        "the option cannot be used", where=name, expected=expected, actual=repr(actual)
    )
