"""Programs in files: a driver's stored compiled parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from armpy.backend import (
    IPrograms,
    OptionValues,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
    packed_view,
)
from armpy.errors import BackendCapabilityError

from .program import FORMAT, Program

_CONSTANTS = "constants"


class SamplePrograms(IPrograms):
    """Writes programs down as plain data: a structure, and the constants' elements."""

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        """Write a program down."""
        if not isinstance(program, Program):
            return None
        parts = {_CONSTANTS: program.elements}
        return SavedProgram(program.structure, parts, views={_CONSTANTS: _views(program)})

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


def _views(program: Program) -> list[dict[str, Any]]:  # Any: what JSON can hold
    """Where each constant lies, so that a file has its elements once."""
    begin, views = 0, []
    for constant in program.constants:
        places = begin + 4 * np.arange(constant.size).reshape(constant.shape)
        views.append(packed_view(places, np.float32))
        begin += 4 * constant.size
    return [view for view in views if view is not None]
