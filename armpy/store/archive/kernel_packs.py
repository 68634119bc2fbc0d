"""Kernel packs: files with the compiled code that models of many kinds have in common.

A pack is a container (`armpy.store.archive.container`) for one target of one backend. Its section
``code`` holds the kernels' code in the order of their names, which puts similar ones beside each
other, cut into blocks that are compressed (xz). ``blocks`` has a record for each block: the place
and size of the compressed bytes, the uncompressed size, and the SHA-256 of the compressed bytes.
``index`` has a record for each kernel, in the order of their keys: 16 bytes of the name's SHA-256,
the block's number, and the place and size within the block. ``names`` is for people. So a process
that needs thirty kernels of some thousand inflates a few blocks.
"""

from __future__ import annotations

import hashlib
import logging
import os
import struct
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
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

try:
    import lzma
except ImportError:
    _HAS_LZMA = False
else:
    _HAS_LZMA = True

VARIABLE = "ARMPY_KERNELS"
"""Environment variable with packs, or folders of them, separated as in ``PATH``; or ``off``."""

SUFFIX = ".kernels"

RESTORE = "Run: armpy doctor, which says how to restore it"
"""Fix for a damaged pack that comes with a backend; the doctor knows the command."""

_CODE, _BLOCKS, _INDEX, _NAMES = "code", "blocks", "index", "names"
_KEY_BYTES = 16
_RECORD = struct.Struct("<16sIII")
_BLOCK = struct.Struct("<QII32s")
_BLOCK_BYTES = 1 << 19
"""A block ends with the kernel that reaches this size, uncompressed: larger ones save little."""
_LARGEST_PACK = 1 << 28
_LARGEST_BLOCK = 1 << 26
"""Uncompressed: a damaged record must not make a few bytes inflate to any number."""

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
        self._blocks = container.checked(_BLOCKS)
        is_whole = not (len(self._index) % _RECORD.size or len(self._blocks) % _BLOCK.size)
        if not (isinstance(about, dict) and is_whole):
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

    def find(self, names: Iterable[str]) -> dict[str, bytes]:
        """The code of those kernels that are there, by name."""
        places = {name: place for name in names if (place := self._place_of(name))}
        needed = {number for number, _, _ in places.values()}
        blocks = {number: self._inflated(number) for number in needed}
        codes: dict[str, bytes] = {}
        for name, (number, begin, size) in places.items():
            codes[name] = blocks[number][begin : begin + size]
            if len(codes[name]) != size:
                self._container.refuse(f"kernel '{name[:80]}' is outside of its block")
        return codes

    def check(self) -> None:
        """Read every kernel."""
        names = self.names()
        if {_key(name) for name in names} != {self._key_at(n) for n in range(len(self))}:
            self._container.refuse("its names are not those of its index")
        self.find(names)

    def _place_of(self, name: str) -> tuple[int, int, int] | None:
        """A kernel's block, and its place and size there; None if it is not in the pack."""
        key = _key(name)
        number = bisect_left(range(len(self)), key, key=self._key_at)
        if number == len(self) or self._key_at(number) != key:
            return None
        _, block, begin, size = _RECORD.unpack_from(self._index, number * _RECORD.size)
        return block, begin, size

    def _key_at(self, number: int) -> bytes:
        begin = number * _RECORD.size
        return self._index[begin : begin + _KEY_BYTES]

    def _inflated(self, number: int) -> bytes:
        """A block as it was before it was compressed."""
        if number >= len(self._blocks) // _BLOCK.size:
            self._container.refuse(f"it has no block {number}")
        begin, size, inflated, digest = _BLOCK.unpack_from(self._blocks, number * _BLOCK.size)
        # The copy was checked: later changes of the file cannot affect it.
        packed = self._container.section(_CODE)[begin : begin + size].tobytes()
        if hashlib.sha256(packed).digest() != digest:
            self._container.refuse(f"the checksum of block {number} is wrong")
        code = _decompressed(packed, min(inflated, _LARGEST_BLOCK) + 1)
        if len(code) != inflated:
            self._container.refuse(f"block {number} cannot be inflated")
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
    records: list[bytes] = []
    blocks: list[bytes] = []
    code, block = bytearray(), bytearray()
    names = sorted(kernels)
    for name in names:
        records.append(_RECORD.pack(_key(name), len(blocks), len(block), len(kernels[name])))
        block += kernels[name]
        if len(block) >= _BLOCK_BYTES or name == names[-1]:
            packed = _compressed(bytes(block))
            digest = hashlib.sha256(packed).digest()
            blocks.append(_BLOCK.pack(len(code), len(packed), len(block), digest))
            code += packed
            block.clear()
    manifest = {
        "kind": KIND_KERNELS,
        "armpy": __version__,
        "backend": backend_id,
        "about": dict(about),
    }
    sections = {
        _INDEX: b"".join(sorted(records)),
        _BLOCKS: b"".join(blocks),
        _NAMES: written_document(names),
        _CODE: bytes(code),
    }
    return write_container(path, manifest, sections)


