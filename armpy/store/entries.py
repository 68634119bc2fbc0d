"""A folder of checked files: whatever happens to it costs time, and never gives a wrong result."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import struct
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from armpy.backend import GroupedCacheEntry
from armpy.core.dataclass import dataclass
from armpy.core.file_ownership import file_in_place_of, make_own_folder
from armpy.ops.operation import Array
from armpy.store.folder_cache import FoundFile, IFolderCache, files_in
from armpy.store.locks import locked
from armpy.store.owned_files import UNFINISHED_SUFFIX, UnusableError, opened, refuse, write_whole

Part: TypeAlias = bytes | Array

ALIGNMENT_BYTES = 64
"""Alignment of every part that is read: a cache line."""

_MAGIC = b"armpyca1"
_HEAD = struct.Struct("<8s32sQQ8x")
"""Magic; SHA-256 of all that follows; bytes of the file; bytes of the JSON that is next."""
_FIRST_CHECKED = 40
# So much is read to list an entry, however large it is.
_LONGEST_JSON = 1 << 16
_LONGEST_DESCRIPTION = 100
_SUFFIX = ".entry"
_LOCK = ".lock"
_STALE_S = 3600.0
"""Age of unfinished files whose writer must have died."""
_SLACK = 32
"""Divisor of the limit: a smaller part of it may be written before the folder is listed again."""
_MODELS_PART = 4
"""One model takes at most this part of the limit, in however many shapes it is used."""
_FRESH_S = 86400.0
"""Entries used so recently are not dropped for other entries of their model."""

_log = logging.getLogger("armpy.store")


@dataclass(frozen=True, slots=True)
class _Header:
    """Header of an entry."""

    kind: str
    key: str
    description: str
    group: str
    sizes: tuple[int, ...]

    @property
    def part(self) -> tuple[str, str, str]:
        """Return the key part that it shares with entries for other shapes or options."""
        return self.kind, self.group, self.description


@dataclass(frozen=True, slots=True)
class LookupResult:
    """Outcome of looking up an entry."""

    # Each beginning at a cache line. None if there is nothing that can be used.
    parts: list[Array] | None
    reason: str = ""  # why there is nothing; empty if there is something


class Entries(IFolderCache):
    """Entries in a folder, by kind and key; the one that was used longest ago goes first.

    Files appear whole, by renaming, so that processes need not know of each other. What is
    read is believed only if the file belongs to the user, no other user can write to it, its
    checksum is right, and it says of itself that it is the entry that was asked for. Keys
    name everything that the contents depend on, so an entry is never out of date.

    To list the folder takes as long as there are files. It is done once per thirty-second of the
    limit, so that a write's cost does not grow with the number of entries. A process begins
    anywhere in that: many that write little list as often as one that writes as much as all of
    them. Processes that write side by side may exceed the limit by that much each.

    A model that is used with ever other shapes would drop what all others have kept. So each of its
    parts is kept once, and further entries of the same part as long as the model takes no more than
    a fourth of the limit. A large entry beyond that is not written, unless it takes the place of
    others that have not been used for a day; of small ones, those go that were used longest ago,
    when the folder is listed.
    """

    def __init__(
        self, folder: Path, limit_bytes: int, name: str = "compiled", prefix: str = ""
    ) -> None:
        self._folder = folder  # made when something is written
        self._name = name  # for people
        # Which of them are listed, checked and cleared: those of kinds that begin so.
        self._prefix = prefix
        self._limit_bytes = limit_bytes  # of all entries together
        self._problem = ""
        # At random, or of many processes that write little, none would ever list the folder.
        self._unlisted_bytes = limit_bytes // _SLACK * os.urandom(1)[0] // 256

    @property
    def name(self) -> str:
        """Name of the entries."""
        return self._name

    @property
    def location(self) -> str:
        """The folder."""
        return str(self._folder)

    @property
    def limit_bytes(self) -> int:
        """Limit in bytes of all entries together."""
        return self._limit_bytes

    @property
    def problem(self) -> str:
        """Why the last entry could not be written, such as ``Read-only file system``; or empty."""
        return self._problem

    @property
    def model_limit_bytes(self) -> int:
        """Limit in bytes of all entries of one model."""
        return self._limit_bytes // _MODELS_PART

    def read(self, kind: str, key: str) -> list[Array] | None:
        """Read the value of a key, as `look_up` finds it; None if nothing can be used."""
        return self.look_up(kind, key).parts

    def look_up(self, kind: str, key: str) -> LookupResult:
        """Return the value of a key, or the reason why it cannot be used."""
        path = self._path(kind, key)
        try:
            header, parts = _parsed(_contents(path, self._limit_bytes))
            # Another entry's file may have been given this name.
            if (header.kind, header.key) != (kind, key):
                refuse("it is another entry")
        except FileNotFoundError:
            return LookupResult(None, "there is none")
        except (OSError, MemoryError, UnusableError) as error:
            reason = str(error) or type(error).__name__
            _log.info("%s is not used: %s", path, reason)
            return LookupResult(None, reason)
        with contextlib.suppress(OSError):  # where nothing can be written, nothing is dropped
            # Says when it was used last: many systems keep no time of reading.
            os.utime(path)
        return LookupResult(parts)

    def write(
        self,
        # `kind` and `key`: letters and digits.
        kind: str,
        key: str,
        parts: Sequence[Part],
        description: str,  # for people; the end of a long one is left out
        group: str = "",  # what it is summed up with for people: the name of a model, as a rule
    ) -> bool:
        """Keep something, if that can be done.

        Returns whether it is kept now.
        """
        try:
            shown, summed = description[:_LONGEST_DESCRIPTION], group[:_LONGEST_DESCRIPTION]
            header = _Header(kind, key, shown, summed, ())
            size = self._write(self._path(kind, key), header, parts)
            self._unlisted_bytes -= size
            if self._unlisted_bytes < 0:
                self._unlisted_bytes = self._make_room()
        except OSError as error:
            problem = error.strerror or repr(error)
            if not self._problem:
                self._warn(problem)
            self._problem = problem
            return False
        self._problem = ""
        return size > 0

    def _warn(self, problem: str) -> None:
        """Warn that nothing can be written to the folder, with the fix if it is known."""
        if file := file_in_place_of(self._folder):
            fix = "remove the file, or set ARMPY_CACHE_DIR to a folder"
            warn_not_kept(f"{file} is a file and not a folder", fix)
        else:
            warn_not_kept(f"{self._folder}: {problem}")

    @contextlib.contextmanager
    def making(self, kind: str, key: str, deadline_s: float | None = None) -> Iterator[bool]:
        """Make an entry under its lock; parameters and result as for `locks.locked`."""
        with contextlib.suppress(OSError):
            self._make_folder()
        with locked(self._folder / f"{kind}-{key}{_LOCK}", deadline_s) as is_held:
            yield is_held

    def clear(self) -> int:
        """Delete every entry, and unfinished ones."""
        paths = [path for path, _ in self.entry_files()]
        unfinished = [] if self._prefix else [path for path, _ in self._files(UNFINISHED_SUFFIX)]
        for path in [*paths, *unfinished]:
            path.unlink(missing_ok=True)
        return len(paths)

    def _path(self, kind: str, key: str) -> Path:
        return self._folder / f"{kind}-{key}{_SUFFIX}"

    def _write(self, path: Path, header: _Header, parts: Sequence[Part]) -> int:
        """Write a file and put it in its place; how many bytes it has, 0 if there is no room."""
        arrays = [np.frombuffer(part, np.uint8) for part in parts]
        pieces = _pieces(header, arrays)
        size = sum(map(len, pieces))
        # Before anything is written: an entry without room must not drop others.
        if size > self._limit_bytes or not self._has_room(path, header, size):
            return 0
        self._make_folder()
        write_whole(path, pieces)
        return size

    def _make_folder(self) -> None:
        make_own_folder(self._folder)

    def _has_room(self, path: Path, header: _Header, size: int) -> bool:
        """Return whether a model may have one more entry, after its unused ones are dropped."""
        # For small ones the folder is not listed here: `_make_room` does it in its turn.
        if not header.group or size <= self._limit_bytes // _SLACK:
            return True
        others = [
            (other, info, peeked)
            for other, info in self._files()
            if other != path and (peeked := _peeked(other)).group == header.group
        ]
        twins = [(other, info) for other, info, peeked in others if peeked.part == header.part]
        excess = sum(info.st_size for _, info, _ in others) + size - self.model_limit_bytes
        while excess > 0 and twins and time.time() - twins[-1][1].st_mtime > _FRESH_S:
            other, info = twins.pop()
            excess -= info.st_size
            with contextlib.suppress(OSError):
                other.unlink(missing_ok=True)
        # The only entry of its part is kept however large: without it every start would compile.
        if excess > 0 and twins:
            _log.info("%s is not kept: '%s' has its share of the cache", path, header.group)
            return False
        return True

    def _drop_beyond_shares(self, files: Sequence[FoundFile]) -> list[FoundFile]:
        """Drop what models have beyond their shares; the files that are left."""
        used: dict[str, int] = {}
        seen: set[tuple[str, str, str]] = set()
        left = []
        for path, info in files:
            header = _peeked(path)
            total = used.get(header.group, 0) + info.st_size
            is_beyond = bool(header.group) and total > self.model_limit_bytes
            if is_beyond and header.part in seen:
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
                continue
            used[header.group] = total
            seen.add(header.part)
            left.append((path, info))
        return left

    def _make_room(self) -> int:
        """Drop the least recently used entries above a limit; return how much may now be added.

        Dropping makes room for a while, too: a full folder would be listed at
        every write otherwise.
        """
        files = self._drop_beyond_shares(self._files())
        slack = self._limit_bytes // _SLACK
        room = self._limit_bytes - sum(info.st_size for _, info in files)
        if room < 0:
            for path, info in reversed(files):
                if room >= slack:
                    break
                room += info.st_size
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
        for path, info in self._files(UNFINISHED_SUFFIX):
            if time.time() - info.st_mtime > _STALE_S:
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
        return min(max(room, 0), slack)

    def _files(self, suffix: str = _SUFFIX) -> list[FoundFile]:
        """Files in the folder, the last used first."""
        files = files_in(self._folder, suffix)
        # Of equal times by name, so that all processes would drop the same ones.
        return sorted(files, key=lambda pair: (-pair[1].st_mtime_ns, pair[0]))

    def _check(self, path: Path) -> _Header:
        """The header of a file whose contents are sound and go with its name."""
        header, _ = _parsed(_contents(path, self._limit_bytes))
        if self._path(header.kind, header.key) != path:
            refuse("it is another entry")
        return header

    def entry_files(self) -> Sequence[FoundFile]:
        """The files of the kinds that are listed, the last used first."""
        return [file for file in self._files() if file[0].name.startswith(self._prefix)]

    def describe(self, file: FoundFile, *, verify: bool) -> GroupedCacheEntry | None:
        """An entry as its file says itself."""
        path, info = file
        description = group = problem = ""
        try:
            header = self._check(path) if verify else _peek(path)
            description, group = header.description, header.group
        except FileNotFoundError:
            return None
        except (OSError, MemoryError, UnusableError) as error:
            problem = str(error) or type(error).__name__
        return GroupedCacheEntry(
            path.name, info.st_size, info.st_mtime, description, problem, group
        )


def _pieces(header: _Header, parts: Sequence[Array]) -> list[bytes | memoryview]:
    """A file's contents, in pieces to write one after the other."""
    texts = [header.kind, header.key, header.description, header.group]
    text = json.dumps([*texts, [part.size for part in parts]]).encode()
    body: list[bytes | memoryview] = [text, _padding(len(text))]
    for part in parts:
        body += [part.data, _padding(part.size)]
    size = _HEAD.size + sum(map(len, body))
    # The lengths are under the checksum too: they say where parts begin.
    lengths = _HEAD.pack(b"", b"", size, len(text))[_FIRST_CHECKED:]
    digest = hashlib.sha256(lengths)
    for piece in body:
        digest.update(piece)
    return [_MAGIC, digest.digest(), lengths, *body]


