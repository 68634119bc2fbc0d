"""Figures store: measurements of backends' devices, on disk, per machine."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from pathlib import Path

from armpy.backend import cache_directory
from armpy.core.file_ownership import make_own_folder, why_not_own
from armpy.core.machine import machine_identity
from armpy.store.owned_files import write_whole
from armpy.types import BackendId
from armpy_tools.devices.records import DeviceRecord, Fields, record_fields, record_from

_FIGURES = "figures"
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
        record = self._read(backend_id)
        # Another version of a backend can be any faster or slower.
        if record is None or version not in (None, record.version):
            return None
        if record.backend != backend_id:
            _log.warning("the figures of %s are those of %s", backend_id, record.backend)
            return None
        return record

    def write(self, record: DeviceRecord) -> bool:
        """Keep a record in the place of the earlier one; False if that cannot be done."""
        try:
            path = self._path(record.backend)
            make_own_folder(path.parent)
            write_whole(path, [_sealed(record_fields(record), self._machine, record.backend)])
        # Nothing depends on it: where nothing can be kept, the next process measures again.
        except (OSError, RuntimeError) as error:
            _log.warning("the figures of %s cannot be kept: %s", record.backend, error)
            return False
        return True

    def remove(self, backend_id: BackendId) -> bool:
        """Delete the measurements of a backend; return whether there were any."""
        try:
            self._path(backend_id).unlink()
        except (OSError, RuntimeError):
            return False
        return True

    def files(self) -> list[Path]:
        """Every file of this machine, in no order."""
        try:
            return [*self.directory.glob(f"{_FIGURES}/*.json")]
        except (OSError, RuntimeError):
            return []

    def problem_of(self, path: Path) -> str:
        """Why one of `files` cannot be used; empty if it can."""
        try:
            content = path.read_bytes()
            envelope = _checked_envelope(content, self._machine)
            record_from(envelope["body"])
            if path.name != _file_name(envelope["key"]):
                return "it is another one's file"
        except (OSError, ValueError, RecursionError) as error:
            return str(error)
        return ""

    def _path(self, backend_id: BackendId) -> Path:
        """Return where the figures of a backend are kept."""
        return self.directory / _FIGURES / _file_name(backend_id)

    def _read(self, backend_id: BackendId) -> DeviceRecord | None:
        """Read the checked record of a backend."""
        try:
            path = self._path(backend_id)
            with open(path, "rb") as file:
                # The open file is asked, as its name may lead to another one by now.
                if reason := why_not_own(os.fstat(file.fileno())):
                    raise OSError(reason)
                content = file.read(_LARGEST_BYTES)
        except FileNotFoundError:
            return None
        except (OSError, RuntimeError) as error:
            _log.warning("the figures of %s cannot be read: %s", backend_id, error)
            return None
        try:
            return record_from(_unsealed(content, self._machine, backend_id))
        # JSON of many brackets in each other ends in a RecursionError.
        except (ValueError, RecursionError) as error:
            _log.warning("%s is not used and will be made again: %s", path, error)
            return None


def _sealed(body: Fields, machine: str, key: str) -> bytes:
    """A file's content: the body, whose it is, and a checksum over both."""
    envelope = {"format": _FORMAT, "machine": machine, "key": key, "body": body}
    return json.dumps({**envelope, "sha256": _checksum(envelope)}, indent=1).encode()


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
