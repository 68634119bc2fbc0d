"""Index of what installed distributions announce, so that a start need not look through them all.

`importlib.metadata` reads a file of every distribution, and importing it takes longer than that.
What it finds is kept in armpy's cache directory with the state of everything that it would look at:
which distributions are where on ``sys.path``, and when the files that name them and what they
announce have changed. A start whose state is the same takes what was kept. All others look through
the distributions, and so does one whose ``sys.meta_path`` has finders with distributions of their
own.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import PathFinder

from armpy.core import late
from armpy.core.file_ownership import cache_folder, make_own_folder
from armpy.core.records import record
from armpy.core.sha256 import sha256
from armpy.store.owned_files import UnusableError, is_switched_off, opened, refuse, write_whole

BACKENDS_GROUP = "armpy.backends"
"""Distributions announce backends here: ``CpuRef = "armpy_reference:ReferenceBackend"``."""

PLUGINS_GROUP = "armpy.plugins"
"""And modules or objects that implement hooks here: ``toy = "acme_toy"``."""

HOOK_OF_GROUP = {
    PLUGINS_GROUP: "",
    "armpy.commands": "armpy_add_cli_commands",
    "armpy.front_ends": "armpy_register_front_end",
}
"""Groups of plugins with the one hook that they implement; empty if they may implement any.

A plugin of one hook is not imported for others, so that starts which do not ask that hook are as
fast with it as without it.
"""

PROGRAMS_GROUP = "armpy.programs"
"""And what loads a backend's saved programs, by the backend's id."""

GROUPS = (BACKENDS_GROUP, *HOOK_OF_GROUP, PROGRAMS_GROUP)

FOLDER = "installed"
"""Of armpy's cache directory: one file for each set of places that distributions are in."""

_SETTLED_NS = 2_000_000_000
"""What has changed so recently may change once more without another time: FAT counts in 2 s."""

# Environments come and go, and nothing tells which of them are gone.
_MOST_FILES = 32
# Room for thousands of announcements; of a damaged file no more is read.
_LARGEST_BYTES = 1 << 20
_VERSION = "armpy installed 1"
_INFOS = (".dist-info", ".egg-info")
# A look-up of four letters spares each of a folder's thousands of names the real check.
_ENDS = frozenset(map("".join, itertools.product("iI", "nN", "fF", "oO")))
"""Of their names, and of few others."""


@record
class InstalledEntryPoint:
    """One thing that an installed distribution announces.

    Parameters
    ----------
    group : str
        One of `GROUPS`.
    name : str
        A backend's id, or a plugin's name.
    value : str
        Object reference.
    distribution, version : str
        Of what brings it; empty if its metadata is damaged.
    """

    group: str
    name: str
    value: str
    distribution: str
    version: str


@record
class InstalledEntryPoints:
    """InstalledEntryPoints entry points and distributions.

    Parameters
    ----------
    entry_points : tuple of InstalledEntryPoint
        In the order of `importlib.metadata.entry_points`.
    distributions : str
        Digest of the names and versions of all distributions, and of where they are.
    """

    entry_points: tuple[InstalledEntryPoint, ...]
    distributions: str


@record
class _InstalledState:
    """State of all that `importlib.metadata` would look at.

    `places` is a digest of where distributions are, `names` of what they are called there, `all` of
    all that and of their files' states.
    """

    places: str
    names: str
    all: str
    latest_ns: int

    def is_settled(self) -> bool:
        """Whether whatever changes from now on gets another time."""
        return self.latest_ns < time.time_ns() - _SETTLED_NS


def installed_entry_points() -> tuple[InstalledEntryPoint, ...]:
    """What installed distributions announce in armpy's groups; see `installed`."""
    return installed().entry_points


def installed() -> InstalledEntryPoints:
    """What is installed; nothing of it is imported.

    Notes
    -----
    Whatever happens to the file that was kept costs time only. ``ARMPY_COMPILED_CACHE=off`` neither
    reads nor writes it.
    """
    state = _state()
    if state is None:
        return InstalledEntryPoints(_look_through(), _names_of_all())
    return InstalledEntryPoints(_entry_points(state), state.names)


def _entry_points(state: _InstalledState) -> tuple[InstalledEntryPoint, ...]:
    """What was kept of a state, else what is found now and may be kept."""
    folder = None if is_switched_off(os.environ) else _folder()
    if folder is None:
        return _look_through()
    path = os.path.join(folder, state.places)
    kept = _recall(path, state)
    if kept is not None:
        return kept
    found = _look_through()
    # What has changed meanwhile may be in one of the two only.
    if state.is_settled() and state == _state():
        _remember(path, state, found)
    return found


def _look_through() -> tuple[InstalledEntryPoint, ...]:
    """Ask every distribution."""
    from importlib.metadata import MetadataPathFinder, entry_points  # noqa: PLC0415 - what we spare

    # It knows folders by times in seconds, and so may not see what was just installed.
    MetadataPathFinder().invalidate_caches()
    announced = entry_points()
    known: dict[int, tuple[str, str]] = {}
    found = []
    for group in GROUPS:
        for entry in announced.select(group=group):
            # The entry points keep them alive, so that no identity is given twice.
            identity = id(entry.dist)
            if identity not in known:  # to read it takes as long as to find it
                known[identity] = _described(entry.dist)
            found.append(InstalledEntryPoint(group, entry.name, entry.value, *known[identity]))
    return tuple(found)


