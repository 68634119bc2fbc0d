"""Container of compiled models: a header, a manifest and sections, each with its checksum.

``compiled_models.md`` describes the layout byte by byte. Imports here are paid for at
every start of a prepared model: the standard library's small modules and NumPy.
"""

from __future__ import annotations

import json
import mmap
import os
import stat
import struct
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from armpy.core.file_digest import READ_BYTES
from armpy.errors import InvalidArgumentError, ParserError, full_path, suggest_path
from armpy.store.archive.magic import MAGIC
from armpy.store.owned_files import replacing

if TYPE_CHECKING:
    import numpy.typing as npt

    from armpy.store.archive.signing import FileSignature

    Bytes: TypeAlias = npt.NDArray[np.uint8]
    Source: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | mmap.mmap

VERSION = 4
"""Version of the layout; another one is not read."""

HEADER_BYTES = 256
ALIGNMENT_BYTES = 64
"""Alignment of every section, counted from the file's beginning: a cache line."""

PAGE_BYTES = 4096
"""Alignment of sections of at least this size, so that they are mapped without sharing a page."""

_SIGNED = struct.Struct("<8sIIQQ32s")
"""Magic; version; 0; bytes of the manifest, which follows the header; bytes of the file; SHA-256 of
the manifest. This is what a signature is over."""
_KEY = slice(64, 96)
_SIGNATURE = slice(96, 160)
# A damaged file must not take memory without end before its checksums are looked at.
_AGAIN = "Copy it again, or make it again with armpy compile"
_LARGEST_MANIFEST = 1 << 26
_LARGEST_DOCUMENT = 1 << 26
_LARGEST_COUNT = 1 << 20
_DIGEST_TEXT = 64


class FileSection(NamedTuple):
    """Section of a file: its place, and the digest of its bytes."""

    offset: int
    size: int
    digest: bytes


class Container:
    """A compiled model that was opened; its sections are read-only arrays over the mapped file.

    Attributes
    ----------
    manifest : dict
        The file's metadata, as JSON holds it.
    digest : bytes
        SHA-256 of the manifest, and through it of everything.
    key, signature : bytes
        Ed25519 public key and signature; zeros if the file is not signed.

    Raises
    ------
    ParserError
        If the file is damaged or of another version.
    """

    def __init__(
        self,
        data: Bytes,  # uint8; the whole file
        where: str,  # what messages call it
        # Of the descriptor that was mapped; None for bytes in memory.
        info: os.stat_result | None = None,
        path: str | None = None,  # by which it was opened
    ) -> None:
        self.data = data
        self.where = where
        self.info = info
        self.path = path
        header = data[:HEADER_BYTES].tobytes()
        num_manifest, self.digest = _checked_header(header, data.size, where)
        self.key, self.signature = header[_KEY], header[_SIGNATURE]
        self.signed = header[: _SIGNED.size]
        text = data[HEADER_BYTES : HEADER_BYTES + num_manifest].tobytes()
        # Before it is parsed, so that JSON's reader gets only the original bytes.
        if sha256(text).digest() != self.digest:
            self.refuse("the manifest's checksum is wrong")
        self.manifest: dict[str, Any] = self._manifest(text)
        self._begin = HEADER_BYTES + num_manifest
        self.sections = self._sections(self._begin)

    def section(self, name: str) -> Bytes:
        """The bytes of a section, without checking them; see `check`."""
        entry = self.sections.get(name)
        if entry is None:
            self.refuse(f"it has no section '{name[:80]}'")
        return self.data[entry.offset : entry.offset + entry.size]

    def checked(self, name: str) -> bytes:
        """A copy of a section's bytes, whose checksum is right.

        The copy was checked: later changes of the file cannot affect it.
        """
        copied = self.section(name).tobytes()
        if sha256(copied).digest() != self.sections[name].digest:
            self.refuse(f"the checksum of section '{name[:80]}' is wrong")
        return copied

    def document(self, name: str) -> Any:  # Any: whatever JSON holds
        """Return a section's compressed JSON, checked; see `written_document`."""
        import zlib  # noqa: PLC0415 - a start does not need it

        inflater = zlib.decompressobj()
        try:
            # With a limit, as a few bytes can inflate to any number.
            text = inflater.decompress(self.checked(name), _LARGEST_DOCUMENT)
        except zlib.error as error:
            raise ParserError(
                f"the file is damaged: section '{name[:80]}' cannot be inflated ({error})",
                where=self.where,
            ) from error
        if not inflater.eof or inflater.unused_data:
            self.refuse(f"section '{name[:80]}' is not one compressed text")
        return self._json(text, name)

    def check(
        self,
        leave_out: Sequence[str] = (),  # sections that are checked otherwise
    ) -> None:
        """Check every section's checksum, and that zeros are between them."""
        others, end = set(leave_out), self._begin
        for name, section in self.sections.items():
            # No checksum covers what lies between, so that nothing may lie there.
            if self.data[end : section.offset].any():
                self.refuse(f"there is something between its sections, before '{name[:80]}'")
            end = section.offset + section.size
            if name not in others:
                digest = sha256(self.section(name).data).digest()
                if digest != section.digest:
                    self.refuse(f"the checksum of section '{name[:80]}' is wrong")

    def refuse(self, reason: str) -> NoReturn:
        """Raise the error for a damaged file."""
        raise ParserError(
            f"the compiled model is damaged: {reason}",
            where=self.where,
            fix="Make it again with armpy compile",
        )

    def _json(self, text: bytes, part: str) -> Any:  # Any: whatever JSON holds
        """Read JSON, in which no name comes twice and every number is one."""
        try:
            # Of a name that comes twice, one reader would take the first and another the last.
            return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise ParserError(
                f"the compiled model is damaged: {part} is not JSON ({error})", where=self.where
            ) from error

    def _manifest(self, text: bytes) -> dict[str, Any]:
        manifest = self._json(text, "the manifest")
        if not isinstance(manifest, dict):
            self.refuse("the manifest is not an object")
        return manifest

    def _sections(self, begin: int) -> dict[str, FileSection]:
        """The table of sections: inside the file, in order, none over another."""
        table = self.manifest.get("sections")
        if not isinstance(table, list) or len(table) > _LARGEST_COUNT:
            self.refuse("there is no table of sections")
        sections: dict[str, FileSection] = {}
        for row in table:
            name, section = self._row(row)
            if name in sections or section.offset < begin or section.offset % ALIGNMENT_BYTES:
                self.refuse(f"section '{name[:80]}' cannot be where it is said to be")
            begin = section.offset + section.size
            if begin > self.data.size:
                self.refuse(f"section '{name[:80]}' is not whole")
            sections[name] = section
        if begin != self.data.size:
            self.refuse("data follows its last section")
        return sections

    def _row(self, row: object) -> tuple[str, FileSection]:
        """A row of the table: name, offset, size, SHA-256 in hexadecimal digits."""
        kinds = (str, int, int, str)
        # By exact type: JSON's true is an int to `isinstance`.
        if not isinstance(row, list) or tuple(map(type, row)) != kinds:
            self.refuse("a row of the table of sections is of another form")
        name, offset, size, digits = row
        if offset < 0 or size < 0 or len(digits) != _DIGEST_TEXT:
            self.refuse(f"the row of section '{name[:80]}' cannot be")
        try:
            return name, FileSection(offset, size, bytes.fromhex(digits))
        except ValueError:
            self.refuse(f"the checksum of section '{name[:80]}' is none")


