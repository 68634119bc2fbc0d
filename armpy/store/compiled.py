"""Compiled parts on disk: what a backend wrote down of a part, in a file of code and one of data.

Notes
-----
A file is believed if it is sound (see `armpy.store.entries`), was written for the same contents
(`Key.contents`), and in one go with the part's other files. Everything else is a miss with its
reason, and what is made anew takes its place.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

from armpy.backend.caches import model_name
from armpy.store.entries import Entries
from armpy.store.settings import CompilationCaching
from armpy.types import BackendId

_MAKING_BYTES = 16
_KINDS = "model0", "data0"
NAME = "compiled parts"
"""What the cache is called."""


@dataclass(frozen=True, slots=True)
class Key:
    """Key of a part's files: their name, and the digest of what they were made of.

    Parameters
    ----------
    name : bytes, 32
    contents : bytes, 32
        Digest of all that the backend's answer depends on.
    """

    name: bytes
    contents: bytes


@dataclass(frozen=True, slots=True)
class CompiledFiles:
    """Contents of the two cache files of one compiled part.

    Parameters
    ----------
    model : sequence of bytes
        What describes the part, and its code.
    data : sequence of bytes
        What is large: constants, for example.

    References
    ----------
    NNAPI ``modelCache`` and ``dataCache``.
    """

    model: Sequence[bytes]
    data: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class LookedUp:
    """Outcome of looking up a part.

    Parameters
    ----------
    files : CompiledFiles, optional
        None if there is nothing that can be used.
    reason : str
        Why; empty if there is something.
    making : bytes
        Tells what was written at one time from what was written at another.
    """

    files: CompiledFiles | None
    reason: str = ""
    making: bytes = b""


class CompiledParts:
    """The compiled parts in a folder.

    Parameters
    ----------
    entries : Entries
    backend_id : str
        Whose they are.
    """

    def __init__(self, entries: Entries, backend_id: BackendId) -> None:
        self._entries = entries
        self._prefix = prefix_of(backend_id)

    @classmethod
    def of(cls, caching: CompilationCaching | None, backend_id: BackendId) -> CompiledParts | None:
        """Those of a backend that settings mean; None if nothing is to be kept."""
        place = None if caching is None else caching.resolved()
        if caching is None or place is None:
            return None
        folder, limit_bytes = place
        if caching.token is not None:
            return cls(TokenEntries(folder), backend_id)
        return cls(_entries_in(folder, limit_bytes), backend_id)

    def look_up(self, key: Key) -> LookedUp:
        """The files of a part, if both are there and can be believed."""
        found: list[list[bytes]] = []
        makings: set[bytes] = set()
        missing: list[str] = []
        for kind in _KINDS:
            one = self._entries.look_up(self._prefix + kind, key.name.hex())
            if one.parts is None:
                missing.append(one.reason)
                continue
            if len(one.parts) < 2:
                return LookedUp(None, "a file has another layout")
            contents, making, *payload = map(bytes, one.parts)
            # The name may come from a token that the application uses for two models.
            if contents != key.contents:
                return LookedUp(None, "it was made of something else, or for another machine")
            makings.add(making)
            found.append(payload)
        if missing:
            whole = len(missing) == len(_KINDS)
            return LookedUp(None, missing[0] if whole else f"a file is missing: {missing[0]}")
        # Two processes may write the same part, and each have put one of its files last.
        if len(makings) != 1:
            return LookedUp(None, "its files were not written together")
        return LookedUp(CompiledFiles(*found), making=makings.pop())

    def keep(self, key: Key, files: CompiledFiles, description: str) -> bool:
        """Write the files of a part; whether both are kept now."""
        # At random, as another process may write the same part at the same moment.
        making = os.urandom(_MAKING_BYTES)
        for kind, payload in zip(_KINDS, (files.model, files.data), strict=True):
            parts = [key.contents, making, *payload]
            name = self._prefix + kind
            if not self._entries.write(name, key.name.hex(), parts, description, model_name()):
                return False
        return True

    def making(self, key: Key, deadline_s: float | None) -> AbstractContextManager[bool]:
        """Make a part while nobody else does; whether that is so, as `locks.locked` says."""
        return self._entries.making(f"{self._prefix}part", key.name.hex(), deadline_s)


class TokenEntries(Entries):
    """Entries in a folder of the application's, with NNAPI's names and no limit.

    Notes
    -----
    The folder is not made. Nothing is deleted there that was not written under the same name.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, sys.maxsize, NAME)

    def _path(self, kind: str, key: str) -> Path:
        """Two letters per byte of the key; 1 for a model's file, 2 for one of data; its number."""
        letters = "".join(
            chr(ord("A") + (byte & 15)) + chr(ord("A") + (byte >> 4)) for byte in bytes.fromhex(key)
        )
        stem = kind.rstrip("0123456789")
        code = 1 if stem.endswith("model") else 2
        return self._folder / f"{letters}{code}{kind[len(stem) :]}"

    def _make_room(self) -> int:
        """Drop nothing."""
        return self._limit_bytes

    def _make_folder(self) -> None:
        """Leave that to the application."""


def prefix_of(backend_id: BackendId) -> str:
    """What names of a backend's files begin with."""
    return f"{quote(backend_id, safe='')}+"  # which no quoted id has


def compiled_cache(backend_id: BackendId = "") -> Entries | None:
    """All compiled parts, or those of one backend, for people; None if nothing is kept."""
    place = CompilationCaching().resolved()
    if place is None:
        return None
    return Entries(*place, NAME, prefix_of(backend_id) if backend_id else "")


# One for the process, or each compilation would begin to count anew; few folders are in use.
@lru_cache(maxsize=8)
def _entries_in(folder: Path, limit_bytes: int) -> Entries:
    """The entries of a folder, which remember how much was written since they listed it."""
    return Entries(folder, limit_bytes, NAME)
