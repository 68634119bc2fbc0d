# SPDX-License-Identifier: Apache-2.0
"""Shared libraries of installed distributions that an installed package opens as backends."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Collection, Iterator
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
        File that keeps what was found in each RECORD, which has the digests of all files; empty
        for none.

    Returns
    -------
    tuple of InstalledLibrary
        Sorted by distribution and path, with the unreadable ones.
    """
    known = _read(kept)
    found: dict[str, list[InstalledLibrary]] = {}
    for distribution in distributions():
        record = _record(distribution)
        if not _LIBRARY.search(record):
            continue
        place = str(distribution.locate_file(""))
        key = sha256(repr((place, record, sorted(functions))).encode()).hexdigest()
        if key not in found:
            rows = known.get(key)
            if rows is None:
                rows = [*_look_through(distribution, record, functions)]
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


def _look_through(
    distribution: Distribution, record: str, functions: Collection[str]
) -> Iterator[InstalledLibrary]:
    """Look into each library of a distribution."""
    name, version = distribution.name, distribution.version
    for listed in _LIBRARY.findall(record):
        path = os.path.realpath(str(distribution.locate_file(listed)))
        if path.endswith(_EXTENSIONS):
            continue
        try:
            exported = sorted(exported_functions(path, functions))
        except FileNotFoundError:
            continue  # removed after it was installed
        except OSError as error:
            reason = f"it cannot be read: {error.strerror}"
            yield InstalledLibrary("", path, name, version, reason)
            continue
        yield from (InstalledLibrary(function, path, name, version) for function in exported[:1])


def _read(path: str) -> dict[str, list[InstalledLibrary]]:
    """What was found before, by a digest of the RECORD."""
    contents = read_checked(path) if path else None
    if contents is None:
        return {}
    return {
        key: [InstalledLibrary(*row) for row in rows] for key, rows in json.loads(contents).items()
    }