def written_document(document: object) -> bytes:
    """A section with what JSON can hold: UTF-8, compressed by zlib (RFC 1950)."""
    import zlib  # noqa: PLC0415 - few write files

    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    return zlib.compress(text.encode(), 9)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:  # Any: whatever JSON holds
    """An object of JSON, unless a name comes twice."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name comes twice")
    return members


def _no_number(text: str) -> NoReturn:
    """Refuse what Python's own reader takes besides JSON: ``NaN`` and infinities."""
    raise ValueError(f"{text} is not a number")


def open_container(
    source: Source,  # a file is mapped, and must stay as it is while it is used; bytes are copied
    where: str = "",  # what messages call it; the path if left out
    *,
    # Whether a file is mapped; else it is read, and may be changed or cut while it is used.
    is_mapped: bool = True,
) -> Container:
    """Open a compiled model; the header and the manifest are checked, the sections are not."""
    if not isinstance(source, str | os.PathLike):
        return Container(_copied(source), where or "a compiled model in memory")
    where = where or os.fspath(source)
    try:
        handle = os.open(source, READ_BYTES)
    except FileNotFoundError as error:
        raise ParserError(
            "no such file",
            where=where,
            expected="a compiled model",
            actual=f"nothing at {full_path(source)}",
            fix=suggest_path(full_path(source)),
        ) from error
    except (OSError, ValueError) as error:  # the latter if a path has a zero byte
        reason = getattr(error, "strerror", error)
        raise ParserError(f"the file cannot be read: {reason}", where=where) from error
    try:
        # Of the opened file: the path may lead to another file by now.
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            raise ParserError("it is not a regular file", where=where)
        if info.st_size < HEADER_BYTES:
            _checked_header(os.read(handle, HEADER_BYTES), info.st_size, where)
        if not is_mapped:
            # One byte more than there was: a file that has grown since is not whole.
            data = _copied(os.read(handle, info.st_size + 1))
            return Container(data, where, info, os.fspath(source))
        mapped = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # the latter if it has become empty meanwhile
        raise ParserError(f"the file cannot be mapped: {error}", where=where) from error
    finally:
        # The mapping lives without it.
        os.close(handle)
    return Container(np.frombuffer(mapped, np.uint8), where, info, os.fspath(source))


