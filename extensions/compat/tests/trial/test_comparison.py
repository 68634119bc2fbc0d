"""Answers of two runs are paired and compared."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from armpy_compat.trial.comparison import compare_runs
from armpy_compat.trial.program_runs import ProgramRun
from armpy_compat.trial.recorder import Recorder
from armpy_compat.trial.values import arrays_of


class Session:
    """What runs a model."""


def recorded(folder: Path, *calls: tuple[str, object]) -> ProgramRun:
    """A run of one model, with the digest of the inputs and the answer of each call."""
    folder.mkdir()
    recorder, session = Recorder(str(folder), 0), Session()
    recorder.add_model(session, "engine", b"model", 0.0, lambda _: "")
    for inputs, answer in calls:
        recorder.add_call(session, 1.0, inputs, arrays_of(answer))
    return written(recorder, folder)


def written(recorder: Recorder, folder: Path) -> ProgramRun:
    """The run of which a recorder has recorded the calls."""
    recorder.write()
    return ProgramRun(0, json.loads((folder / "record.json").read_text()), folder, (), "")


def reals(values: list[Any]) -> npt.NDArray[np.float32]:
    """Values as float32."""
    return np.array(values, np.float32)


def compared(folder: Path, one: object, other: object, within: float = 1e-5) -> Any:
    """The comparison of two answers to equal inputs."""
    own, armpy = recorded(folder / "own", ("a", one)), recorded(folder / "armpy", ("a", other))
    (answers,) = compare_runs(own, armpy, within)
    return answers


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        (
            reals([1, 2]),
            reals([[1, 2]]),
            r"output 0 has shape (1, 2), not (2,)",
        ),
        (
            reals([1]),
            np.array([1], np.int32),
            "output 0 has type int32, not float32",
        ),
        (
            reals([np.nan, 1]),
            reals([1, 1]),
            "output 0 has other infinities or NaN",
        ),
        (
            reals([1, 1]),
            reals([np.inf, 1]),
            "output 0 has other infinities or NaN",
        ),
        (np.array(["a"]), np.array(["b"]), "output 0 differs"),
        (np.array([True]), np.array([False]), "output 0 differs"),
        ([np.zeros(1), np.zeros(1)], [np.zeros(1)], "1 outputs instead of 2"),
        (
            reals([100, 0]),
            reals([100, 0.5]),
            "the difference is 0.005",
        ),
        (np.array([1], np.int8), np.array([2], np.int8), "the difference is 1"),
        ({"x": 1.0}, {"y": 1.0}, "output 0 differs"),
    ],
)
def test_what_differs_is_said(tmp_path: Path, one: object, other: object, why: str) -> None:
    answers = compared(tmp_path, one, other)
    assert (answers.total, answers.equal) == (1, 0)
    assert answers.first_difference == f"call 1: {why}"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            reals([np.nan, np.inf, 1]),
            reals([np.nan, np.inf, 1 + 1e-6]),
        ),
        (reals([1000]), reals([1000.009])),
        (np.array([1], np.float16), np.array([1.002], np.float16)),
        (np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)),
        ([{"a": 1.0}], [{"a": 1.0 + 1e-7}]),
    ],
)
def test_differences_within_the_tolerance_are_equal(
    tmp_path: Path, one: object, other: object
) -> None:
    assert compared(tmp_path, one, other).equal == 1


def test_calls_are_paired_by_inputs_then_by_order(tmp_path: Path) -> None:
    own = recorded(tmp_path / "own", ("a", 1.0), ("b", 2.0), ("drifted", 3.0), ("c", 4.0))
    armpy = recorded(tmp_path / "armpy", ("b", 2.0), ("c", 4.0), ("a", 1.0), ("a little", 3.0))
    (answers,) = compare_runs(own, armpy, 0)
    assert (answers.total, answers.equal, answers.identical) == (4, 4, 4)


def test_answers_beyond_the_limit_are_compared_by_their_digests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("armpy_compat.trial.recorder.MOST_BYTES", 8)
    own = recorded(tmp_path / "own", ("a", 1.0), ("b", 2.0), ("c", 3.0))
    armpy = recorded(tmp_path / "armpy", ("a", 1.0), ("b", 2.0), ("c", 3.5))
    (answers,) = compare_runs(own, armpy, 1)
    assert (answers.total, answers.equal, answers.uncompared) == (3, 2, 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked")
def test_calls_of_forked_children_leave_the_answers_of_their_parent_alone(tmp_path: Path) -> None:
    recorder, session = Recorder(str(tmp_path), 0), Session()
    recorder.add_call(session, 1.0, "a", [reals([1, 2])])
    child = os.fork()
    if child == 0:
        try:
            recorder.add_call(session, 1.0, "b", [np.zeros(1 << 16)])
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    recorder.add_call(session, 1.0, "c", [reals([3, 4])])
    run = written(recorder, tmp_path)
    answers = [run.arrays(call) for call in run.calls]
    assert [array.tolist() for arrays in answers for array in arrays or ()] == [[1, 2], [3, 4]]
