"""Digest of all that decides which backends and plugins there are, for keys of caches."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from hashlib import sha256

from armpy.core.file_ownership import links_to
from armpy.plugins.discovery.entry_point_cache import InstalledEntryPoints, installed
from armpy.plugins.discovery.references import find_top_module, is_own_file, module_locations

_PREFIX = "ARMPY_"
_ASIDE = ("_CACHE", "ARMPY_SYSTEM_TRACE", "ARMPY_VLOG")
"""Variables with these in their names set where and how much is cached, and the logs."""

_DIRECTORIES = "ARMPY_DYNAMIC_BACKENDS_PATH"
_TRUST_FILE = "ARMPY_TRUST_FILE"
_MODULES = ("_backend", "_common")
"""What names of modules in directories have in them."""


def environment_digest(found: InstalledEntryPoints | None = None) -> bytes:
    """Digest of what decides which backends and plugins are found with options left out.

    Parameters
    ----------
    found : InstalledEntryPoints, optional
        The installed plugins; discovered if left out.

    Returns
    -------
    bytes, 32
        SHA-256. Another one if a distribution was installed, removed, or upgraded; if a file of a
        backend's or plugin's package has changed, a library of a distribution, or a module in the
        directories that the environment names; if the trust file says anything else; or if a
        variable ``ARMPY_...`` has another value, without those of caches and of logging.

    Notes
    -----
    Files are identified by size, inode and times, and not read. Those of armpy, of its own backends
    and extensions are not looked at: their version identifies them. Nor are those of packages
    that a plugin imports; their versions count.
    """
    digest = sha256()
    for fact in _facts(installed() if found is None else found):
        digest.update(repr(fact).encode(errors="surrogatepass") + b"\n")
    return digest.digest()


def _facts(entries: InstalledEntryPoints) -> Iterator[object]:
    # The user counts, as trust depends on the owner.
    yield "armpy environment 1", sys.version, getattr(os, "geteuid", int)()
    yield entries
    yield from (_module(reference) for reference in sorted({e.value for e in entries.entry_points}))
    yield from (_tree(library.path) for library in entries.libraries)
    for name in sorted(os.environ):
        if name.startswith(_PREFIX) and not any(part in name for part in _ASIDE):
            yield name, os.environ[name]
    yield from (_directory(path) for path in os.environ.get(_DIRECTORIES, "").split(os.pathsep))
    yield _trust_file(os.environ.get(_TRUST_FILE, ""))


def _module(reference: str) -> object:
    spec = find_top_module(reference)
    places = module_locations(spec)
    # Their version identifies them, and starts would pay for hundreds of looks at files.
    if spec is not None and is_own_file(spec.origin):
        return reference, places
    return reference, [_tree(place) for place in places]


def _directory(path: str) -> object:
    try:
        names = sorted(name for name in os.listdir(path) if any(m in name for m in _MODULES))
    except OSError:
        return path, None
    return path, _owner(path), [_tree(os.path.join(path, name)) for name in names]


def _trust_file(path: str) -> object:
    """Read the trust file, which is small."""
    try:
        with open(path, "rb") as file:
            contents = file.read()
    except OSError:
        contents = None
    return path, os.path.realpath(path), _owner(path), contents


def _tree(path: str) -> object:
    from armpy.plugins.discovery.module_files import module_places  # noqa: PLC0415 - seldom needed

    try:
        places = [place for place in module_places(path) if "__pycache__" not in place]
        links = [(link, _owner(link)) for link in links_to(path)]
    except OSError as error:
        return path, str(error)
    return os.path.realpath(path), [_state(place) for place in places], links


def _state(path: str) -> object:
    try:
        info = os.stat(path)
    except OSError:
        return path, None
    if stat.S_ISDIR(info.st_mode):  # which bytecode may be written to
        return path, _owner(path)
    times_ns = info.st_mtime_ns, info.st_ctime_ns
    return path, info.st_dev, info.st_ino, info.st_size, *times_ns, _owner(path)


def _owner(path: str) -> object:
    try:
        # Of a link itself: its owner decides where it leads.
        info = os.lstat(path)
    except OSError:
        return None
    return info.st_uid, info.st_gid, info.st_mode