def _copied(source: bytes | bytearray | memoryview | mmap.mmap) -> Bytes:
    """A copy of bytes that begins at a multiple of the alignment."""
    data = np.frombuffer(source, np.uint8)
    # Copied, as the caller may change the bytes, and kernels count on the alignment.
    memory = np.empty(data.size + ALIGNMENT_BYTES, np.uint8)
    skip = -int(memory.ctypes.data) % ALIGNMENT_BYTES
    copied = memory[skip : skip + data.size]
    copied[:] = data
    copied.flags.writeable = False
    return copied


def _checked_header(header: bytes, size: int, where: str) -> tuple[int, bytes]:
    """Bytes of the manifest and its checksum, from a header that fits the file."""
    if not header.startswith(MAGIC):
        raise ParserError(
            "it is not a compiled model",
            where=where,
            fix="armpy compile makes one of a model file, and armpy inspect describes both",
        )
    version = int.from_bytes(header[8:12], "little")
    # Before all else: what follows may lie elsewhere in another version.
    if len(header) >= _SIGNED.size and version != VERSION:
        raise ParserError(
            "the compiled model is of a version that is not read",
            where=where,
            expected=f"version {VERSION}",
            actual=f"version {version}",
            fix="Make it again with this version's armpy compile",
        )
    if len(header) < HEADER_BYTES:
        raise ParserError("the compiled model is damaged: it is not whole", where=where, fix=_AGAIN)
    _, _, zero, num_manifest, said_size, digest = _SIGNED.unpack_from(header)
    if said_size != size:
        raise ParserError(
            "the compiled model is damaged: it is not whole",
            where=where,
            expected=f"{said_size} bytes",
            actual=f"{size} bytes",
            fix=_AGAIN,
        )
    room = min(size - HEADER_BYTES, _LARGEST_MANIFEST)
    if zero or num_manifest > room or any(header[_SIGNATURE.stop :]):
        raise ParserError("the compiled model is damaged: wrong header", where=where, fix=_AGAIN)
    return num_manifest, digest


def write_container(
    path: str | os.PathLike[str],
    manifest: Mapping[str, object],  # what JSON can hold; the table of sections is added
    # Mapping of str to (bytes or ndarray, uint8); in the order in which they are written.
    sections: Mapping[str, bytes | Bytes],
    sign: Callable[[bytes], FileSignature] | None = None,  # signs the first 64 bytes of the file
) -> int:
    """Write a compiled model; it appears whole, by renaming.

    Returns the size of the file in bytes.
    """
    payloads = {name: np.frombuffer(data, np.uint8) for name, data in sections.items()}
    text, places = _laid_out(manifest, payloads)
    end = max([HEADER_BYTES + len(text), *(at + payloads[n].size for n, at in places.items())])
    digest = sha256(text).digest()
    signed = _SIGNED.pack(MAGIC, VERSION, 0, len(text), end, digest)
    header = signed.ljust(HEADER_BYTES, b"\0")
    if sign is not None:
        signed_by = sign(signed)
        key, signature = bytes(signed_by.public_key), bytes(signed_by.signature)
        header = (signed + key + signature).ljust(HEADER_BYTES, b"\0")
    target = os.fspath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        raise InvalidArgumentError(
            "the compiled model cannot be written: the path is not a file",
            where=target,
            fix="Give the name of a file, or one that is not taken",
        )
    try:
        with replacing(target) as file:
            file.write(header + text)
            for name, payload in payloads.items():
                file.write(bytes(places[name] - file.tell()))
                file.write(payload.data)
    except OSError as error:
        folder = os.path.dirname(full_path(target)) or os.curdir
        is_there = os.path.isdir(folder)
        raise InvalidArgumentError(
            f"the compiled model cannot be written: {error.strerror}",
            where=target,
            actual="" if is_there else f"no folder {folder}",
            fix="Write to another folder, which exists and has free space"
            if is_there
            else "Make the folder, or write to another one",
        ) from error
    return end


def _laid_out(
    manifest: Mapping[str, object], payloads: Mapping[str, Bytes]
) -> tuple[bytes, dict[str, int]]:
    """The manifest's text with the table of sections, and where each section begins.

    Offsets are in the text, and depend on its length: room for it is guessed, and made larger as
    long as it is too small.
    """
    digests = {name: sha256(data.data).hexdigest() for name, data in payloads.items()}
    room = 0
    while True:
        begin = HEADER_BYTES + room
        places = {}
        for name, data in payloads.items():
            alignment = PAGE_BYTES if data.size >= PAGE_BYTES else ALIGNMENT_BYTES
            begin += -begin % alignment
            places[name] = begin
            begin += data.size
        table = [[name, places[name], data.size, digests[name]] for name, data in payloads.items()]
        text = json.dumps(
            {**manifest, "sections": table}, allow_nan=False, separators=(",", ":")
        ).encode()
        if len(text) <= room:
            return text.ljust(room), places
        # Some more, as larger offsets have more digits, and the text would be too long again.
        room = len(text) + ALIGNMENT_BYTES