def packs_of(backend_id: BackendId, own: Sequence[str] = ()) -> tuple[KernelPack, ...]:
    """The packs with a backend's kernels, as in `found_packs`.

    What cannot be used is left out, with a warning: the kernels are compiled then. Code is taken
    from files that no other user can have written, as from compiled models, or that come with the
    backend, as its modules do.

    Parameters
    ----------
    own
        Paths of packs that come with the backend.
    """
    packs = [file.pack for file in found_packs(own) if file.pack is not None]
    return tuple(pack for pack in packs if pack.backend_id == backend_id)


def found_packs(own: Sequence[str] = ()) -> tuple[FoundPack, ...]:
    """Every pack that is looked at, and why those are not used that are not.

    Those of the environment variable come first, then a backend's own.
    """
    return _found(os.environ.get(VARIABLE, "").strip(), tuple(own))


@lru_cache(maxsize=8)
def _found(setting: str, own: tuple[str, ...]) -> tuple[FoundPack, ...]:
    """`found_packs` for a value of the environment variable, each opened once per process."""
    if setting.lower() == "off":
        return ()
    named = [_opened(path, is_trusted=False) for path in _paths(setting)]
    packs = (*named, *(_opened(path, is_trusted=True) for path in own))
    folders: set[str] = set()
    for file in packs:
        if file.reason:
            # A folder's fault concerns everything in it: one line is enough.
            folder = os.path.dirname(file.path)
            level = logging.INFO if folder in folders else logging.WARNING
            fix = "" if file.path in own else f". Correct {VARIABLE}, or unset it"
            _log.log(level, "kernels are not taken from %s: %s%s", file.path, file.reason, fix)
            folders.add(folder)
    return packs


def _paths(setting: str) -> list[str]:
    """Paths of the packs that the environment variable names."""
    paths: list[str] = []
    for place in filter(None, map(str.strip, setting.split(os.pathsep))):
        try:
            names = sorted(name for name in os.listdir(place) if name.endswith(SUFFIX))
            paths += [os.path.join(place, name) for name in names]
        except OSError:  # it is a file; a missing one is reported where it is opened
            paths.append(place)
    return list(dict.fromkeys(paths))


def _opened(path: str, *, is_trusted: bool) -> FoundPack:
    """A pack, or why it is not used; one that is not trusted may be written by nobody else."""
    try:
        if os.path.getsize(path) > _LARGEST_PACK:
            return FoundPack(path, None, f"it is larger than {_LARGEST_PACK >> 20} MiB")
        # Read: copying another file over a mapped one would end the process.
        container = open_container(path, is_mapped=False)
        # Only of files in memory is nothing known, and this one was opened by its path.
        reason = "" if is_trusted or not container.info else why_exposed(path, container.info)
        if reason:
            fix = "Install it as the user who runs armpy or as root, or copy it to a place of yours"
            return FoundPack(path, None, f"{reason}. {fix}")
        return FoundPack(path, KernelPack(container))
    except OSError as error:
        fix = f". {RESTORE}" if is_trusted else ""
        return FoundPack(path, None, f"it cannot be read: {error.strerror}{fix}")
    except ParserError as error:
        return FoundPack(path, None, why_damaged(error, is_own=is_trusted))


def why_damaged(error: ParserError, *, is_own: bool) -> str:
    """Why a pack cannot be read, with the fix; a backend's own packs come with its distribution."""
    text = error.failed.replace("compiled model", "kernel pack")
    expectations = f". Expected {error.expected}; got {error.actual}" if error.expected else ""
    fix = error.fix.replace("armpy compile", "armpy kernels build")
    if is_own and error.where:  # without, it is this Python that lacks something
        fix = RESTORE
    return f"{text}{expectations}" + (f". {fix}" if fix else "")


def _key(name: str) -> bytes:
    """Return the index's key of a name."""
    return hashlib.sha256(name.encode()).digest()[:_KEY_BYTES]


def _compressed(block: bytes) -> bytes:
    """Compress a block."""
    _check_compression()
    # A larger dictionary would take memory where the block is inflated, and find nothing more.
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": max(len(block), 1 << 12)}]
    return lzma.compress(block, filters=filters)


def _decompressed(packed: bytes, limit: int) -> bytes:
    """Up to a number of bytes of a block; none if it is damaged."""
    _check_compression()
    try:
        inflater = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=2 * _LARGEST_BLOCK)
        block = inflater.decompress(packed, limit)
    except lzma.LZMAError:
        return b""
    return block if inflater.eof else b""


def _check_compression() -> None:
    """Raise ParserError if Python was built without the module that compresses blocks."""
    if not _HAS_LZMA:
        raise ParserError(
            "kernel packs cannot be read",
            expected="a Python with the module lzma",
            actual="one that was built without it",
            fix="Install liblzma's headers and build Python again; kernels are compiled until then",
        )
