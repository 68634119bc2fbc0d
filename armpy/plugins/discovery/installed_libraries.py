"""Shared libraries of installed distributions that an installed package opens as backends."""

from __future__ import annotations

import filecmp
import json
import logging
import os
import re
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import Distribution, distributions

from armpy.plugins.discovery.exported_functions import exported_functions
from armpy.plugins.discovery.installed_library import InstalledLibrary
from armpy.store.owned_files import read_checked, write_checked

_LIBRARY = re.compile(r"^\"?([^,\n]*\.(?:so(?:\.[\d.]+)?|dylib|dll))\"?,", re.MULTILINE)
"""A line of a RECORD about a shared library."""

_EXTENSIONS = tuple(suffix for suffix in EXTENSION_SUFFIXES if suffix.count(".") > 1)
"""What names of Python's extension modules end in, which the interpreter loads."""

_VERSION = 2
"""Of what is kept; entries of another one are looked up anew."""

_log = logging.getLogger("armpy.plugins")


def find_libraries(
    functions: Collection[str], announced: Collection[str], kept: str
) -> tuple[InstalledLibrary, ...]:
    """The libraries that export one of some functions, by the RECORD of their distributions.

    Parameters
    ----------
    functions : collection of str
    announced : collection of str
        Names of distributions that are not looked through, as they announce their backends.
    kept : str
        File that keeps what was found by each RECORD, which has the digests of all files, and by
        which of its libraries are there; empty for none.

    Returns
    -------
    tuple of InstalledLibrary
        Sorted by distribution and path, with the unreadable and the missing ones.

    Notes
    -----
    Wheels cannot hold links, so that some have a library once by each of its names: ``x.so``,
    ``x.so.1``, ``x.so.1.8``. Of equal files in one folder the first name counts. Files of other
    folders count for themselves: there may lie what they need, and where the first lies not.
    """
    known = _read(kept)
    found: dict[str, list[InstalledLibrary]] = {}
    for distribution in distributions():
        record = _record(distribution)
        place = str(distribution.locate_file(""))
        paths = [os.path.join(place, name) for name in _LIBRARY.findall(record)]
        paths = [path for path in paths if not path.endswith(_EXTENSIONS)]
        if not paths:
            continue
        # One that was removed may come back, and RECORD stays the same.
        missing = [path for path in paths if _is_missing(path)]
        key = sha256(
            repr((_VERSION, paths, missing, record, sorted(functions))).encode()
        ).hexdigest()
        if key not in found:
            rows = known.get(key)
            if rows is None:
                rows = [*_look_through(distribution, paths, missing, functions)]
            found[key] = rows
    if found != known and kept:
        # A file that could not be read then is looked at again the next time.
        lasting = {key: rows for key, rows in found.items() if not any(r.reason for r in rows)}
        write_checked(kept, json.dumps(lasting).encode())
    libraries = [library for rows in found.values() for library in rows]
    chosen = [row for row in libraries if row.distribution not in announced]
    # The order of `sys.path` would make the winner of two equal ids depend on the installation.
    return tuple(sorted(chosen, key=lambda row: (row.distribution, row.path)))


def _record(distribution: Distribution) -> str:
    """The list of a distribution's files; empty if there is none."""
    try:
        return distribution.read_text("RECORD") or ""
    except (OSError, UnicodeDecodeError) as error:
        _log.debug("a RECORD cannot be read: %s", error)
        return ""


def _is_missing(path: str) -> bool:
    """Return whether there is no such file; one that may not be seen is not missing."""
    try:
        os.stat(path)
    except OSError as error:
        return isinstance(error, (FileNotFoundError, NotADirectoryError))
    return False


def _look_through(
    distribution: Distribution,
    paths: Sequence[str],
    missing: Collection[str],
    functions: Collection[str],
) -> Iterator[InstalledLibrary]:
    """Look into each library of a distribution."""
    name, version = distribution.name, distribution.version
    chosen: list[str] = []
    for listed in sorted(paths):
        if listed in missing:
            yield InstalledLibrary("", listed, name, version)
            continue
        path = os.path.realpath(listed)
        try:
            exported = sorted(exported_functions(path, functions))
        except OSError as error:
            reason = f"it cannot be read: {error.strerror}"
            yield InstalledLibrary("", path, name, version, reason)
            continue
        if exported and not any(_is_copy(path, other) for other in chosen):
            chosen.append(path)
            yield InstalledLibrary(exported[0], path, name, version)


def _is_copy(path: str, other: str) -> bool:
    """Return whether a file has the contents of another one in its folder; both can be read."""
    return os.path.dirname(path) == os.path.dirname(other) and filecmp.cmp(
        path, other, shallow=False
    )


def _read(path: str) -> dict[str, list[InstalledLibrary]]:
    """What was found before, by a digest of the RECORD."""
    contents = read_checked(path) if path else None
    if contents is None:
        return {}
    return {
        key: [InstalledLibrary(*row) for row in rows] for key, rows in json.loads(contents).items()
    }
