"""Finds out what of a compiled model would be used here, and why the rest would not."""

from __future__ import annotations

import os
from collections.abc import Sequence

import armpy
from armpy.core.dataclass import dataclass
from armpy.errors import ParserError
from armpy.model.archive.examined_programs import (
    LONGEST,
    Machine,
    ProgramExamination,
    examine_programs,
)
from armpy.plugins import BackendRegistry
from armpy.store.archive.trust import TRUSTED, open_judged


@dataclass(frozen=True, slots=True)
class FileExamination:
    """Examination of a compiled model by the doctor."""

    path: str
    facts: dict[str, str]
    """The file's metadata."""
    uses_code: bool
    """Whether code in it may be used."""
    trust: str
    """Why, or why not."""
    is_refused: bool
    """Whether it is not loaded at all."""
    damage: str
    """A fault in its contents; empty if there is none."""
    programs: tuple[ProgramExamination, ...]
    """In the order of the file."""
    unprepared: int
    """How many parts of the network no program here can be used for; they are prepared anew."""
    remedy: str
    """What to do; empty if there is nothing."""

    @property
    def is_ok(self) -> bool:
        """Return whether it is loaded, and all that is prepared in it and wanted is used."""
        is_loaded = not self.damage and not self.is_refused
        return is_loaded and not (self.uses_code and self.unprepared)


def examine_file(
    path: str | os.PathLike[str],
    registry: BackendRegistry,
    trusted_keys: Sequence[bytes] = (),
    code: str = TRUSTED,
) -> FileExamination:
    """Check all of a compiled model, and ask its backends about their programs."""
    container, verdict = open_judged(path, trusted_keys, code)
    damage = ""
    try:
        container.check()
    except ParserError as error:
        damage = error.failed
    withheld = damage or ("" if verdict.uses_code else verdict.reason)
    programs, unprepared = examine_programs(container, Machine(registry), withheld)
    fix = "" if verdict.error is None else verdict.error.fix
    if damage:
        fix = "Copy the file again, or make it again with armpy compile"
    elif unprepared and verdict.uses_code:
        fix = "Prepare the model for this machine: armpy compile"
    version = str(container.manifest.get("armpy", "unknown"))[:LONGEST]
    made_by = version if version == armpy.__version__ else f"{version}, here {armpy.__version__}"
    return FileExamination(
        os.fspath(path),
        {
            "model": str(container.manifest.get("title", ""))[:LONGEST] or "unnamed",
            "armpy": made_by,
            "size": f"{container.data.size} bytes",
        },
        verdict.uses_code,
        verdict.reason,
        verdict.error is not None,
        damage,
        programs,
        unprepared,
        fix,
    )
