"""Kernel packs: files with the compiled code that models of many kinds have in common.

A pack is a container (`armpy.store.archive.container`) for one target of one backend. Its section
``code`` holds every kernel's code, each compressed by itself (zlib, RFC 1950), and ``index`` a
record for each, in the order of their keys: 16 bytes of the name's SHA-256, the place and size of
the compressed bytes, the uncompressed size, and the SHA-256 of the compressed bytes. ``names`` is
for people. So a process that needs thirty kernels of some thousand reads the index and those.
"""

from __future__ import annotations

import hashlib
import logging
import os
import struct
import zlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from armpy import __version__
from armpy.core.file_ownership import why_exposed
from armpy.errors import ParserError
from armpy.store.archive.container import (
    Container,
    open_container,
    write_container,
    written_document,
)
from armpy.store.archive.magic import KIND_KERNELS

if TYPE_CHECKING:
    from armpy.types import BackendId

VARIABLE = "ARMPY_KERNELS"
"""Environment variable with packs, or folders of them, separated as in ``PATH``; or ``off``."""

PACKAGE = "armpy_kernels"
"""Package of data that the distribution armpy-kernels installs."""

SUFFIX = ".kernels"

_CODE, _INDEX, _NAMES = "code", "index", "names"
_KEY_BYTES = 16
_RECORD = struct.Struct("<16sQII32s")
_LARGEST_PACK = 1 << 28
_LARGEST_CODE = 1 << 26
"""Of one kernel: a damaged index must not make a few bytes inflate to any number."""

_log = logging.getLogger("armpy.store")


class KernelPack:
    """A kernel pack that was opened; raises ParserError if it is damaged, or no kernel pack."""

    def __init__(self, container: Container) -> None:
        manifest = container.manifest
        if manifest.get("kind") != KIND_KERNELS:
            raise ParserError(
                "it is not a kernel pack",
                where=container.where,
                expected="a file that 'armpy kernels build' has written",
                actual=f"a compiled model of kind {str(manifest.get('kind'))[:40]!r}",
            )
        about = manifest.get("about")
        self._container = container
        self._index = container.checked(_INDEX)
        if not isinstance(about, dict) or len(self._index) % _RECORD.size:
            container.refuse("the description of its kernels cannot be read")
        self.where = container.where  # its path
        self.backend_id: BackendId = str(manifest.get("backend"))  # whose kernels they are
        # The backend's own description of their purpose.
        self.about: dict[str, Any] = about  # Any: whatever JSON holds
        self.version = str(manifest.get("armpy"))  # of the armpy that has made it

    def __len__(self) -> int:
        return len(self._index) // _RECORD.size

    @property
    def size_bytes(self) -> int:
        """Size of the file in bytes."""
        return self._container.data.size

    def names(self) -> Sequence[str]:
        """The names of all kernels, in the order of the alphabet."""
        return [str(name) for name in self._container.document(_NAMES)]

    def find(self, name: str) -> bytes | None:
        """A kernel's code; None if it is not there."""
        key = _key(name)
        number = bisect_left(range(len(self)), key, key=self._key_at)
        if number == len(self) or self._key_at(number) != key:
            return None
        _, begin, size, inflated, digest = _RECORD.unpack_from(self._index, number * _RECORD.size)
        # The copy was checked: later changes of the file cannot affect it.
        packed = self._container.section(_CODE)[begin : begin + size].tobytes()
        if hashlib.sha256(packed).digest() != digest:
            self._container.refuse(f"the checksum of kernel '{name[:80]}' is wrong")
        return self._inflated(packed, inflated, name)

    def check(self) -> None:
        """Read every kernel."""
        names = self.names()
        if {_key(name) for name in names} != {self._key_at(n) for n in range(len(self))}:
            self._container.refuse("its names are not those of its index")
        for name in names:
            self.find(name)

    def _key_at(self, number: int) -> bytes:
        begin = number * _RECORD.size
        return self._index[begin : begin + _KEY_BYTES]

    def _inflated(self, packed: bytes, size: int, name: str) -> bytes:
        """Code as it was before it was compressed."""
        inflater = zlib.decompressobj()
        try:
            code = inflater.decompress(packed, min(size, _LARGEST_CODE) + 1)
        except zlib.error:
            code = b""
        if len(code) != size or not inflater.eof:
            self._container.refuse(f"kernel '{name[:80]}' cannot be inflated")
        return code


