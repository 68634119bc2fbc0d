from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from armpy.cli.inputs.request import InputRequest
from armpy_conformance.measure.latency import latency_of
from armpy_testing.backends.dynamic_modules import write_two_cards
from armpy_testing.command_line import armpy_command
from armpy_testing.digits import MODEL as DIGITS
from armpy_testing.models.row_models import write_row_model
from armpy_tools.benchmark import (
    BenchmarkResult,
    MachineState,
    Plan,
    Ratio,
    Subject,
    SubjectResult,
    name_subjects,
)
from armpy_tools.cli.benchmark.page import in_a_line, write_page
from armpy_tools.cli.benchmark.report import print_benchmark
from armpy_tools.cli.benchmark.work import subjects_of

for library in ("click", "rich", "PIL", "jinja2"):
    pytest.importorskip(library)

MODEL = str(DIGITS)
INPUT = "serving_default_image:0"
QUICK = ["--runs", "6", "--processes", "1", "--warm-up", "0"]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], Path]:
    """Two ways to call CpuRef, as JSON, as CSV, and as a page."""
    from contextlib import redirect_stdout
    from io import StringIO

    path = tmp_path_factory.mktemp("benchmark") / "numbers.csv"
    options = ["--backends", "CpuRef", "--callers", "1,2", "--json", "--csv", str(path)]
    options += ["--html", str(path.with_suffix(".html"))]
    with redirect_stdout(StringIO()) as out:
        assert armpy_command(["benchmark", MODEL, *options, *QUICK]) == 0
    return json.loads(out.getvalue()), path


@pytest.mark.slow
def test_each_subject_is_listed_with_its_numbers(measured: tuple[dict[str, object], Path]) -> None:
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


def test_a_page_shows_the_same(measured: tuple[dict[str, object], Path]) -> None:
    page = measured[1].with_suffix(".html").read_text("utf-8")
    assert "Benchmark of digits_int8.tflite" in page
    for title in ("Overview", "Warm runs", "Median of a run", "Loading and memory"):
        assert title in page
    assert "2. 2 callers" in page


