"""A backend that compiles for as long as a test wants, in any process, and reports it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from armpy_testing.backends.dynamic_modules import module_source, write_module

ADDED = 1000.0
"""Added by its programs to the sum of their inputs, which marks their answers."""

_SOURCE = """
import os
import time
from pathlib import Path

import numpy as np

from armpy.backend import (
    IPrograms,
    IWorkload,
    OptimizationViews,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
    Substitution,
)
from armpy.ops import PreCompiled

FOLDER = Path({folder!r})


class Workload(IWorkload):
    def execute(self, inputs, outputs):
        total = sum(handle.map(write=False) for handle in inputs)
        for handle in outputs:
            handle.map(read=False)[...] = total + {added}
        for handle in (*inputs, *outputs):
            handle.unmap()


class Programs(IPrograms):
    def save(self, program, options):
        if (FOLDER / "keeps_nothing").exists():
            return None
        return SavedProgram({{}}, {{"code": np.frombuffer(b"code", np.uint8)}})

    def check(self, about, options):
        return ProgramCheck(ProgramFit.ACCEPTED)

    def load(self, saved):
        return "program"


class Gated(Backend):
    def get_programs(self):
        return Programs()

    def create_workload_factory(self, network):
        factory = super().create_workload_factory(network)
        make = factory.create_workload

        def create_workload(operation, info):
            return Workload() if isinstance(operation, PreCompiled) else make(operation, info)

        factory.create_workload = create_workload
        return factory

    def optimize_subgraph_view(self, view, request):
        with open(FOLDER / "begun", "a") as file:
            file.write(f"{{os.getpid()}}\\n")
        while not (FOLDER / "gate").exists():
            time.sleep(0.01)
        if (FOLDER / "fails").exists():
            raise ValueError("the compiler has a mistake")
        with open(FOLDER / "compiled", "a") as file:
            file.write(f"{{os.getpid()}}\\n")
        shapes = tuple(value.info.known_shape for value in view.outputs)
        replaced = Substitution.by_operation(view, PreCompiled("program", shapes))
        return OptimizationViews([replaced])


def backend_factory():
    return Gated()
"""


@dataclass(frozen=True, slots=True)
class GatedCompiler:
    """The backend ``Gated``, as a file that every process finds."""

    folder: Path  # its notes

    @classmethod
    def install(cls, folder: Path, monkeypatch: pytest.MonkeyPatch) -> GatedCompiler:
        """Put it into a folder, which is looked into from now on."""
        notes = folder / "notes"
        notes.mkdir()
        cls(notes).add("Gated")
        monkeypatch.setenv("ARMPY_DYNAMIC_BACKENDS_PATH", os.fspath(folder / "backends"))
        monkeypatch.setenv("ARMPY_CACHE_DIR", os.fspath(folder / "cache"))
        return cls(notes)

    def add(self, backend_id: str) -> None:
        """Put another backend beside it that waits at the same gate."""
        extra = _SOURCE.format(folder=os.fspath(self.folder), added=ADDED)
        name = f"test_{backend_id.lower()}_backend"
        write_module(self.folder.parent / "backends", name, module_source(backend_id, extra=extra))

    def open_gate(self) -> None:
        """Let running compilations end."""
        self._note("gate")

    def fail(self) -> None:
        """Let compiling fail from now on."""
        self._note("fails")

    def keep_nothing(self) -> None:
        """Let no compiled part be kept."""
        self._note("keeps_nothing")

    def _note(self, name: str) -> None:
        """Leave a note for the backend."""
        (self.folder / name).touch()

    @property
    def begun(self) -> list[int]:
        """Processes that have begun to compile a part."""
        return self._pids("begun")

    @property
    def compiled(self) -> list[int]:
        """Processes that have compiled a part."""
        return self._pids("compiled")

    def _pids(self, name: str) -> list[int]:
        """Numbers in a file."""
        path = self.folder / name
        return [int(line) for line in path.read_text().split()] if path.exists() else []
