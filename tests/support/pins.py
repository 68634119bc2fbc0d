"""Pins for trust files, computed from files as docs/how_to/safe_loading.md says."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path

_WRITTEN_BY_INSTALLERS = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}


def file_pin(path: Path) -> str:
    """The pin of a module in one file, or of a package's folder."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    files = [file for file in path.rglob("*") if file.is_file() and file.suffix != ".pyc"]
    return _pin_of_several({file.relative_to(path).as_posix(): file for file in files})


def distribution_pin(name: str) -> str:
    """The pin of an installed distribution."""
    files = {str(file): Path(str(file.locate())) for file in distribution(name).files or ()}
    return _pin_of_several(
        {
            name: file
            for name, file in files.items()
            if not name.startswith("../bin/")
            and file.suffix != ".pyc"
            and file.name not in _WRITTEN_BY_INSTALLERS
        }
    )


def _pin_of_several(files: Mapping[str, Path]) -> str:
    """The SHA-256 of what ``sha256sum`` prints for files, sorted by name."""
    lines = "".join(f"{file_pin(files[name])}  {name}\n" for name in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()
