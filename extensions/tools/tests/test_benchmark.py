from __future__ import annotations

import json
from pathlib import Path

import pytest

from armpy.cli.inputs.request import InputRequest
from armpy.errors import Argument, ArmpyError
from armpy_testing.backends.dynamic_modules import write_two_cards
from armpy_testing.command_line import armpy_command
from armpy_testing.digits import MODEL as DIGITS
from armpy_tools.benchmark import (
    Subject,
    child,
    name_subjects,
)
from armpy_tools.cli.benchmark.work import subjects_of

for library in ("click", "PIL"):
    pytest.importorskip(library)

MODEL = str(DIGITS)
QUICK = ["--runs", "6", "--processes", "1", "--warm-up", "0"]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], Path]:
    """Two ways to call CpuRef, as JSON and as a page."""
    from contextlib import redirect_stdout
    from io import StringIO

    path = tmp_path_factory.mktemp("benchmark") / "numbers.html"
    options = ["--backends", "CpuRef", "--callers", "1,2", "--json", "--html", str(path)]
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


@pytest.mark.slow
def test_a_subject_that_cannot_be_measured_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--backends", "CpuRef", "--backends", "CpuReff"]
    assert armpy_command(["benchmark", MODEL, *options, *QUICK]) == 1
    out = capsys.readouterr().out
    assert "1. CpuRef" in out
    assert "2. CpuReff: " in out.split("Failed\n")[1]


def test_an_error_of_a_subject_names_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_: Subject) -> None:
        raise ArmpyError("it is too small", where="layer 'a'", argument=Argument("shapes"))

    monkeypatch.setattr(child, "load", load)
    order = {"order": "prepare", "subject": {"model": MODEL}, "seed": 0}
    with pytest.raises(ArmpyError, match=r"^layer 'a' / --shape: it is too small"):
        child.SubjectHandler().answer(order, None)


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


def test_figures_do_not_take_the_place_of_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model"
    model.write_bytes(Path(MODEL).read_bytes())
    assert armpy_command(["benchmark", str(model), "--html", str(model), *QUICK]) == 2
    assert "this file is read from" in capsys.readouterr().err
    assert model.read_bytes() == Path(MODEL).read_bytes()
    assert (
        armpy_command(["benchmark", str(model), "--html", str(tmp_path / "no" / "x"), *QUICK]) == 2
    )
    assert "there is no folder" in capsys.readouterr().err
