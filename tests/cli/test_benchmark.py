from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from armpy.cli.__main__ import main

for library in ("click", "rich", "PIL"):
    pytest.importorskip(library)

MODEL = str(Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite")
QUICK = ["--runs", "6", "--processes", "1", "--warm-up", "0"]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], Path]:
    """Two ways to call CpuRef, as JSON and as CSV."""
    from contextlib import redirect_stdout
    from io import StringIO

    path = tmp_path_factory.mktemp("benchmark") / "numbers.csv"
    options = ["--backends", "CpuRef", "--callers", "1,2", "--json", "--csv", str(path)]
    with redirect_stdout(StringIO()) as out:
        assert main(["benchmark", MODEL, *options, *QUICK]) == 0
    return json.loads(out.getvalue()), path


def test_each_subject_is_told_with_its_numbers(measured: tuple[dict[str, object], Path]) -> None:
    document, _ = measured
    subjects = document["subjects"]
    assert isinstance(subjects, list)
    assert [subject["name"] for subject in subjects] == ["1 caller", "2 callers"]
    for subject, callers in zip(subjects, (1, 2), strict=True):
        latency = subject["latency"]
        assert latency["runs"] == 6 * callers
        ordered = ("min_ms", "median_ms", "p90_ms", "p99_ms", "max_ms")
        times = [latency[name] for name in ordered]
        assert times == sorted(times)
        assert times[0] > 0
        assert subject["per_second"] > 0
        assert len(subject["load_ms"]) == len(subject["first_ms"]) == 1
        assert subject["memory"]["peak_bytes"] > 0
        assert subject["memory"]["weights_bytes"] > 1000
        assert "CpuRef 10" in subject["placement"]
    assert subjects[0]["ratio"] is None
    assert subjects[1]["ratio"]["unit"] == "block of turns"
    assert document["confidence"] == 0.95


def test_a_csv_file_has_a_row_for_each(measured: tuple[dict[str, object], Path]) -> None:
    rows = list(csv.DictReader(measured[1].read_text("utf-8").splitlines()))
    assert [row["callers"] for row in rows] == ["1", "2"]
    assert all(float(row["median_ms"]) > 0 for row in rows)
    assert rows[0]["ratio"] == ""
    assert float(rows[1]["ratio_low"]) <= float(rows[1]["ratio"]) <= float(rows[1]["ratio_high"])


def test_tables_are_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmark", MODEL, "--backends", "CpuRef", *QUICK]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("Warm runs (ms)")
    assert lines[first + 1].split() == [
        *("what", "min", "median", "p90", "p99", "runs", "per", "second")
    ]
    assert lines[first + 2].startswith("digits_int8 ")
    assert "Loading (ms), memory (MiB), processors busy" in lines


def test_a_subject_that_cannot_be_measured_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--backends", "CpuRef", "--backends", "CpuReff"]
    assert main(["benchmark", MODEL, *options, *QUICK]) == 1
    out = capsys.readouterr().out
    assert "1. CpuRef" in out
    assert "2. CpuReff: " in out.split("Failed\n")[1]


def test_a_batch_that_the_file_fixes_is_an_error_that_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["benchmark", MODEL, "--backends", "CpuRef", "--batch", "8", *QUICK]) == 1
    out = capsys.readouterr().out
    assert "the file fixes the size of the batch" in out
    assert "Expected (1, 16, 16, 1); got a batch of 8" in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--batch", "2", "--shape", "x=1,8"], "--batch does not go with --shape"),
        (["--threads", "0"], "expected numbers of 1 or more"),
        (["--callers", "two"], "'two': expected numbers"),
        (["--baseline", "2"], "there are 1 rows"),
        (["--input", "x=nowhere.npy"], "expected NAME=FILE.npy"),
        (["--time", "nan"], "not a finite number"),
        (["--threads", ",".join(map(str, range(1, 102)))], "101 combinations"),
        (["--variant", "NumbaAcc.nothing=1"], "nothing"),
        (["--peer", "caffe"], "'caffe' is not one of"),
    ],
)
def test_what_does_not_go_together_is_refused(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["benchmark", MODEL, *options]) == 2
    assert words in capsys.readouterr().err


def test_an_order_of_preference_is_not_taken_for_a_comparison(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["benchmark", MODEL, "--backends", "CpuRef,NumbaAcc", *QUICK]) == 0
    told = capsys.readouterr()
    assert "to compare them: --backends CpuRef --backends NumbaAcc" in told.err
    assert "CpuRef 10" in told.out
