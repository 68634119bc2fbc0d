"""Allow list of the applications that may use vendor extensions."""

from __future__ import annotations

import os
import re
import sys

from armpy.core.dataclass import dataclass

ENVIRONMENT_VARIABLE = "ARMPY_NNAPI_EXTENSIONS_ALLOWLIST"
"""The file to read if the options name none."""

_COMMENT = re.compile(r"(^|\s)#.*")


@dataclass(frozen=True, slots=True)
class AllowList:
    """The applications that may use vendor extensions.

    Notes
    -----
    It guards against extensions that are used by accident, not against an application that
    means harm: that could talk to the backend itself.

    References
    ----------
    NNAPI vendor extensions, ``nnapi_extensions_app_allowlist``.
    """

    path: str  # the file that says it
    entries: frozenset[str]
    """Paths of programs, which begin with a slash, and names of applications."""
    problem: str = ""  # why the file cannot be read; no application is allowed then

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> AllowList:
        """Read a file with an entry per line.

        Notes
        -----
        A ``#`` at the start of a line, or after a blank, begins a comment. A byte order mark is
        none of the first entry.
        """
        where = os.fspath(path)
        try:
            # A byte order mark would become a part of the first entry.
            with open(where, encoding="utf-8-sig") as file:
                lines = [_COMMENT.sub("", line).strip() for line in file]
        except (OSError, UnicodeDecodeError) as error:
            # No application is allowed then: a broken list must not open its extensions.
            return cls(where, frozenset(), f"it cannot be read: {error}")
        return cls(where, frozenset(filter(None, lines)))

    @classmethod
    def configured(cls, path: str | os.PathLike[str] | None = None) -> AllowList | None:
        """The list of a file, or of that in the environment; None if neither names one.

        Notes
        -----
        Without a list every application is allowed. Android allows none then, as its vendors
        install the devices and are responsible for them. Here the user who installs a backend with
        an extension also runs the application: a list that has to be written first would protect
        nothing. Administrators of a system name a file; an empty one allows no application.
        """
        chosen = path or os.environ.get(ENVIRONMENT_VARIABLE)
        return cls.read(chosen) if chosen else None

    def allows(self, program: str, application: str) -> bool:
        """Return whether a program, or the application that it belongs to, is on the list."""
        # Links are followed on both sides, so that a program is known by any of its paths.
        paths = {os.path.realpath(entry) for entry in self.entries if entry.startswith("/")}
        # An application that calls itself like a path must not pass for that program.
        return os.path.realpath(program) in paths or (
            not application.startswith("/") and application in self.entries
        )


def running_program() -> str:
    """Canonical path of the script that runs; the interpreter's if there is none."""
    # The script, as Python itself runs every one of them.
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.realpath(path or sys.executable)
