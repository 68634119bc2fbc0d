"""Journals: files beside results that say whose they are, and how far they have come."""

from __future__ import annotations

import json
import os
import stat
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from armpy.errors import InvalidArgumentError
from armpy.store.owned_files import write_whole

_KIND = "armpy job 1"
"""First of a journal; the number changes with its form."""

_SUM_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Checkpoint behind some pictures, from which a job can go on.

    Parameters
    ----------
    done : int
        Pictures of the job so far.
    end : int
        Bytes of the file of results so far.
    crc : int
        CRC-32 of these.
    failed : tuple of int
        Numbers of the pictures that could not be used, of those since the last checkpoint.
    used : int
        How many could.
    judged : tuple of (tuple of int or None)
        Truth, answer and rank of each that could, where truths are known.
    files : tuple of (str, int)
        Paths and sizes of files of these pictures.
    layout : tuple, optional
        How the table of results is laid out.
    """

    done: int = 0
    end: int = 0
    crc: int = 0
    failed: tuple[int, ...] = ()
    used: int = 0
    judged: tuple[tuple[int, int, int] | None, ...] = ()
    files: tuple[tuple[str, int], ...] = ()
    layout: tuple[str, int] | None = None


class Journal:
    """A journal that is written to.

    Parameters
    ----------
    path : Path
        It is there.

    Notes
    -----
    Each checkpoint is a line of its own with a checksum, written behind what it tells of: a line
    that is whole tells of what is there.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")

    def append(self, checkpoint: Checkpoint) -> None:
        """Write the next checkpoint."""
        self._file.write(_line(asdict(checkpoint)))
        self._file.flush()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def begin_journal(path: Path, facts: Mapping[str, str]) -> None:
    """Make a journal of a job that has done nothing, in one step.

    Parameters
    ----------
    path : Path
    facts : mapping of str to str
        All that its results depend on.
    """
    write_whole(path, [_line({"kind": _KIND, "facts": dict(facts)})])


def read_journal(path: Path) -> tuple[dict[str, str], Iterator[tuple[int, Checkpoint]]]:
    """What job a journal is of; each checkpoint with the bytes of the journal up to its end.

    Notes
    -----
    A line that is torn or damaged ends it, as what comes behind it has nothing to go by.

    Raises
    ------
    InvalidArgumentError
        If it is no journal, or not a regular file.
    """
    documents = _documents(path)
    _, first = next(documents, (0, {}))
    if first.get("kind") != _KIND:
        raise InvalidArgumentError(
            "not the journal of a job of this armpy",
            where=str(path),
            expected=_KIND,
            fix="Delete it and leave --resume out to begin anew",
        )
    return first["facts"], ((end, _checkpoint(document)) for end, document in documents)


def check_same_job(path: Path, before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Check that a job is the one that a journal is of.

    Raises
    ------
    InvalidArgumentError
        If it is not; it says what differs.
    """
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if names:
        raise InvalidArgumentError(
            f"the job that stopped was another one: it differs in {', '.join(names)}",
            where=f"--resume: {path}",
            expected="; ".join(f"{name}: {before.get(name, 'not given')}" for name in names),
            actual="; ".join(f"{name}: {now.get(name, 'not given')}" for name in names),
            fix="Go on with what it was begun with, or delete that file to begin anew",
        )


def _line(document: Mapping[str, object]) -> bytes:
    """A document in a line, behind its checksum."""
    text = json.dumps(document, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _documents(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:  # Any: as JSON has them
    """The documents of whole lines, each with the place of the line's end."""
    _check_regular(path)
    end = 0
    with path.open("rb") as file:
        for line in file:
            checksum, text = line[:_SUM_DIGITS], line[_SUM_DIGITS + 1 : -1]
            if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(text):
                return
            end += len(line)
            yield end, json.loads(text)


def _check_regular(path: Path) -> None:
    """Check that a journal is a regular file: reading a pipe or a device might never end."""
    mode = path.lstat().st_mode
    if not stat.S_ISREG(mode):
        raise InvalidArgumentError(
            "the journal of the job is not a regular file",
            where=str(path),
            expected="a file that armpy run has written",
            actual=f"a file of mode {stat.filemode(mode)}",
            fix="Delete it and leave --resume out to begin anew",
        )


def _checkpoint(document: Mapping[str, Any]) -> Checkpoint:  # Any: as JSON has them
    """A checkpoint of its document, in which tuples have become lists."""
    judged = tuple(None if one is None else tuple(one) for one in document["judged"])
    files = tuple((path, size) for path, size in document["files"])
    layout = document["layout"] and tuple(document["layout"])
    changed = {"failed": tuple(document["failed"]), "judged": judged, "files": files}
    return Checkpoint(**{**document, **changed, "layout": layout})


@dataclass(frozen=True, slots=True)
class Remnant:
    """Part of a job's results that can be relied on.

    Parameters
    ----------
    last : Checkpoint
        Behind its last picture.
    journal_end : int
        Bytes of the journal up to there.
    written : int
        Pictures whose results were there, some of which are computed again.
    """

    last: Checkpoint
    journal_end: int
    written: int


def find_remnant(journal: Path, results: Path | None) -> Remnant:
    """Find out how much of a job is there and as it was written.

    Parameters
    ----------
    journal : Path
    results : Path, optional
        The file that the checkpoints count the bytes of.

    Notes
    -----
    The last picture that could be used is always done again, with all behind it: what a report
    says of the model comes from running it.
    """
    _, checkpoints = read_journal(journal)
    last, end = Checkpoint(), _heading_end(journal)
    found = Remnant(last, end, 0)
    checker = _PrefixChecker(results)
    try:
        for next_end, checkpoint in checkpoints:
            if not checker.reaches(checkpoint) or not _are_there(checkpoint):
                break
            if checkpoint.used:
                found = Remnant(last, end, checkpoint.done)
            last, end = checkpoint, next_end
    finally:
        checker.close()
    return Remnant(found.last, found.journal_end, last.done)


def _heading_end(journal: Path) -> int:
    """Bytes of a journal's first line."""
    return next(_documents(journal))[0]


def _are_there(checkpoint: Checkpoint) -> bool:
    """Whether the files of a checkpoint's pictures are there in their sizes."""
    try:
        return all(os.stat(path).st_size == size for path, size in checkpoint.files)
    except OSError:
        return False


class _PrefixChecker:
    """Compares a file with the checksums of its beginnings, reading it once."""

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("rb") if path is not None and path.is_file() else None
        self._at = self._crc = 0

    def reaches(self, checkpoint: Checkpoint) -> bool:
        """Whether the file is what it was up to a checkpoint; asked in their order."""
        while self._file is not None and self._at < checkpoint.end:
            piece = self._file.read(min(checkpoint.end - self._at, 1 << 20))
            if not piece:
                break
            self._at += len(piece)
            self._crc = zlib.crc32(piece, self._crc)
        return (self._at, self._crc) == (checkpoint.end, checkpoint.crc)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
