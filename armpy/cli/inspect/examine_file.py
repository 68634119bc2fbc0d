# SPDX-License-Identifier: Apache-2.0
"""Finds out what of a compiled model would be used here, and why the rest would not."""

from __future__ import annotations

import os
from collections.abc import Sequence

import armpy
from armpy.backend import NO_OPTIONS, ProgramCheck, ProgramFit
from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError, ParserError
from armpy.plugins import BackendRegistry
from armpy.plugins.proxy.guard import BackendProxy
from armpy.plugins.proxy.guarded_call import ask_method
from armpy.store.archive.container import Container
from armpy.store.archive.trust import TRUSTED, open_judged

USED = "used"
"""A program that is loaded here."""

NOT_USED = "not used"
"""A program that is not, as another of the same layers is, or its code may not be used."""

_LONGEST = 80
"""Of the shown part of a text in a file."""


@dataclass(frozen=True, slots=True)
class ProgramExamination:
    """Examination of a saved program: used, or the reason why not."""

    backend_id: str
    target: str
    status: str
    """`USED`, `NOT_USED`, or the value of a `ProgramFit` that is not an acceptance."""
    reason: str
    """Why it is not used; empty if it is."""
    size_bytes: int
    """Of all its parts."""


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
    programs, unprepared = _programs(container, registry, withheld)
    fix = "" if verdict.error is None else verdict.error.fix
    if damage:
        fix = "Copy the file again, or make it again with armpy compile"
    elif unprepared and verdict.uses_code:
        fix = "Prepare the model for this machine: armpy compile"
    version = str(container.manifest.get("armpy", "unknown"))[:_LONGEST]
    made_by = version if version == armpy.__version__ else f"{version}, here {armpy.__version__}"
    return FileExamination(
        os.fspath(path),
        {
            "model": str(container.manifest.get("title", ""))[:_LONGEST] or "unnamed",
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


def _programs(
    container: Container, registry: BackendRegistry, withheld: str
) -> tuple[tuple[ProgramExamination, ...], int]:
    reports = []
    served: dict[tuple[str, str], bool] = {}
    records = container.manifest.get("programs")
    for record in records if isinstance(records, list) else ():
        if not isinstance(record, dict):
            continue
        part = str(record.get("backend", "")), str(record.get("digest", ""))
        check = _check(registry, part[0], record.get("about"))
        status, reason = check.fit.value, check.reason
        if check.fit is ProgramFit.ACCEPTED:
            status, reason = (NOT_USED, withheld) if withheld else (USED, "")
            if not withheld and served.get(part):
                status, reason = NOT_USED, "another one of the same layers comes before it"
        served[part] = served.get(part, False) or status == USED
        parts = record.get("parts")
        names = map(str, parts.values()) if isinstance(parts, dict) else ()
        sizes = container.sections
        size = sum(sizes[name].size for name in names if name in sizes)
        target = str(record.get("target", ""))[:_LONGEST]
        reports.append(ProgramExamination(part[0][:_LONGEST], target, status, reason, size))
    return tuple(reports), sum(not is_served for is_served in served.values())


def _check(registry: BackendRegistry, backend_id: str, about: object) -> ProgramCheck:
    if not isinstance(about, dict):
        return ProgramCheck(ProgramFit.FOREIGN, "the file's description of it cannot be understood")
    try:
        programs = BackendProxy(registry.get(backend_id)).get_programs()
        if programs is None:
            return ProgramCheck(ProgramFit.REBUILD, "the backend takes no programs from files")
        check: ProgramCheck = ask_method(
            backend_id, ProgramCheck, programs, "check", about, NO_OPTIONS
        )
    except ArmpyError as error:
        return ProgramCheck(ProgramFit.FOREIGN, str(error))
    return check
