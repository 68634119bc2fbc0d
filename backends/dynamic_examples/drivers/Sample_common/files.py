"""Programs in files: what a driver keeps of what it compiled."""

from __future__ import annotations

from collections.abc import Mapping

from armpy.backend import IPrograms, OptionValues, ProgramCheck, ProgramFit, SavedProgram
from armpy.errors import BackendCapabilityError

from .program import FORMAT, Program

_CONSTANTS = "constants"


class SamplePrograms(IPrograms):
    """Writes programs down as plain data: a structure, and the constants' elements."""

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        """Write a program down."""
        if not isinstance(program, Program):
            return None
        return SavedProgram(program.structure, {_CONSTANTS: program.elements})

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        """Look whether a program is written as this version writes."""
        if about.get("format") == FORMAT:
            return ProgramCheck(ProgramFit.ACCEPTED)
        reason = f"the format is {about.get('format')!r}, not {FORMAT!r}"
        return ProgramCheck(ProgramFit.REBUILD, reason)

    def load(self, saved: SavedProgram) -> Program:
        """Read a program; nothing in it is executed or believed unseen.

        Raises
        ------
        BackendCapabilityError
            If it is no such program.
        """
        try:
            return Program.read(saved.about, bytes(saved.parts[_CONSTANTS]))
        except (KeyError, ValueError) as error:
            raise BackendCapabilityError(f"the file holds no program: {error!r}") from error
