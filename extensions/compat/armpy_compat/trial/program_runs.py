"""Runs of a program in processes of their own, and what they recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass

_TAIL_LINES = 12
_MOST_TEXT = 300


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """One run of a program.

    Parameters
    ----------
    status : int or None
        Exit status; negative for a signal, None if the time limit ended it.
    record : mapping
        What `armpy_compat.trial.recorder` wrote; empty if the process could not write it.
    folder : path
        Folder with the recorded answers.
    printed : sequence of str
        Lines that the program wrote to standard output.
    error_text : str
        End of what the program wrote to standard error.
    """

    status: int | None
    record: Mapping[str, Any]  # Any: JSON
    folder: Path
    printed: Sequence[str]
    error_text: str

    @property
    def calls(self) -> Sequence[Mapping[str, Any]]:
        """Calls, in the order of their ends."""
        calls: Sequence[Mapping[str, Any]] = self.record.get("calls", ())
        return calls

    @property
    def models(self) -> Sequence[Mapping[str, Any]]:
        """Models, in the order of their opening."""
        models: Sequence[Mapping[str, Any]] = self.record.get("models", ())
        return models

    @property
    def raised(self) -> Mapping[str, str]:
        """Type, text, module and cause of the exception that ended the program, or empty texts."""
        none = {"type": "", "text": "", "module": "", "cause": ""}
        raised: Mapping[str, str] = self.record.get("ended", none)
        return raised

    @property
    def ending(self) -> str:
        """How the program ended, for people."""
        if self.status is None:
            return "was stopped at the time limit"
        if self.raised["type"]:
            text, cause = (_shortened(self.raised[name]) for name in ("text", "cause"))
            ending = f"ended with {self.raised['type']}: {text}".rstrip(": .")
            return f"{ending}, caused by {cause}".rstrip(": .") if cause else ending
        if self.status < 0:
            return f"was ended by signal {-self.status}"
        if not self.record:
            return f"left no record, and status {self.status}"
        return f"ended with status {self.status}"

    def arrays(self, call: Mapping[str, Any]) -> list[npt.NDArray[Any]] | None:
        """Recorded answers of a call; None if they were not kept."""
        if "arrays" not in call:
            return None
        with open(self.folder / "answers.bin", "rb") as file:
            return [_read(file, *entry) for entry in call["arrays"]]


def _shortened(text: str) -> str:
    """The beginning of a text, on one line."""
    return " ".join(text.split())[:_MOST_TEXT]


def _read(file: Any, dtype: str, shape: Sequence[int], place: int) -> npt.NDArray[Any]:
    file.seek(place)
    kind = np.dtype(dtype)
    size = kind.itemsize * int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(file.read(size), kind).reshape(shape)


@dataclass(frozen=True, slots=True)
class ProgramStarter:
    """Starts a program on its own engine or on armpy.

    Parameters
    ----------
    program : str
        Path of the program.
    arguments : sequence of str
    folder : path
        Folder for records, and for armpy's caches: they are empty at the first run.
    stdin : str, optional
        File that every run reads as standard input.
    timeout_s : float
        Longest time of a run.
    """

    program: str
    arguments: Sequence[str]
    folder: Path
    stdin: str | None
    timeout_s: float

    def run(self, side: str, number: int, *, replaces_tensorflow: bool = False) -> ProgramRun:
        """Run the program on ``own`` or ``armpy``, there without TensorFlow where that is asked."""
        folder = self.folder / f"{side}{number}"
        folder.mkdir()
        # Sets of texts have one order on both sides.
        environment = {"PYTHONHASHSEED": "0", **os.environ}
        if side == "armpy":
            environment["ARMPY_CACHE_DIR"] = str(self.folder / "cache")
        # -P: the current folder is not importable, as it is not for `python PROGRAM`.
        engine = f"{side}+tensorflow" if replaces_tensorflow else side
        command = [sys.executable, "-P", "-m", "armpy_compat.trial", engine, str(folder)]
        with (
            open(self.stdin or os.devnull, "rb") as stdin,
            open(folder / "stdout.txt", "wb") as stdout,
            open(folder / "stderr.txt", "wb") as stderr,
        ):
            try:
                status: int | None = subprocess.run(
                    [*command, repr(time.time()), self.program, *self.arguments],
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    env=environment,
                    timeout=self.timeout_s,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                status = None
        path = folder / "record.json"
        record = json.loads(path.read_text("utf-8")) if path.exists() else {}
        printed, errors = (
            (folder / f"{name}.txt").read_text("utf-8", "replace").splitlines()
            for name in ("stdout", "stderr")
        )
        return ProgramRun(status, record, folder, printed, "\n".join(errors[-_TAIL_LINES:]))
