"""Options that take one value are refused where they are given twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from armpy.cli.__main__ import main
from tests.support.installed import NEEDS_KIT

for library in ("click", "rich"):
    pytest.importorskip(library)

ROOT = Path(__file__).parents[2]
DIGITS = str(ROOT / "examples" / "digits" / "digits_int8.tflite")


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command line that cannot be followed is told."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert not captured.out
    return captured.err


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["run", DIGITS, "--labels", DIGITS, "--top=1", "--labels", DIGITS], "--labels"),
        (["run", "--seed", "1", DIGITS, "--seed=2"], "--seed"),
        (["run", DIGITS, "--resize", "crop", "--resize", "pad"], "--resize"),
        (["inspect", DIGITS, "--signature", "a", "--signature", "b"], "--signature"),
        pytest.param(["diff", DIGITS, "--seed", "1", "--seed", "2"], "--seed", marks=NEEDS_KIT),
        pytest.param(
            ["conformance", "CpuRef", "--jobs", "1", "--jobs", "2"], "--jobs", marks=NEEDS_KIT
        ),
    ],
)
def test_an_option_of_one_value_is_given_once(
    arguments: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"{name} is given 2 times, and takes one value" in refused(arguments, capsys)


def test_an_option_of_a_backend_is_given_once(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--backend-option", "NumbaAcc.num_threads=1"] * 2
    told = refused(["run", DIGITS, "--backends", "NumbaAcc,CpuRef", *options], capsys)
    assert "--backend-option NumbaAcc.num_threads: the option is given twice" in told


def test_backends_that_are_given_one_by_one_are_one_list(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", DIGITS, "--backends", "CpuRef", "--backends", "Missing"]) == 1
    assert "'Missing'" in capsys.readouterr().err
    assert main(["run", DIGITS, "--json", "--backends", "CpuRef", "--backend", "NumbaAcc"]) == 0
    assert json.loads(capsys.readouterr().out)["layers_by_backend"] == {"CpuRef": 10}


def test_flags_and_options_of_many_values_may_be_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = ["--dynamic-backends-path", str(tmp_path)] * 2
    arguments = ["run", DIGITS, "--json", "--json", "-v", "-v", "--backends", "CpuRef", *folders]
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("{")
