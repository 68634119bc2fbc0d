from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("click")

from armpy_conformance.cli.conformance.work import print_conformance
from armpy_conformance.result import CaseResult, ConformanceResult, Outcome
from armpy_nnapi.conformance.random_graphs.generator import random_model
from armpy_nnapi.conformance.random_graphs.runner import keep
from armpy_nnapi.conformance.vectors.example import Example
from armpy_testing.backends.lying_backends import write_liar
from armpy_testing.command_line import armpy_command

COMMAND = ["conformance", "random-graphs", "--jobs", "1"]


@pytest.mark.slow
def test_the_result_can_be_had_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--backend", "CpuRef", "--count", "3", "--seed", "40", "--json"]
    assert armpy_command([*COMMAND, *options]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["counts"]["passed"] == 3
    cases = [result["case"] for result in document["results"]]
    assert cases == [f"random/random_{seed}/compared with CpuRef" for seed in (40, 41, 42)]


@pytest.mark.slow
def test_what_fails_is_kept_in_a_default_folder_whose_path_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_liar(tmp_path / "liars", "Tampering(lying_backends.wrong_maxima, None)")
    liar = ["--backend", "Liar", "--dynamic-backends-path", str(tmp_path / "liars")]
    monkeypatch.chdir(tmp_path)
    assert armpy_command([*COMMAND, "--backend", "CpuRef", "--count", "2"]) == 0
    folder = tmp_path / "armpy-random-graphs"
    assert not folder.exists()  # nothing failed
    capsys.readouterr()
    assert armpy_command([*COMMAND, *liar, "--count", "20"]) == 1
    text = capsys.readouterr().out
    files = sorted(folder.glob("*.json.gz"))
    assert files
    assert f"failing models are kept in {folder}\n" in text
    again = ["conformance", "nnapi-vectors", str(folder), *liar, "--jobs", "1"]
    assert armpy_command(again) == 1


def test_kept_failures_of_one_operation_with_unlike_parts_are_listed_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = random_model(1)
    outputs = (None,) * len(model.description.main.outputs)
    example = Example("random_1", "random", model.description, model.inputs, outputs)
    parts = [
        f"output 0: wrong. Smallest part: {part}. {keep(tmp_path, 'random_1', example)}"
        for part in ("MAXIMUM", "SUB")
    ]
    results = [CaseResult(f"random/{part}", "ADD", "INT32", Outcome.FAILED, part) for part in parts]
    print_conformance(ConformanceResult("Liar", "1", "2.2", tuple(results)))
    shown = capsys.readouterr().out
    assert "Smallest part: MAXIMUM" in shown
    assert "Smallest part: SUB" in shown


def test_an_unknown_backend_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert armpy_command([*COMMAND, "--backend", "Missing", "--count", "1"]) != 0
    assert "Missing" in capsys.readouterr().err