def _padding(size: int) -> bytes:
    """Zeros up to where the next part begins."""
    return bytes(-size % ALIGNMENT_BYTES)


def _contents(path: Path, largest: int) -> Array:
    """A file's bytes, if it is the user's own."""
    with opened(path) as handle:
        size = os.fstat(handle).st_size
        if not _HEAD.size <= size <= largest:
            refuse(f"its size of {size} bytes cannot be right")
        _check_size(os.read(handle, _HEAD.size), size)  # before there is memory for all of it
        os.lseek(handle, 0, os.SEEK_SET)
        contents = _aligned(size)
        with open(handle, "rb", buffering=0, closefd=False) as file:
            view, count = contents.data, 0
            # The system may give less than was asked for.
            while count < size and (more := file.readinto(view[count:])):
                count += more
        if count < size:
            refuse("it is being shortened")
        return contents


def _aligned(size_bytes: int) -> Array:
    """Memory that begins at a cache line."""
    memory: Array = np.empty(size_bytes + ALIGNMENT_BYTES, np.uint8)
    skip = -int(memory.ctypes.data) % ALIGNMENT_BYTES
    return memory[skip : skip + size_bytes]


def _peek(path: Path) -> _Header:
    """The header of a file, without reading all of it."""
    with opened(path) as handle:
        start = os.read(handle, _HEAD.size + _LONGEST_JSON)
        return _header(start, os.fstat(handle).st_size)[0]