def _described(distribution: object) -> tuple[str, str]:
    """Name and version of a distribution; empty if its metadata is damaged."""
    try:
        metadata = getattr(distribution, "metadata", None)
        name = metadata["Name"] if metadata else None
        return (str(name), str(metadata["Version"])) if metadata and name else ("", "")
    except Exception as error:  # noqa: BLE001 - plugin boundary: one damaged distribution
        late.getLogger("armpy.plugins").debug("metadata cannot be read: %s", error)
        return "", ""


def _names_of_all() -> str:
    """Digest of all distributions, each asked."""
    from importlib.metadata import distributions  # noqa: PLC0415 - as above

    return _digest([_described(distribution) for distribution in distributions()])


def _folder() -> str | None:
    """Where the index is; None if the user has no home."""
    try:
        return os.path.join(cache_folder(), FOLDER)
    except RuntimeError:
        return None


def _state() -> _InstalledState | None:
    """What decides what `importlib.metadata` would find; None if more than ``sys.path`` does."""
    if not _is_path_all() or not all(type(place) is str for place in sys.path):
        return None
    seen = _Seen()
    places = [_VERSION, sys.version]
    for place in dict.fromkeys(sys.path):
        count = len(seen.facts)
        with suppress(OSError, ValueError):  # nothing is found there, then
            seen.place(place or os.curdir)
        if len(seen.facts) > count:
            places.append(os.path.abspath(place))
    named = _digest(places)
    names = _digest([named, seen.names])
    return _InstalledState(named, names, _digest([names, seen.facts]), seen.latest_ns)


def _is_path_all() -> bool:
    """Whether distributions are found on ``sys.path`` alone, by Python's own finder."""
    others = (finder for finder in sys.meta_path if finder is not PathFinder)
    return (
        PathFinder in sys.meta_path
        and hasattr(PathFinder, "find_distributions")
        and all(getattr(finder, "find_distributions", None) is None for finder in others)
    )


class _Seen:
    """The state of files, and when any of them has changed last."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.facts: list[object] = []
        self.latest_ns = 0

    def place(self, place: str) -> None:
        """Look at what there is of distributions in a folder or an archive.

        Raises
        ------
        OSError, ValueError
            If there is no such place.
        """
        try:
            # As it is listed: of two distributions of one name, the first counts.
            names = [n for n in os.listdir(place) if n[-4:] in _ENDS and _is_info(n)]
        # An archive, which distributions may be in: it changes as a whole.
        except NotADirectoryError:
            self._file(place)
            return
        if names:
            self.names.append(place)
            self.latest_ns = max(self.latest_ns, os.stat(place).st_mtime_ns)
        for name in names:
            self.names.append(name)
            self._info(f"{place}/{name}", has_name=name.endswith(_INFOS))

    def _info(self, info: str, *, has_name: bool) -> None:
        """Look at a distribution's metadata, as far as they can matter.

        Notes
        -----
        Its name and version matter if it announces anything. The name alone, by which those on
        ``sys.path`` hide later ones, is the folder's as a rule.
        """
        if self._file(f"{info}/entry_points.txt") or not has_name:
            for file in ("METADATA", "PKG-INFO", ""):
                if self._file(f"{info}/{file}"):
                    return

    def _file(self, path: str) -> int:
        """Look at a file; how many bytes it has, 0 if there is none."""
        try:
            info = os.stat(path)
        except OSError:
            # That there is none counts: it may appear.
            self.facts.append(None)
            return 0
        # Both times: tools can set the first one back, but not the second.
        changed_ns = (info.st_mtime_ns, info.st_ctime_ns)
        self.facts.append((info.st_dev, info.st_ino, info.st_size, *changed_ns))
        self.latest_ns = max(self.latest_ns, *changed_ns)
        return info.st_size


def _is_info(name: str) -> bool:
    """Whether `importlib.metadata` may take something in a folder for a distribution."""
    return name.lower().endswith((*_INFOS, "egg-info"))


def _digest(parts: Sequence[object]) -> str:
    """Short name of what some values are."""
    return sha256(repr(parts).encode(errors="surrogatepass")).hexdigest()[:32]


def _recall(path: str, state: _InstalledState) -> tuple[InstalledEntryPoint, ...] | None:
    """What was kept of this state; None if there is nothing that can be believed."""
    with (
        # Whatever is wrong with the file, looking through the distributions is the answer.
        suppress(OSError, UnusableError, ValueError, TypeError, RecursionError),
        opened(path) as handle,
    ):
        digest, _, text = os.read(handle, _LARGEST_BYTES).partition(b"\n")
        if digest.decode() != sha256(text).hexdigest():
            refuse("its checksum is wrong")
        known, entries = json.loads(text)
        if known == state.all:
            return tuple(InstalledEntryPoint(*entry) for entry in entries)
    return None


def _remember(path: str, state: _InstalledState, found: tuple[InstalledEntryPoint, ...]) -> None:
    """Keep what was found, if that can be done; few files are kept."""
    rows = [[e.group, e.name, e.value, e.distribution, e.version] for e in found]
    text = json.dumps([state.all, rows]).encode()
    # Another process may tidy up at the same time, and without the file nothing is lost but time.
    with suppress(OSError):
        folder = os.path.dirname(path)
        make_own_folder(folder)
        write_whole(path, [sha256(text).hexdigest().encode(), b"\n", text], ".tmp")
        files = sorted(os.scandir(folder), key=lambda file: file.stat().st_mtime_ns)
        for file in files[:-_MOST_FILES]:
            os.unlink(file)
