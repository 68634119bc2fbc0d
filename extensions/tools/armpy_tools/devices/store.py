"""Figures store: measurements of backends' devices, on disk, per machine."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from armpy.backend import cache_directory
from armpy.core.file_ownership import make_own_folder, mark_choices, why_not_own
from armpy.core.machine import machine_identity
from armpy.store.owned_files import write_whole
from armpy.types import BackendId
from armpy_tools.devices.records import DeviceRecord, Fields, record_fields, record_from

T = TypeVar("T")

MOST_ANSWERS = 1000
"""Answers that are kept; those go first that were not asked for the longest time."""

_FIGURES, _ANSWERS = "figures", "answers"
_FORMAT = 1
# Records take kilobytes: a file beyond this is damaged, and must not fill memory.
_LARGEST_BYTES = 4 << 20

_log = logging.getLogger("armpy_tools.devices")


class FiguresStore:
    """Keeps one record per machine and backend.

    Parameters
    ----------
    directory : path, optional
        ``devices`` in armpy's cache directory if left out.
    machine : str, optional
        This machine's identity if left out.

    Notes
    -----
    A file is written beside its place and moved there, and carries its checksum. One that is
    damaged, or another machine's, counts as none, which a warning says; the next calibration
    replaces it. Several threads and processes may use one directory.
    """

    def __init__(
        self, directory: str | os.PathLike[str] | None = None, machine: str | None = None
    ) -> None:
        self._root = Path(directory) if directory is not None else None
        self._machine = machine or machine_identity()

    @property
    def machine(self) -> str:
        """Identity of the machine whose figures it has."""
        return self._machine

    @property
    def directory(self) -> Path:
        """Return the folder of this machine's files; it need not exist.

        Raises
        ------
        RuntimeError
            If nothing says where caches are; see `armpy.backend.cache_directory`.
        """
        # Asked late: without a folder for caches a store can still be made, and has nothing.
        root = self._root if self._root is not None else cache_directory() / "devices"
        return root / self._machine

    def read(self, backend_id: BackendId, version: str | None = None) -> DeviceRecord | None:
        """Read the measurements of a backend; None if there are none, or they cannot be used.

        Parameters
        ----------
        backend_id : str
        version : str, optional
            Measurements of another one do not count; of any if left out.
        """
        record = self._read(_FIGURES, backend_id, record_from)
        # Another version of a backend can be any faster or slower.
        if record is None or version not in (None, record.version):
            return None
        if record.backend != backend_id:
            _log.warning("the figures of %s are those of %s", backend_id, record.backend)
            return None
        return record

    def write(self, record: DeviceRecord) -> bool:
        """Keep a record in the place of the earlier one; False if that cannot be done."""
        return self._write(_FIGURES, record.backend, record_fields(record))

    def remove(self, backend_id: BackendId) -> bool:
        """Delete the measurements of a backend; return whether there were any."""
        try:
            self._path(_FIGURES, backend_id).unlink()
        except (OSError, RuntimeError):
            return False
        return True

    def forget_answers(self) -> int:
        """Forget every answer that was kept for this machine; how many there were."""
        # Models that were kept have been compiled by these answers.
        mark_choices()
        try:
            paths = [*(self.directory / "answers").glob("*.json")]
            for path in paths:
                path.unlink(missing_ok=True)
        except (OSError, RuntimeError) as error:
            _log.warning("the answers cannot be forgotten: %s", error)
            return 0
        return len(paths)

    def recall_answer(self, question: str) -> Fields | None:
        """An answer that was kept; None if there is none, or it is damaged.

        Parameters
        ----------
        question : str
            With all that the answer depends on, figures and versions included.
        """
        answer = self._read(_ANSWERS, question, lambda fields: fields)
        if answer is not None:
            with contextlib.suppress(OSError):  # it may be another user's, or gone
                # Answers are dropped by this time, and reading alone does not move it.
                os.utime(self._path(_ANSWERS, question))
        return answer

    def keep_answer(self, question: str, answer: Fields) -> bool:
        """Keep an answer that took long to find; False if that cannot be done.

        Parameters
        ----------
        question : str
        answer : dict
            A JSON object.
        """
        is_kept = self._write(_ANSWERS, question, answer)
        self._drop_oldest_answers()
        return is_kept

    def files(self) -> list[Path]:
        """Every file of this machine, in no order."""
        try:
            return [*self.directory.glob("*/*.json")]
        except (OSError, RuntimeError):
            return []

    def problem_of(self, path: Path) -> str:
        """Why one of `files` cannot be used; empty if it can."""
        try:
            content = path.read_bytes()
            envelope = _checked_envelope(content, self._machine)
            if path.parent.name == _FIGURES:
                record_from(envelope["body"])
            if path.name != _file_name(envelope["key"]):
                return "it is another one's file"
        except (OSError, ValueError, RecursionError) as error:
            return str(error)
        return ""

    def _drop_oldest_answers(self) -> None:
        """Keep to the number of answers that there may be."""
        try:
            paths = [*(self.directory / _ANSWERS).glob("*.json")]
            if len(paths) <= MOST_ANSWERS:
                return
            paths.sort(key=lambda path: path.stat().st_mtime_ns)
            for path in paths[:-MOST_ANSWERS]:
                path.unlink(missing_ok=True)
        except (OSError, RuntimeError) as error:  # another process drops them, or none may
            _log.debug("answers are not dropped: %s", error)

    def _path(self, kind: str, key: str) -> Path:
        """Return where something of a kind is kept."""
        return self.directory / kind / _file_name(key)

    def _read(self, kind: str, key: str, make: Callable[[Fields], T]) -> T | None:
        """Read the checked value of a key."""
        try:
            path = self._path(kind, key)
            with open(path, "rb") as file:
                # The open file is asked, as its name may lead to another one by now.
                if reason := why_not_own(os.fstat(file.fileno())):
                    raise OSError(reason)
                content = file.read(_LARGEST_BYTES)
        except FileNotFoundError:
            return None
        except (OSError, RuntimeError) as error:
            _log.warning("%s cannot be read: %s", _subject(kind, key), error)
            return None
        try:
            return make(_unsealed(content, self._machine, key))
        # JSON of many brackets in each other ends in a RecursionError.
        except (ValueError, RecursionError) as error:
            _log.warning("%s is not used and will be made again: %s", path, error)
            return None

    def _write(self, kind: str, key: str, body: Fields) -> bool:
        """Write a file in one step."""
        try:
            path = self._path(kind, key)
            make_own_folder(path.parent)
            write_whole(path, [_sealed(body, self._machine, key)])
        # Nothing depends on it: where nothing can be kept, the next process measures again.
        except (OSError, RuntimeError) as error:
            _log.warning("%s cannot be kept: %s", _subject(kind, key), error)
            return False
        return True


def _sealed(body: Fields, machine: str, key: str) -> bytes:
    """A file's content: the body, whose it is, and a checksum over both."""
    envelope = {"format": _FORMAT, "machine": machine, "key": key, "body": body}
    return json.dumps({**envelope, "sha256": _checksum(envelope)}, indent=1).encode()


