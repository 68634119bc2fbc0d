"""Index of installed entry points and libraries: a start need not look through distributions.

`importlib.metadata` reads a file of each distribution, and importing it takes longer than that. Its
answer is kept in armpy's cache directory under a digest of ``sys.path`` and of the times of the
folders on it, which change with each distribution that is installed, replaced or removed. The
``entry_points.txt`` of each distribution counts too: setuptools and the package managers of systems
write into folders that are there. Folders on the path without distributions do not count.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.machinery import PathFinder
from typing import NamedTuple

from armpy.core.file_ownership import cache_folder
from armpy.plugins.discovery.installed_library import InstalledLibrary
from armpy.store.owned_files import is_switched_off, read_checked, write_checked

BACKENDS_GROUP = "armpy.backends"
"""Distributions announce backends here: ``CpuRef = "armpy_reference:ReferenceBackend"``."""

PLUGINS_GROUP = "armpy.plugins"
"""And modules or objects that implement hooks here: ``toy = "acme_toy"``."""

HOOK_OF_GROUP = {
    PLUGINS_GROUP: "",
    "armpy.commands": "armpy_add_cli_commands",
    "armpy.custom_operators": "armpy_register_custom_operators",
    "armpy.front_ends": "armpy_register_front_end",
    "armpy.placement": "armpy_register_placer",
}
"""Groups of plugins with the one hook that they implement; empty if they may implement any.

A plugin of one hook is not imported for others, so that starts which do not ask that hook are as
fast with it as without it.
"""

PROGRAMS_GROUP = "armpy.programs"
"""And what loads a backend's saved programs, by the backend's id."""

LIBRARIES_GROUP = "armpy.libraries"
"""And what opens shared libraries that export a function, by the function's name.

Such a library lies in a directory of backends, or in an installed distribution. The object is
called with its path, and returns a backend's factory, or several in a sequence.
"""

GROUPS = (BACKENDS_GROUP, *HOOK_OF_GROUP, PROGRAMS_GROUP, LIBRARIES_GROUP)

FOLDER = "installed"
"""Of armpy's cache directory: one file for each state of ``sys.path``."""

_SETTLED_NS = 2_000_000_000
"""A file that has changed so recently may change again without another time: FAT counts in 2 s."""

# Environments come and go, and no other file says which of them are gone.
_MOST_FILES = 32
_VERSION = "armpy installed 6"
_INFOS = (".dist-info", "egg-info")

_LIBRARIES_FILE = "libraries"
"""What libraries each distribution was found to have, whatever is installed beside it."""


class InstalledEntryPoint(NamedTuple):
    """One thing that an installed distribution announces."""

    group: str  # one of `GROUPS`
    name: str  # a backend's id, or a plugin's name
    value: str  # object reference
    # Of what brings it; empty if its metadata is damaged.
    distribution: str
    version: str

    @property
    def hook(self) -> str | None:
        """The one hook that a plugin implements; empty for any, None for other entry points."""
        return HOOK_OF_GROUP.get(self.group)


class InstalledEntryPoints(NamedTuple):
    """Installed entry points and libraries, and the distributions beside them."""

    entry_points: tuple[InstalledEntryPoint, ...]  # as `importlib.metadata.entry_points` has them
    distributions: str  # digest of the names and versions of all, and of where they are
    libraries: tuple[InstalledLibrary, ...] = ()


def installed() -> InstalledEntryPoints:
    """Find the installed plugins; none of them is imported.

    A damaged or missing index costs time only. ``ARMPY_COMPILED_CACHE=off`` neither reads nor
    writes it. Distributions that other finders than Python's own may have are never kept.
    """
    state = _path_state()
    if state is None:
        from importlib.metadata import distributions  # noqa: PLC0415 - slow to import

        entries = _look_through()
        names = _digest([_described(d) for d in distributions()])
        return InstalledEntryPoints(entries, names, _libraries(entries, ""))
    names, key, latest_ns = state
    path = kept = ""
    if not is_switched_off(os.environ):
        with suppress(RuntimeError):  # the user has no home
            path = os.path.join(cache_folder(), FOLDER, key)
            kept = os.path.join(cache_folder(), _LIBRARIES_FILE)
    if path and (contents := read_checked(path)) is not None:
        announced, libraries = json.loads(contents)
        entries = tuple(InstalledEntryPoint(*entry) for entry in announced)
        found = tuple(InstalledLibrary(*row) for row in libraries)
        # The key does not change when a missing library comes back, either.
        if not any(row.is_missing and os.path.exists(row.path) for row in found):
            return InstalledEntryPoints(entries, names, found)
    entries = _look_through()
    libraries = _libraries(entries, kept)
    # A change in the meantime may be in the key or in the entries only. The key does not change
    # when a library becomes readable.
    is_settled = latest_ns < time.time_ns() - _SETTLED_NS and not any(r.reason for r in libraries)
    if path and is_settled and state == _path_state():
        write_checked(path, json.dumps([entries, libraries]).encode())
        # The oldest of too many go; another process may delete the same files.
        with suppress(OSError):
            files = sorted(os.scandir(os.path.dirname(path)), key=lambda f: f.stat().st_mtime_ns)
            for file in files[:-_MOST_FILES]:
                os.unlink(file)
    return InstalledEntryPoints(entries, names, libraries)


