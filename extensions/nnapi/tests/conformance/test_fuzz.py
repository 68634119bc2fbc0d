"""Models made of bytes, and searches that find a backend which lies or crashes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from armpy.errors import InvalidArgumentError
from armpy.execution import RuntimeOptions
from armpy_nnapi.conformance.fuzz import FuzzRun, run_fuzz
from armpy_nnapi.conformance.fuzz.byte_random import ByteRandom, model_of_bytes
from armpy_nnapi.conformance.vectors import run_vectors
from armpy_nnapi.validation.validate_model import validate_model
from armpy_testing.backends.lying_backends import write_liar

SEED = bytes(8)


def test_single_numbers_are_read_from_the_bytes() -> None:
    random = ByteRandom(SEED + bytes([7, 250, 3, 0, 128, 1]))
    assert random.integers(0, 5) == 2  # 7 of 5 choices
    assert random.integers(10, 12, endpoint=True) == 11  # 250 of 3 choices from 10
    assert random.integers(4) == 3
    assert random.random() == 0.5  # 0x8000 of 0x10000
    assert random.choice([10, 20, 30]) == 20


def test_a_weighted_choice_goes_by_the_weights() -> None:
    weights = [0.4, 0.3, 0.3]
    choices = [
        int(ByteRandom(SEED + n.to_bytes(2, "little")).choice([1, 2, 3], p=weights))
        for n in range(0, 65536, 97)
    ]
    assert [round(choices.count(n) / len(choices), 2) for n in (1, 2, 3)] == weights


def test_what_the_bytes_do_not_say_comes_from_their_seed() -> None:
    usual = np.random.Generator(np.random.PCG64(5))
    random = ByteRandom((5).to_bytes(8, "little"))
    assert random.integers(1000) == usual.integers(1000)
    assert random.uniform(1, 3, (2,)).tolist() == usual.uniform(1, 3, (2,)).tolist()


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff" * 300, bytes(range(256)) * 2])
def test_any_bytes_are_a_valid_model_and_always_the_same(data: bytes) -> None:
    model = model_of_bytes(data)
    validate_model(model.description)
    again = model_of_bytes(data)
    assert repr(again.description) == repr(model.description)
    for array, other in zip(again.inputs, model.inputs, strict=True):
        np.testing.assert_array_equal(array, other)


MAXIMA = 17
"""A seed of which the third and the fourth model take a maximum."""


def search(
    tmp_path: Path, options: RuntimeOptions, backend: str, count: int = 40, seed: int = 0
) -> FuzzRun:
    """A seeded search."""
    return run_fuzz(
        backend,
        runtime_options=options,
        engine="seeded",
        seed=seed,
        count=count,
        folder=tmp_path / "found",
        jobs=2,
    )


@pytest.mark.slow
def test_a_lying_backend_is_caught_with_a_reproducer(tmp_path: Path) -> None:
    options = write_liar(tmp_path / "liar", "Tampering(lying_backends.wrong_maxima, None)")
    run = search(tmp_path, options, "Liar", 6, MAXIMA)
    assert run.findings
    assert not run.is_passed
    finding = run.findings[0]
    assert "Smallest part: MAXIMUM" in finding.text
    assert shlex.split(finding.reproducer)[-2:] == ["--reproduce", finding.file]
    again = run_fuzz(
        "Liar", runtime_options=options, folder=tmp_path / "again", reproduce=finding.file
    )
    assert [f.text for f in again.findings] == [
        finding.text.replace(str(tmp_path / "found"), str(tmp_path / "again"))
    ]
    vectors = run_vectors(tmp_path / "found", "Liar", runtime_options=options)
    assert len(vectors.problems) >= len(run.findings)
    assert run_vectors(tmp_path / "found", "CpuRef").problems == ()


@pytest.mark.slow
def test_a_backend_that_ends_its_process_is_caught(tmp_path: Path) -> None:
    options = write_liar(tmp_path / "liar", "Tampering(lying_backends.ends_at_maxima, None)")
    run = search(tmp_path, options, "Liar", 6, MAXIMA)
    assert {finding.outcome for finding in run.findings} == {"crashed"}
    assert "the process ended with code 3" in run.findings[0].text


@pytest.mark.slow
def test_a_sound_backend_is_not_suspected(tmp_path: Path) -> None:
    run = search(tmp_path, RuntimeOptions(), "CpuRef")
    assert run.is_passed, run.findings
    assert run.num_models == 40
    assert run.num_run is not None
    assert run.num_run > 30  # some are refused by both
    assert not (tmp_path / "found").exists()


@pytest.mark.slow
def test_a_search_of_which_the_backend_ran_nothing_proves_nothing(tmp_path: Path) -> None:
    options = write_liar(tmp_path / "liar", "Tampering(lying_backends.adds_one, ())")
    run = search(tmp_path, options, "Liar", 4)
    assert run.shortcomings == ("no layer ran on Liar: this proves nothing about it",)
    assert not run.is_passed


@pytest.mark.slow
def test_atheris_is_asked_for_in_vain_where_it_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("armpy_nnapi.conformance.fuzz.guided.is_available", lambda: False)
    words = r"engine: atheris is not installed\. Choose 'seeded'.* Run: pip install atheris$"
    with pytest.raises(InvalidArgumentError, match=words):
        run_fuzz("CpuRef", engine="atheris", folder=tmp_path)
    assert run_fuzz("CpuRef", count=1, folder=tmp_path, jobs=1).engine == "seeded"


@pytest.mark.parametrize(
    ("how", "outcome"),
    [
        ("Tampering(lying_backends.wrong_maxima, None)", "failed"),
        ("Tampering(lying_backends.ends_at_maxima, None)", "crashed"),
    ],
)
def test_atheris_finds_a_lying_backend(tmp_path: Path, how: str, outcome: str) -> None:
    pytest.importorskip("atheris", reason="atheris is not installed (extra 'fuzz')")
    options = write_liar(tmp_path / "liar", how)
    run = run_fuzz(
        "Liar",
        runtime_options=options,
        engine="atheris",
        count=3000,
        seconds=100,
        folder=tmp_path / "found",
    )
    assert run.engine == "atheris"
    assert [finding.outcome for finding in run.findings] == [outcome]


@pytest.mark.slow
def test_the_command_prints_seed_and_reproducer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("click")
    from armpy_testing.command_line import armpy_command

    monkeypatch.chdir(tmp_path)
    write_liar(tmp_path / "liar", "Tampering(lying_backends.adds_one, None)")
    command = ["conformance", "fuzz", "--backend", "Liar", "--engine", "seeded", "--seed", "3"]
    command += ["--dynamic-backends-path", str(tmp_path / "liar"), "--count", "3", "--jobs", "1"]
    command += ["--output", str(tmp_path / "found")]
    assert armpy_command(command) == 1
    out = capsys.readouterr().out
    assert "(seeded, seed 3)" in out
    again = next(line for line in out.splitlines() if line.startswith("  again: armpy "))
    assert armpy_command(shlex.split(again.partition("armpy ")[2])) == 1
    assert "1 findings in 1 models" in capsys.readouterr().out
    assert not (tmp_path / "armpy-fuzz").exists()  # reproduced findings stay where they are
    assert armpy_command([*command, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"]