@pytest.mark.slow
def test_tables_are_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert armpy_command(["benchmark", MODEL, "--backends", "CpuRef", *QUICK]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("Warm runs (ms)")
    assert lines[first + 1].split() == [
        *("what", "min", "median", "p90", "p99", "runs", "per", "second")
    ]
    assert lines[first + 2].startswith("digits_int8 ")
    assert "Loading (ms), memory (MiB), processors busy" in lines


@pytest.mark.slow
def test_a_subject_that_cannot_be_measured_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--backends", "CpuRef", "--backends", "CpuReff"]
    assert armpy_command(["benchmark", MODEL, *options, *QUICK]) == 1
    out = capsys.readouterr().out
    assert "1. CpuRef" in out
    assert "2. CpuReff: " in out.split("Failed\n")[1]


@pytest.mark.slow
def test_a_batch_that_the_file_fixes_is_measured_all_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--backends", "CpuRef", "--batch", "1,4", "--layers", "--json"]
    assert armpy_command(["benchmark", MODEL, *options, *QUICK]) == 0
    single, four = json.loads(capsys.readouterr().out)["subjects"]
    assert (single["items"], four["items"]) == (1, 4)
    assert four["memory"]["arena_bytes"] > 2 * single["memory"]["arena_bytes"]
    assert len(four["layers"]) == 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("image=1,16,16,1", "Expected 'serving_default_image:0'; got 'image'"),
        (f"{INPUT}=1,20,20,1", "That layer was made for the file's own shapes"),
    ],
)
def test_a_shape_that_the_model_does_not_take_is_refused(
    shape: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--backends", "CpuRef", "--shape", shape]
    assert armpy_command(["benchmark", MODEL, *options, *QUICK]) == 1
    assert words in capsys.readouterr().out.split("Failed\n")[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--threads", "0"], "expected numbers of 1 or more"),
        (["--callers", "two"], "'two': expected numbers"),
        (["--baseline", "2"], "Expected 1 to 1; got 2"),
        (["--input", "x=nowhere.npy"], "there is no file 'nowhere.npy'"),
        (["--time", "nan"], "a finite number above 0"),
        (["--threads", ",".join(map(str, range(1, 102)))], "101 combinations"),
        (["--variant", "NumbaAcc.nothing=1"], "nothing"),
        (["--every-device", "--backends", "CpuRef"], "--every-device does not go with"),
        (["--peer", "caffe"], "'caffe' is not one of"),
    ],
)
def test_what_does_not_go_together_is_refused(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert armpy_command(["benchmark", MODEL, *options]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.slow
def test_batches_and_shapes_of_open_models_are_measured_beside_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_row_model(tmp_path / "open.tflite", None)
    options = ["--backends", "CpuRef", "--batch", "1,3", "--json", *QUICK]
    assert armpy_command(["benchmark", str(path), *options]) == 0
    single, three = json.loads(capsys.readouterr().out)["subjects"]
    assert (single["name"], single["items"]) == ("batch 1", 1)
    assert (three["name"], three["items"]) == ("batch 3", 3)
    per_run = 1000 / three["latency"]["mean_ms"]
    assert three["per_second"] == pytest.approx(3 * per_run, rel=0.05)


def chosen(*models: str, **choices: object) -> list[Subject]:
    usual: dict[str, object] = dict.fromkeys(
        ("backend_lists", "threads", "callers", "batch", "variants", "peers"), ()
    )
    usual |= {"inputs": InputRequest(), "backend_options": (), "dynamic_backends_path": ()}
    usual["takes_every_device"] = False
    return subjects_of(models or (MODEL,), **usual | choices)  # type: ignore[arg-type]


def test_variants_are_measured_beside_the_model_as_it_is() -> None:
    options = ("NumbaAcc.fast_math_enabled=true",)
    usual, variant = chosen(variants=options, backend_options=("NumbaAcc.num_threads=2",))
    assert usual.backend_options == {"NumbaAcc": {"num_threads": 2}}
    assert variant.backend_options == {"NumbaAcc": {"num_threads": 2, "fast_math_enabled": True}}
    assert name_subjects([usual, variant])[1] == "NumbaAcc.fast_math_enabled=true"


def test_every_device_is_a_subject(tmp_path: Path) -> None:
    folder = write_two_cards(tmp_path)
    subjects = chosen(takes_every_device=True, dynamic_backends_path=(folder,))
    devices = [(s.backends, s.variant) for s in subjects]
    assert devices.count((("TwoCards", "CpuRef"), "TwoCards.device=card0")) == 1
    assert devices.count((("TwoCards", "CpuRef"), "TwoCards.device=card1")) == 1
    assert devices.count((("CpuRef",), "")) == 1
    names = name_subjects(subjects)
    card = names.index("TwoCards > CpuRef, TwoCards.device=card1")
    assert subjects[card].backend_options == {"TwoCards": {"device": "card1"}}


def test_every_combination_is_a_subject_with_a_name_of_its_own() -> None:
    subjects = chosen(
        backend_lists=[("NumbaAcc", "CpuRef"), ("CpuRef",)],
        threads=[1, 2],
        callers=[1, 8],
        peers=("litert",),
    )
    names = name_subjects(subjects)
    assert len(subjects) == len(set(names)) == 12
    assert names[1] == "NumbaAcc > CpuRef, 1 thread, 8 callers"
    assert names[-1] == "litert, 2 threads, 8 callers"


def test_every_set_of_shapes_is_a_subject_with_the_other_inputs() -> None:
    inputs = InputRequest(
        ("sr=16000",), shape_sets=({"x": (1, 2)}, {"x": (3, 2)}), size=(8, 9), quantize_inputs=True
    )
    subjects = chosen(inputs=inputs, peers=("litert",))
    assert [subject.input_request.shape_sets for subject in subjects] == [
        ({"x": (1, 2)},),
        ({"x": (3, 2)},),
        ({"x": (1, 2)},),
        ({"x": (3, 2)},),
    ]
    for subject in subjects:
        request = subject.input_request
        assert (request.arrays, request.size) == (("sr=16000",), (8, 9))
        assert request.quantize_inputs


def test_subjects_that_differ_in_nothing_are_numbered() -> None:
    assert name_subjects(chosen(MODEL, MODEL)) == ["digits_int8 #1", "digits_int8 #2"]


@pytest.mark.slow
def test_layers_of_a_backend_without_limits_have_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert armpy_command(["benchmark", MODEL, "--backends", "CpuRef", "--layers", *QUICK]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "Layers of digits_int8: what limits them (10 of 10)" in lines
    assert lines[-1] == "time by limit: not known 100%"


@pytest.mark.slow
def test_an_engine_that_is_installed_is_measured_beside(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("ai_edge_litert")
    options = ["--backends", "CpuRef", "--peer", "litert", "--json"]
    assert armpy_command(["benchmark", MODEL, *options, *QUICK]) == 0
    ours, peer = json.loads(capsys.readouterr().out)["subjects"]
    assert (ours["name"], peer["name"]) == ("CpuRef", "litert")
    assert peer["latency"]["runs"] == 6
    assert peer["placement"].startswith("ai-edge-litert ")


CRASHING = """
import os, signal
import numpy as np


class Interpreter:
    def __init__(self, **_):
        self.runs = 0

    def get_input_details(self):
        detail = {"index": 0, "name": "x", "dtype": np.int8}
        return [{**detail, "shape": np.array([1]), "shape_signature": np.array([1])}]

    def allocate_tensors(self):
        pass

    def set_tensor(self, index, array):
        pass

    def invoke(self):
        self.runs += 1
        if self.runs == 2:
            os.kill(os.getpid(), signal.SIGABRT)
"""


@pytest.mark.slow
def test_an_engine_that_crashes_is_one_row_and_the_others_are_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "ai_edge_litert"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "interpreter.py").write_text(CRASHING)
    monkeypatch.syspath_prepend(tmp_path)
    options = ["--backends", "CpuRef", "--peer", "litert", "--json"]
    assert armpy_command(["benchmark", MODEL, *options, *QUICK]) == 1
    ours, peer = json.loads(capsys.readouterr().out)["subjects"]
    assert peer["failure"] == "litert: its process has crashed: it was ended by SIGABRT."
    assert (ours["failure"], ours["latency"]["runs"]) == ("", 6)


def test_ratios_are_a_table_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    ratio = Ratio(1 / 129, 1 / 167, 1 / 99.3, "slower", 5, "process")
    unknown = Ratio(1.5, 0.0, float("inf"), "too few runs", 2, "process")
    latency = latency_of([1000.0, 2000.0])
    subject = Subject("a.tflite")
    subjects = (
        SubjectResult("first", subject, load_ms=(1.0,), first_ms=(1.0,), latency=latency),
        SubjectResult(
            "second", subject, load_ms=(1.0,), first_ms=(1.0,), latency=latency, ratio=ratio
        ),
        SubjectResult(
            "third", subject, load_ms=(1.0,), first_ms=(1.0,), latency=latency, ratio=unknown
        ),
    )
    print_benchmark(BenchmarkResult(Plan(), MachineState("a machine", 2), subjects, 1.0, 5))
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("Times as fast as 1. first (from, to: 95 %)")
    assert [line.split() for line in lines[first + 1 : first + 4]] == [
        ["what", "times", "from", "to", "shows"],
        ["2.", "second", "1/129", "1/167", "1/99.3", "slower"],
        ["3.", "third", "1.5", "too", "few", "runs"],
    ]


def result_of(*speeds: tuple[str, float, Ratio | None]) -> BenchmarkResult:
    subjects = tuple(
        SubjectResult(
            name,
            Subject("a.tflite"),
            load_ms=(1.0,),
            first_ms=(1.0,),
            latency=latency_of([time_us] * 3),
            ratio=ratio,
        )
        for name, time_us, ratio in speeds
    )
    return BenchmarkResult(Plan(), MachineState("a machine", 2), subjects, 1.0, 5)


@pytest.mark.parametrize(
    ("others", "line"),
    [
        ([], "A takes 200 µs a run."),
        (
            [("B", 50.0, Ratio(4.0, 3.5, 4.5, "faster", 6, "process"))],
            "A takes 200 µs a run, B 50.0 µs: B is 4 times faster (3.5 to 4.5).",
        ),
        (
            [("A", 500_000.0, Ratio(1 / 2500, 1 / 3000, 1 / 2000, "slower", 6, "process"))],
            "A takes 200 µs a run, A 500 ms: the second is 2,500 times slower (2,000 to 3,000).",
        ),
        (
            [
                ("B", 400.0, Ratio(0.5, 0.4, 0.6, "slower", 6, "process")),
                ("C", 199.0, Ratio(1.005, 0.9, 1.1, "no difference shown", 6, "process")),
            ],
            "A takes 200 µs a run; C, the quickest of 2 others, 199 µs: C is 1 times as fast (no "
            "difference shown).",
        ),
        (
            [("B", 100.0, Ratio(2.0, 0.0, float("inf"), "too few runs", 2, "process"))],
            "A takes 200 µs a run, B 100 µs: B is 2 times as fast (too few runs).",
        ),
    ],
)
def test_the_page_begins_with_the_result_in_a_line(
    others: list[tuple[str, float, Ratio | None]], line: str
) -> None:
    assert in_a_line(result_of(("A", 200.0, None), *others)) == line


def test_all_that_endangers_the_figures_stands_in_one_box(tmp_path: Path) -> None:
    first = replace(result_of(("A", 200.0, None)).subjects[0], notes=("runs vary a lot",))
    result = replace(result_of(("B", 1.0, None)), subjects=(first,), notes=("It was busy.",))
    write_page(str(tmp_path / "page.html"), result)
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "<li>It was busy.</li><li>A: runs vary a lot.</li>" in text
    assert text.count('class="note') == 1


@pytest.mark.parametrize("option", ["--csv", "--html"])
def test_figures_do_not_take_the_place_of_a_model(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model"
    model.write_bytes(Path(MODEL).read_bytes())
    assert armpy_command(["benchmark", str(model), option, str(model), *QUICK]) == 2
    assert "this file is read from" in capsys.readouterr().err
    assert model.read_bytes() == Path(MODEL).read_bytes()
    assert armpy_command(["benchmark", str(model), option, str(tmp_path / "no" / "x"), *QUICK]) == 2
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "not a .npy file"), (b"\x93NUMPY\x01\x00\x05\x00{[(-\n", "the array cannot be read")],
)
def test_an_input_file_that_is_damaged_is_named(
    content: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "empty.npy"
    path.write_bytes(content)
    arguments = ["--backends", "CpuRef", "--input", f"{INPUT}={path}"]
    assert armpy_command(["benchmark", MODEL, *arguments, *QUICK]) == 1
    out = capsys.readouterr().out
    assert words in " ".join(out.split())
    assert str(path) in out.replace("\n", "")
    assert "raised" not in out
