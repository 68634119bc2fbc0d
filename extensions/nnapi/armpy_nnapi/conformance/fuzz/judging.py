"""Judges the models that bytes stand for."""

from __future__ import annotations

import hashlib
from pathlib import Path

from armpy.core.dataclass import dataclass
from armpy.core.shell import shell_command
from armpy.execution import RuntimeOptions
from armpy.types import BackendId
from armpy_conformance.result import CaseResult
from armpy_conformance.workers import LostItem
from armpy_nnapi.conformance.fuzz.byte_random import model_of_bytes
from armpy_nnapi.conformance.fuzz.result import Finding
from armpy_nnapi.conformance.random_graphs.runner import GraphJudge, crashed


def name_of(data: bytes) -> str:
    """A name for bytes that nothing else has."""
    return f"fuzz_{hashlib.sha256(data).hexdigest()[:12]}"


class BytesJudge:
    """Compares a backend with CpuRef on models of bytes.

    Parameters
    ----------
    folder : Path
        Where the smallest parts of failures are kept as test vectors.
    """

    def __init__(self, backend_id: BackendId, options: RuntimeOptions, folder: Path) -> None:
        self._judge = GraphJudge(backend_id, options, folder)

    def __call__(self, data: bytes) -> CaseResult:
        """Return the outcome of the model; the name of the bytes is in the case's id."""
        return self._judge.judge_model(model_of_bytes(data), name_of(data))

    def is_bad(self, data: bytes) -> bool:
        """Return whether the backend fails, without looking for the smallest part."""
        model = model_of_bytes(data)
        return self._judge.judge_model(model, name_of(data), shrinks=False).outcome.is_bad


@dataclass(frozen=True, slots=True)
class Search:
    """Search for failures: the backend under test, and the folder of findings."""

    backend_id: BackendId
    options: RuntimeOptions
    folder: Path
    arguments: tuple[str, ...] = ()  # the command line's, by which backends are found

    def finding(self, data: bytes, result: CaseResult) -> Finding:
        """Keep the bytes of a failure, and say how it is seen again."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name_of(data)}.bin"
        path.write_bytes(data)
        command = ["armpy", "conformance", "fuzz", "--backend", self.backend_id]
        command += ["--reproduce", str(path), *self.arguments]
        return Finding(
            result.outcome.value, result.operation, result.text, str(path), shell_command(command)
        )

    def of_lost(self, lost: LostItem[bytes]) -> CaseResult:
        """The result of bytes whose model took its process with it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        name = name_of(lost.item)
        return crashed(model_of_bytes(lost.item), name, lost.reason, self.folder)