def _peeked(path: Path) -> _Header:
    """The header of a file, without any words if it cannot be read."""
    try:
        return _peek(path)
    except (OSError, UnusableError):
        return _Header("", "", "", "", ())


def _check_size(contents: bytes, size: int) -> int:
    """Check that a file is as large as it says; the length of its text."""
    if len(contents) < _HEAD.size or not contents.startswith(_MAGIC):
        refuse("it is of another kind")
    _, _, said_size, num_text = _HEAD.unpack_from(contents)
    if said_size != size:
        refuse("it is not whole")
    return int(num_text)


def _header(contents: bytes, size: int) -> tuple[_Header, int]:
    """Read a file's header, and the places of its parts."""
    num_text = _check_size(contents, size)
    text = contents[_HEAD.size : _HEAD.size + num_text]
    if len(text) != num_text:
        refuse("it is not whole")
    try:
        kind, key, description, group, sizes = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise UnusableError("its description cannot be read") from error
    named = all(isinstance(word, str) for word in (kind, key, description, group))
    if not named or not isinstance(sizes, list) or not all(type(s) is int for s in sizes):
        refuse("its description cannot be parsed")
    header = _Header(kind, key, description, group, tuple(sizes))
    return header, _HEAD.size + num_text + len(_padding(num_text))


def _parsed(contents: Array) -> tuple[_Header, list[Array]]:
    """A file's header and parts, checked."""
    said = bytes(contents[8:_FIRST_CHECKED])
    if hashlib.sha256(contents[_FIRST_CHECKED:].data).digest() != said:
        refuse("its checksum is wrong")
    header, start = _header(bytes(contents[: _HEAD.size + _LONGEST_JSON]), contents.size)
    parts = []
    for size in header.sizes:
        if not 0 <= size <= contents.size - start:
            refuse("it is not whole")
        parts.append(contents[start : start + size])
        start += size + len(_padding(size))
    return header, parts


def warn_not_kept(
    reason: str,
    fix: str = "set ARMPY_CACHE_DIR to a folder that can be written",
    what: str = "nothing is kept",
) -> None:
    """Warn, once per process, that what is made has to be made anew by each start."""
    if reason in _REASONS:
        return
    # What else cannot be kept mostly has the same cause.
    level = logging.INFO if _REASONS else logging.WARNING
    _REASONS.add(reason)
    _log.log(level, "%s: %s. Each start compiles anew; %s", what, reason, fix)


_REASONS: set[str] = set()
"""Reasons that `warn_not_kept` has named in this process."""
