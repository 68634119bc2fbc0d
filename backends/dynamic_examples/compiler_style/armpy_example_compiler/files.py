"""Programs in compiled models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.backend import (
    IPrograms,
    OptionValues,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
    packed_view,
)
from armpy_example_compiler.program import Program, Windows

_FORMAT = 1


class CompilerPrograms(IPrograms):
    """Saves packed weights, and how they are applied."""

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        """The weights as bytes, everything else as plain data."""
        assert isinstance(program, Program)
        windows = program.windows
        about = {
            "format": _FORMAT,
            "shape": list(program.weights.shape),
            "bounds": [list(pair) for pair in program.bounds],
            "windows": None
            if windows is None
            else [windows.extent, windows.stride, windows.dilation, windows.padding],
        }
        parts = {
            name: np.ascontiguousarray(array, "<f4").reshape(-1).view(np.uint8)
            for name, array in (("weights", program.weights), ("bias", program.bias))
        }
        return SavedProgram(about, parts, views={"weights": _views(program)})

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        """Whether this version has written it."""
        if about.get("format") == _FORMAT:
            return ProgramCheck(ProgramFit.ACCEPTED)
        return ProgramCheck(ProgramFit.REBUILD, "another version of the compiler has made it")

    def load(self, saved: SavedProgram) -> Program:
        """The program; its weights stay where the file is mapped."""
        about: Mapping[str, Any] = saved.about
        weights, bias = (np.frombuffer(saved.parts[name], "<f4") for name in ("weights", "bias"))
        windows = about["windows"]
        return Program(
            weights.reshape(about["shape"]),
            bias,
            None if windows is None else Windows(*map(_tuples, windows)),
            tuple((low, high) for low, high in about["bounds"]),
        )


def _views(program: Program) -> list[dict[str, Any]]:
    """How the layer's own weights lie in the packed ones, so that a file has them once."""
    depth, units = program.weights.shape
    places: npt.NDArray[np.int64] = 4 * np.arange(depth * units).reshape(depth, units)
    if program.windows is None:
        view = packed_view(places.T, np.float32)
    else:
        sizes = zip(program.windows.extent, program.windows.dilation, strict=True)
        kernel = [1 + (extent - 1) // dilation for extent, dilation in sizes]
        by_axis = places.reshape(-1, *kernel, units)
        view = packed_view(by_axis.transpose(3, 1, 2, 0), np.float32)
    return [] if view is None else [view]


def _tuples(value: Sequence[Any]) -> tuple[Any, ...]:
    """Nested lists as nested tuples."""
    return tuple(_tuples(item) if isinstance(item, list) else item for item in value)