def _libraries(entries: Sequence[InstalledEntryPoint], kept: str) -> tuple[InstalledLibrary, ...]:
    """Find the libraries that an installed package opens; see `find_libraries`."""
    functions = {entry.name for entry in entries if entry.group == LIBRARIES_GROUP}
    if not functions:
        return ()
    from armpy.plugins.discovery.installed_libraries import find_libraries  # noqa: PLC0415

    announced = {entry.distribution for entry in entries if entry.group == BACKENDS_GROUP}
    return find_libraries(functions, announced, kept)


def _look_through() -> tuple[InstalledEntryPoint, ...]:
    from importlib.metadata import MetadataPathFinder, entry_points  # noqa: PLC0415 - what we spare

    # It knows folders by times in seconds, and so may not see a package that was just installed.
    MetadataPathFinder().invalidate_caches()
    announced = entry_points()
    entries = [(group, entry) for group in GROUPS for entry in announced.select(group=group)]
    # Once each: to read a distribution's metadata takes as long as to find it.
    brought = {id(entry.dist): entry.dist for _, entry in entries}
    described = {identity: _described(distribution) for identity, distribution in brought.items()}
    return tuple(
        InstalledEntryPoint(group, entry.name, entry.value, *described[id(entry.dist)])
        for group, entry in entries
    )


def _described(distribution: object) -> tuple[str, str]:
    """Name and version of a distribution; empty if its metadata is damaged."""
    try:
        metadata = getattr(distribution, "metadata", None)
        name = metadata["Name"] if metadata else None
        return (str(name), str(metadata["Version"])) if metadata and name else ("", "")
    except Exception as error:  # noqa: BLE001 - plugin boundary: one damaged distribution
        import logging  # noqa: PLC0415

        logging.getLogger("armpy.plugins").debug("metadata cannot be read: %s", error)
        return "", ""


def _path_state() -> tuple[str, str, int] | None:
    """Digests of the distributions' places and of all that decides discovery, the last change.

    None if more than ``sys.path``, with Python's own finder, decides.
    """
    others = [finder for finder in sys.meta_path if finder is not PathFinder]
    if (
        len(others) == len(sys.meta_path)
        or not hasattr(PathFinder, "find_distributions")
        or any(getattr(finder, "find_distributions", None) is not None for finder in others)
        or not all(type(place) is str for place in sys.path)
    ):
        return None
    names: list[object] = [_VERSION, sys.version]
    times: list[tuple[int, ...]] = []
    for place in dict.fromkeys(sys.path):
        # Nothing is found in a place that cannot be listed.
        with suppress(OSError, ValueError):
            folder = os.path.abspath(place)
            try:
                # As it is listed: of two distributions of one name, the first counts.
                infos = [n for n in os.listdir(folder) if n.lower().endswith(_INFOS)]
            except NotADirectoryError:  # an archive, which changes as a whole
                infos = [""]
            if infos:
                times.append(_times(folder))
                times += [_times(f"{folder}/{info}/entry_points.txt") for info in infos if info]
                names += [folder, *infos]
    latest_ns = max((max(changed[1:], default=0) for changed in times), default=0)
    return _digest(names), _digest([names, times]), latest_ns


def _times(path: str) -> tuple[int, ...]:
    """Inode and times of a file or folder; empty if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    # Both times: tools can set the first one back, but not the second.
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def _digest(parts: Sequence[object]) -> str:
    return sha256(repr(parts).encode(errors="surrogatepass")).hexdigest()[:32]