def _subject(kind: str, key: str) -> str:
    """Return the subject of a message; questions are nothing for people."""
    return f"the figures of {key}" if kind == _FIGURES else "an answer about placement"


def _file_name(key: object) -> str:
    """The name of a key's file."""
    # A question is longer than names may be, and an id is the vendor's, with any character.
    return f"{hashlib.sha256(str(key).encode()).hexdigest()[:32]}.json"


def _unsealed(content: bytes, machine: str, key: str) -> Fields:
    """The body of a file, checked."""
    envelope = _checked_envelope(content, machine)
    # A copied or renamed file is sound, and yet another one's.
    if envelope.get("key") != key:
        raise ValueError("it is of another backend or question")
    body: Fields = envelope["body"]
    return body


def _checked_envelope(content: bytes, machine: str) -> Fields:
    """Return the contents of a file, if it is sound and this machine's."""
    envelope = json.loads(content)
    if not isinstance(envelope, dict) or not isinstance(envelope.get("body"), dict):
        raise ValueError("it is not a file of figures")  # noqa: TRY004 - a file's mistake
    if envelope.pop("sha256", "") != _checksum(envelope):
        raise ValueError("its checksum is wrong")
    if envelope.get("format") != _FORMAT:
        raise ValueError(f"its format is {envelope.get('format')!r}, not {_FORMAT}")
    if envelope.get("machine") != machine:
        raise ValueError("it is of another machine")
    return envelope


def _checksum(envelope: Fields) -> str:
    """SHA-256 of a JSON object, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(envelope, sort_keys=True).encode()).hexdigest()
