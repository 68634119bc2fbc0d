"""Sessions in prepared files: the ONNX models that they are made of."""

from __future__ import annotations

from collections.abc import Mapping

from armpy.backend import (
    IPrograms,
    IWorkload,
    OptionValues,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
    WorkloadInfo,
)
from armpy_onnxruntime.engine import require
from armpy_onnxruntime.program import Program, ProgramWorkload

_FORMAT = 1


class OnnxPrograms(IPrograms):
    """Saves the ONNX model of a program; ONNX Runtime makes a session of it, without ``onnx``."""

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        """The model, and how many threads its session uses."""
        assert isinstance(program, Program)
        about = {"format": _FORMAT, "num_threads": program.num_threads}
        return SavedProgram(about, {"model": program.model})

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        """Whether this package has written it; models run on every processor."""
        if about.get("format") != _FORMAT:
            return ProgramCheck(ProgramFit.REBUILD, "another version of the backend has made it")
        wanted = options.get("num_threads", about.get("num_threads"))
        if wanted != about.get("num_threads"):
            return ProgramCheck(ProgramFit.REBUILD, "it is for another number of threads")
        return ProgramCheck(ProgramFit.ACCEPTED)

    def load(self, saved: SavedProgram) -> Program:
        """A session of the model; raises BackendUnavailableError without ONNX Runtime."""
        require("onnxruntime")
        return Program(bytes(saved.parts["model"]), int(str(saved.about["num_threads"])))

    def create_workload(
        self, program: object, info: WorkloadInfo, options: OptionValues
    ) -> IWorkload:
        """What runs the session."""
        assert isinstance(program, Program)
        return ProgramWorkload(program)
