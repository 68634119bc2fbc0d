"""Programs that came with their code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from armpy_numba_acc.machine.processors.cores import usable_cores
from armpy_numba_acc.runtime.instance import LoadedCode

if TYPE_CHECKING:  # an import here slows every start of a compiled model
    from armpy.backend.programs import SavedProgram
    from armpy_numba_acc.machine.isa import Isa
    from armpy_numba_acc.machine.kernel import Kernel
    from armpy_numba_acc.native.image import LoadedImage
    from armpy_numba_acc.program.program import Program, ProgramTiming


class LoadedProgram:
    """A program that came with its code.

    Parameters
    ----------
    saved : SavedProgram
        Its source.
    addresses : mapping of Kernel to int
        Of all code that it needs.
    image : LoadedImage
        Where that code lies.
    """

    __slots__ = ("_addresses", "_image", "_isa", "_timing", "program", "saved")

    def __init__(
        self,
        saved: SavedProgram,
        program: Program,
        isa: Isa,
        addresses: Mapping[Kernel, int],
        timing: ProgramTiming,
        image: LoadedImage,
    ) -> None:
        self.saved = saved
        self.program = program
        self._isa = isa
        self._addresses = addresses
        self._timing = timing
        self._image = image

    def __str__(self) -> str:
        return f"{self.program}, from a file"

    @property
    def arena_bytes(self) -> int:
        """Working memory of one execution."""
        return self.program.arena_bytes

    def code(self, num_threads: int = 0) -> LoadedCode:
        """Return the code that workloads run.

        Parameters
        ----------
        num_threads
            Most threads of an execution; 0 for as many as there are cores.
        """
        most = num_threads or usable_cores()
        return LoadedCode(
            self.program, self._isa, None, self._addresses, self._timing, most, self._image
        )