class FoundPack(NamedTuple):
    """A pack that was looked at."""

    path: str
    pack: KernelPack | None  # none if it is not used
    reason: str = ""  # why it is not used; empty if it is


def write_pack(
    path: str | os.PathLike[str],  # packs in folders are found by the ending `SUFFIX`
    backend_id: BackendId,
    about: Mapping[str, object],  # facts for the backend, in types of JSON
    kernels: Mapping[str, bytes],  # code by name
) -> int:
    """Write a kernel pack; it appears whole, by renaming.

    Returns the size of the file in bytes.
    """
    code, records = bytearray(), []
    for name in sorted(kernels, key=_key):
        packed = zlib.compress(kernels[name], 9)
        digest = hashlib.sha256(packed).digest()
        records.append(_RECORD.pack(_key(name), len(code), len(packed), len(kernels[name]), digest))
        code += packed
    manifest = {
        "kind": KIND_KERNELS,
        "armpy": __version__,
        "backend": backend_id,
        "about": dict(about),
    }
    sections = {
        _INDEX: b"".join(records),
        _NAMES: written_document(sorted(kernels)),
        _CODE: bytes(code),
    }
    return write_container(path, manifest, sections)


def packs_of(backend_id: BackendId) -> tuple[KernelPack, ...]:
    """The packs with a backend's kernels: those of the environment variable, then installed ones.

    What cannot be used is left out, with a warning: the kernels are compiled then. Code is taken
    from files that no other user can have written, as from compiled models.
    """
    packs = [file.pack for file in found_packs() if file.pack is not None]
    return tuple(pack for pack in packs if pack.backend_id == backend_id)


def found_packs() -> tuple[FoundPack, ...]:
    """Every pack that is looked at, and why those are not used that are not."""
    return _found(os.environ.get(VARIABLE, "").strip())


@lru_cache(maxsize=8)
def _found(setting: str) -> tuple[FoundPack, ...]:
    """`found_packs` for a value of the environment variable, each opened once per process."""
    packs = tuple(map(_opened, _paths(setting)))
    folders: set[str] = set()
    for file in packs:
        if file.reason:
            # A folder's fault concerns everything in it: one line is enough.
            folder = os.path.dirname(file.path)
            level = logging.INFO if folder in folders else logging.WARNING
            _log.log(level, "kernels are not taken from %s: %s", file.path, file.reason)
            folders.add(folder)
    return packs


def _paths(setting: str) -> list[str]:
    if setting.lower() == "off":
        return []
    parts = map(str.strip, setting.split(os.pathsep))
    places = [*filter(None, parts), *_installed()]
    paths: list[str] = []
    for place in places:
        try:
            names = sorted(name for name in os.listdir(place) if name.endswith(SUFFIX))
            paths += [os.path.join(place, name) for name in names]
        except OSError:  # it is a file; a missing one is reported where it is opened
            paths.append(place)
    return list(dict.fromkeys(paths))


def _installed() -> list[str]:
    """Folders of the package of data; it is not imported."""
    try:
        spec = find_spec(PACKAGE)
    except Exception as error:  # noqa: BLE001 - whatever the application's finders raise
        _log.warning("no kernels are taken from the installed packages: %r", error)
        return []
    return [] if spec is None else [*(spec.submodule_search_locations or ())]


def _opened(path: str) -> FoundPack:
    """A pack, or why it is not used."""
    try:
        if os.path.getsize(path) > _LARGEST_PACK:
            return FoundPack(path, None, f"it is larger than {_LARGEST_PACK >> 20} MiB")
        # Read: copying another file over a mapped one would end the process.
        container = open_container(path, is_mapped=False)
        # Only of files in memory is nothing known, and this one was opened by its path.
        if container.info is not None and (reason := why_exposed(path, container.info)):
            fix = "Install it as the user who runs armpy or as root, or copy it to a place of yours"
            return FoundPack(path, None, f"{reason}. {fix}")
        return FoundPack(path, KernelPack(container))
    except OSError as error:
        return FoundPack(path, None, f"it cannot be read: {error.strerror}")
    except ParserError as error:
        text = str(error).removeprefix(f"{path}: ")
        return FoundPack(path, None, text.replace("armpy compile", "armpy kernels build"))


def _key(name: str) -> bytes:
    """Return the index's key of a name."""
    return hashlib.sha256(name.encode()).digest()[:_KEY_BYTES]
