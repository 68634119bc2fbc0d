"""`armpy profile`."""

from __future__ import annotations

import json
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from armpy.cli.printer import Printer
from armpy.cli.profile_report import print_profile, profile_document
from armpy.profiling import Share, Summary
from armpy_testing.command_line import Cli, armpy_command

for library in ("click", "PIL"):
    pytest.importorskip(library)

MODEL = str(Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite")


def test_layers_that_ran_as_one_are_named_by_their_short_names() -> None:
    together = "net/block/conv + net/block/add"
    shares = tuple(
        Share(f"Conv '{name}'", "B", "Conv", name, 1, 1000, run_ns=[1000])
        for name in (together, "net/head", "net/tail")
    )
    summary = Summary(1, 3000, 0, shares, (), (), (), (), (), 0)
    layers: Any = profile_document(summary)["layers"]  # Any: a part of a JSON document
    names = [layer["short_name"] for layer in layers]
    assert names == ["block/conv + block/add", "head", "tail"]


def test_a_trace_is_written_where_a_file_is_named(tmp_path: Path, cli: Cli) -> None:
    trace = tmp_path / "trace.json"
    assert f"written: {trace}" in cli.out(
        "profile", MODEL, "-o", str(trace), "--runs", "1", "--backends", "CpuRef"
    )
    events = json.loads(trace.read_text())["traceEvents"]
    assert len([event for event in events if event["cat"] != "load"]) == 11
    assert "compile" in {event["name"] for event in events if event["cat"] == "load"}
    assert {event["ph"] for event in events} == {"X"}


def test_the_table_shows_what_a_backend_says_about_its_layers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    details = {"operations": 12e6, "bytes": 4 * 2048.0, "roofline_us": 20.0}
    layers = (
        Share("Conv 'c'", "Npu", "Conv", "c", 12, 80_000, details, [18000, 18000, 22000, 22000]),
        Share("copy", "", count=4, total_ns=20_000, run_ns=[5000, 5000, 5000, 5000]),
    )
    runs_ns = (23000, 23000, 27000, 27000)
    print_profile(
        Printer(), Summary(4, 100_000, 0, layers, layers, (), (), (), (), 0, run_ns=runs_ns)
    )
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("Slowest layers (2 of 2)")
    assert lines[first + 1].split() == [
        *("share", "median", "us", "quartiles", "us", "Mop", "KiB", "roofline"),
        *("backend", "operation", "layer"),
    ]
    rows = [line.split() for line in lines[first + 2 : first + 5]]
    middle = ["18.0", "to", "22.0"]
    assert rows[0] == ["80.0%", "20.0", *middle, "3.00", "2", "25%", "Npu", "Conv", "c"]
    assert rows[1] == ["20.0%", "5.0", "5.0", "to", "5.0", "armpy", "copy"]
    assert rows[2] == ["100.0%", "25.0", "23.0", "to", "27.0", "all"]


def test_a_profile_says_where_all_of_the_time_went(cli: Cli) -> None:
    backend = "CpuRef"
    options = ["--backends", backend, "--repeat", "4", "--json"]
    profile = json.loads(cli.out("profile", MODEL, *options))
    assert profile["runs"] == 4
    for kind in ("layers", "operations"):
        parts = [*profile[kind], *profile["overhead"], *profile["waiting"]]
        assert sum(part["share"] for part in parts) == pytest.approx(1)
        assert sum(part["total_us"] for part in parts) == pytest.approx(1000 * profile["wall_ms"])
    assert {part["name"] for part in profile["operations"]} >= {"Convolution2d", "Pooling2d"}
    assert sum(part["share"] for part in profile["load"]) == pytest.approx(1)
    assert ("compile", backend) in {(part["name"], part["backend"]) for part in profile["load"]}


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Profiles of one model on two backends."""
    folder = tmp_path_factory.mktemp("profiles")
    paths = []
    for backend in ("CpuRef", "NumbaAcc"):
        path = str(folder / f"{backend}.json")
        with redirect_stdout(StringIO()):
            options = ["--backends", backend, "--repeat", "5"]
            assert armpy_command(["profile", MODEL, "-o", path, *options]) == 0
        paths.append(path)
    return paths[0], paths[1]


def percentages(lines: list[str], heading: str) -> list[float]:
    """The first column of a table, its last row left out, which is all of it."""
    first = next(n for n, line in enumerate(lines) if line.startswith(heading))
    end = lines.index("", first) if "" in lines[first:] else len(lines)
    matches = [re.match(r"\s*([\d.]+)%", line) for line in lines[first + 2 : end]]
    numbers = [float(match[1]) for match in matches if match]
    assert numbers[-1] == 100.0
    return numbers[:-1]


def test_a_model_is_profiled(tmp_path: Path, cli: Cli) -> None:
    """Options may stand before the model, and the profile is saved for later comparison."""
    path = str(tmp_path / "profile.json")
    lines = cli.out(
        "profile", MODEL, "--runs", "4", "--backends", "CpuRef", "-o", path
    ).splitlines()
    assert lines[0] == "inputs: random numbers, seed 0"
    assert sum(percentages(lines, "Profile of 4 executions: ")) == pytest.approx(100, abs=1)
    assert lines[-1] == f"written: {path}"
    saved = cli.document("profile", "show", path)
    printed = cli.document("profile", "--runs", "3", "--backends", "CpuRef", MODEL)
    assert [saved["runs"], printed["runs"]] == [4, 3]
    names = [{layer["name"] for layer in document["layers"]} for document in (saved, printed)]
    assert names[0] == names[1]
    assert printed["model"] == MODEL


def test_two_profiles_are_compared_layer_by_layer(traces: tuple[str, str], cli: Cli) -> None:
    comparison = cli.document("profile", "compare", *traces)["comparison"]
    whole = comparison["after_us"] - comparison["before_us"]
    assert whole < 0  # CpuRef first
    parts = [*comparison["layers"], *comparison["overhead"], *comparison["waiting"]]
    assert sum(c["after_us"] - c["before_us"] for c in parts) == pytest.approx(whole)
    changes = [abs(c["after_us"] - c["before_us"]) for c in comparison["layers"]]
    assert changes == sorted(changes, reverse=True)
    both = [c for c in comparison["layers"] if c["before_us"] and c["after_us"]]
    assert len(both) >= 7
    assert {(c["before"], c["after"]) for c in both} == {("CpuRef", "NumbaAcc")}


def test_a_comparison_is_a_table_for_people(traces: tuple[str, str], cli: Cli) -> None:
    lines = cli.out("profile", "compare", *traces, "--top", "2").splitlines()
    assert re.fullmatch(
        r"one execution: [\d.]+ us before, [\d.]+ us after \([\d.]+ times as fast\); of 5 "
        r"executions and 5",
        lines[0],
    )
    first = lines.index("By kind, the largest change first (us of one execution)")
    assert lines[first + 1].split() == [
        *("change", "before", "after", "times", "kind", "backend", "what")
    ]
    assert "CpuRef -> NumbaAcc" in "".join(lines[first + 2 :])
    assert any(line.startswith("By layer, the largest change first (2 of ") for line in lines)
