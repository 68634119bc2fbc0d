from __future__ import annotations

import json
from pathlib import Path

import pytest

from armpy.cli.__main__ import main
from armpy.cli.profile_report import CounterReport, PartReport, ProfileReport, steps_of
from armpy.cli.run.report import print_run
from armpy.cli.run.run_model import RunReport
from armpy.profiling import Profiler

for library in ("click", "rich", "PIL"):
    pytest.importorskip(library)

MODEL = str(Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite")


def test_a_profile_lists_the_slowest_steps(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--backends", "CpuRef", "--repeat", "4"]
    assert main(["run", MODEL, "--profile", *options, "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert len(steps) == 10
    assert {step["backend"] for step in steps} == {"CpuRef"}
    assert [step["count"] for step in steps] == [4] * 10
    shares = [step["share"] for step in steps]
    assert shares == sorted(shares, reverse=True)
    assert 0 < sum(shares) <= 1


def test_a_profile_counts_no_time_twice_where_a_backend_measures_inside_a_layer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--backends", "NumbaAcc", "--repeat", "4"]
    assert main(["run", MODEL, "--profile", *options, "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert {step["backend"] for step in steps} == {"NumbaAcc"}
    assert {step["count"] for step in steps} == {4}
    assert not [step["name"] for step in steps if step["name"].startswith("PreCompiled")]
    assert all("bytes" in step["details"] for step in steps)
    assert 0 < sum(step["share"] for step in steps) <= 1


def test_a_step_that_others_lie_within_is_left_out() -> None:
    profiler = Profiler()
    profiler.add("inner", "Npu", 2.0, 4.0)
    profiler.add("instant", "Npu", 4.0, 4.0)
    profiler.add("last", "Npu", 4.0, 5.0)
    profiler.add("whole", "Npu", 1.0, 5.0)
    profiler.add("beside", "CpuRef", 5.0, 9.0)
    profiler.add("Execute", "", 1.0, 9.0)
    steps = [(step.name, step.share) for step in steps_of(profiler)]
    assert steps == [("beside", 0.5), ("inner", 0.25), ("last", 0.125), ("instant", 0.0)]


def test_a_profile_is_a_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", MODEL, "--profile", "--backends", "CpuRef"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("Slowest layers (10 of 10)")
    assert lines[first + 1].split() == [*("share", "us", "each", "backend", "operation", "layer")]
    assert lines[first + 12].split()[2:] == ["overhead"]
    assert (lines[first + 13].split()[0], lines[first + 13].split()[-1]) == ("100.0%", "all")
    assert lines[first + 14] == ""


def test_a_trace_is_written_where_a_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.json"
    assert main(["run", MODEL, "--profile", str(trace), "--backends", "CpuRef"]) == 0
    assert f"written: {trace}" in capsys.readouterr().out
    events = json.loads(trace.read_text())["traceEvents"]
    assert len([event for event in events if event["cat"] != "load"]) == 11
    assert "compile" in {event["name"] for event in events if event["cat"] == "load"}
    assert {event["ph"] for event in events} == {"X"}


def test_without_a_profile_there_are_no_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", MODEL, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == []


def test_a_model_is_not_taken_for_the_file_of_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--profile", MODEL]) == 2
    assert "expected a name that ends in .json" in capsys.readouterr().err


def test_the_table_shows_what_a_backend_says_about_its_layers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    details = {"operations": 12e6, "bytes": 4 * 2048.0, "roofline_us": 20.0}
    layers = (
        PartReport("Conv 'c'", "Npu", 80.0, 0.8, 12, "Conv", "m/c", "c", details),
        PartReport("copy", "", 20.0, 0.2, 4),
    )
    profile = ProfileReport(4, 0.1, layers, layers, (), (), 0.0, ())
    print_run(RunReport("random", "all on Npu", {}, (), profile=profile))
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("Slowest layers (2 of 2)")
    assert lines[first + 1].split() == [
        *("share", "us", "each", "Mop", "KiB", "roofline", "backend", "operation", "layer")
    ]
    rows = [line.split() for line in lines[first + 2 : first + 5]]
    assert rows[0] == ["80.0%", "20.0", "3.00", "2", "25%", "Npu", "Conv", "c"]
    assert rows[1] == ["20.0%", "5.0", "armpy", "copy"]
    assert rows[2] == ["100.0%", "25.0", "all"]


@pytest.mark.parametrize("backend", ["CpuRef", "NumbaAcc"])
def test_a_profile_says_where_all_of_the_time_went(
    backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--backends", backend, "--repeat", "4", "--json"]
    assert main(["run", MODEL, "--profile", *options]) == 0
    profile = json.loads(capsys.readouterr().out)["profile"]
    assert profile["runs"] == 4
    for kind in ("layers", "operations"):
        parts = [*profile[kind], *profile["overhead"], *profile["waiting"]]
        assert sum(part["share"] for part in parts) == pytest.approx(1)
        assert sum(part["total_us"] for part in parts) == pytest.approx(1000 * profile["wall_ms"])
    assert {part["name"] for part in profile["operations"]} >= {"Convolution2d", "Pooling2d"}
    assert sum(part["share"] for part in profile["load"]) == pytest.approx(1)
    assert ("compile", backend) in {(part["name"], part["backend"]) for part in profile["load"]}


def test_tables_say_where_the_time_of_executions_and_of_loading_went(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", MODEL, "--profile", "--backends", "CpuRef", "--repeat", "4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = next(n for n, line in enumerate(lines) if line.startswith("Profile of 4 executions: "))
    assert lines[first + 1].split() == ["share", "us", "each", "kind", "backend", "what"]
    end = lines.index("", first)
    shares = [float(line.split("%")[0]) for line in lines[first + 2 : end]]
    assert shares[-1] == 100.0
    assert sum(shares[:-1]) == pytest.approx(100)
    load = next(n for n, line in enumerate(lines) if line.startswith("Time of loading ("))
    assert lines[load + 1].split() == ["share", "ms", "backend", "phase"]


def test_counters_are_a_table_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    counter = CounterReport("bytes uploaded", "Npu", "B", 4096.0)
    part = PartReport("Convolution2d", "", 5.0, 1.0)
    profile = ProfileReport(1, 0.005, (part,), (part,), (), (), 0.0, (), (counter,))
    print_run(RunReport("random", "all on Npu", {}, (), profile=profile))
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("Counters")
    assert lines[first + 1].split() == ["value", "unit", "backend", "counter"]
    assert lines[first + 2].split() == ["4096", "B", "Npu", "bytes", "uploaded"]
