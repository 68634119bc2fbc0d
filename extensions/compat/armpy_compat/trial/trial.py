"""A trial: a program run in turns on its own engine and on armpy."""

from __future__ import annotations

import os
import stat
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from armpy.errors import ArmpyError
from armpy_compat.program import compiled_program
from armpy_compat.trial.engine_calls import ENGINES
from armpy_compat.trial.program_runs import ProgramRun, ProgramStarter
from armpy_compat.trial.trial_result import SIDES, TrialResult, result_of


class TrialError(ArmpyError):
    """A program computes nothing on its own engine that armpy could be compared with."""


def try_program(
    program: str,
    arguments: Sequence[str] = (),
    *,
    rounds: int = 3,
    within: float = 1e-5,
    stdin: str | None = None,
    timeout_s: float = 600,
    progress: Callable[[str], None] = lambda _: None,
) -> TrialResult:
    """Run a program on its own engine and on armpy, and compare answers and times.

    Parameters
    ----------
    program : str
        Path of a program that imports an engine of `ENGINES`.
    arguments : sequence of str
        The program's own.
    rounds : int
        Runs on each side, in turns. Times are of those after the first one.
    within : float
        Largest difference of equal answers, relative to an answer's largest number where that is
        above 1.
    stdin : str, optional
        File that every run reads as standard input; empty if left out.
    timeout_s : float
        Longest time of a run.
    progress : callable
        Called with a line before each run.

    Raises
    ------
    TrialError
        If it is not a regular file or a Python program, the program's engine is missing, or the
        program calls no model.
    OSError
        If the program cannot be read.
    """
    _check_program(program)
    runs: dict[str, list[ProgramRun]] = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory(prefix="armpy-try-") as folder:
        starter = ProgramStarter(program, arguments, Path(folder), stdin, timeout_s)
        for number in range(rounds):
            for side in SIDES:
                name = "armpy" if side == "armpy" else "its own engine"
                progress(f"run {number + 1} of {rounds} on {name}")
                # A program that uses no model of TensorFlow may use the rest of it.
                used = {model["engine"] for run in runs["own"][:1] for model in run.models}
                replaces = side == "armpy" and ENGINES["tensorflow"] in used
                runs[side].append(starter.run(side, number, replaces_tensorflow=replaces))
                if number == 0:
                    _check_installed(program, runs[side][0])
                if side == "own" and number == 0:
                    _check_own_run(starter, runs[side][0])
        return result_of(program, runs["own"], runs["armpy"], within, has_input=stdin is not None)


def _check_program(program: str) -> None:
    """Refuse a file that is not a Python program.

    Raises
    ------
    TrialError
        If it is not.
    """
    # Before it is opened: a device may have no end, and a pipe is read once.
    if not stat.S_ISREG(os.stat(program).st_mode):
        raise TrialError("it is not a regular file", where=program, expected="a Python file")
    try:
        with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
            compiled_program(program)
    except (SyntaxError, ValueError) as error:
        raise TrialError(
            f"it is not a Python program ({error})",
            where=program,
            expected=f"a Python file that runs a model of {', '.join(ENGINES)}",
        ) from error


def _check_installed(program: str, run: ProgramRun) -> None:
    """Refuse a run that ended as an engine, or armpy's part for it, is not installed.

    Raises
    ------
    TrialError
        If it did.
    """
    if run.raised["type"] != "ModuleNotFoundError":
        return
    missing = run.raised["module"]
    if missing in (*ENGINES, "armpy_onnx"):
        raise TrialError(f"the program needs {missing}, which is not installed", where=program)


def _check_own_run(starter: ProgramStarter, run: ProgramRun) -> None:
    """Refuse a program that computes nothing on its own engine.

    Raises
    ------
    TrialError
        If it does not.
    """
    program = starter.program
    if run.record.get("is_armpy"):
        raise TrialError(
            "the program runs on armpy already, without this command",
            where=program,
            fix="Remove the line that installs armpy_compat, or the package armpy-pyarmnn",
        )
    if not run.record:
        raise TrialError(
            f"on its own engine the program {run.ending}",
            where=program,
            expected="a program that ends by itself",
            actual=run.error_text,
        )
    if run.calls:
        return
    engines = [ENGINES[name] for name in run.record.get("engines", ())]
    names = " and ".join(engines) or "none of the engines"
    did = "called none of its models" if run.models else "loaded no model"
    raise TrialError(
        f"the program {did}: it imported {names}, and {run.ending}",
        where=program,
        expected=f"a program that runs, not in child processes, a model of {', '.join(ENGINES)}",
    )
