from __future__ import annotations

import json
from pathlib import Path

import pytest

from armpy.cli.__main__ import main

for library in ("click", "rich", "PIL"):
    pytest.importorskip(library)

MODEL = str(Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite")


def test_a_profile_lists_the_slowest_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", MODEL, "--profile", "--repeat", "4", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert len(steps) == 10
    assert {step["backend"] for step in steps} == {"CpuRef"}
    assert [step["count"] for step in steps] == [4] * 10
    shares = [step["share"] for step in steps]
    assert shares == sorted(shares, reverse=True)
    assert 0 < sum(shares) <= 1


def test_a_profile_is_a_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", MODEL, "--profile"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("Slowest steps (10 of 10)")
    assert lines[first + 1].split() == [
        *("share", "mean", "us", "max", "us", "runs", "backend", "step")
    ]
    assert len(lines) == first + 12


def test_a_trace_is_written_where_a_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.json"
    assert main(["run", MODEL, "--profile", str(trace)]) == 0
    assert f"written: {trace}" in capsys.readouterr().out
    events = json.loads(trace.read_text())["traceEvents"]
    assert len(events) == 11
    assert {event["ph"] for event in events} == {"X"}


def test_without_a_profile_there_are_no_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", MODEL, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == []


def test_a_model_is_not_taken_for_the_file_of_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--profile", MODEL]) == 2
    assert "expected a name that ends in .json" in capsys.readouterr().err
