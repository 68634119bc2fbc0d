"""The kit on the example backends: honest ones pass, each lying one fails at its operation."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from armpy.execution import RuntimeOptions
from armpy_conformance import ConformanceResult, Outcome, run_conformance
from armpy_testing.checkout import checkout_path

EXAMPLES = checkout_path("backends", "dynamic_examples")


def run_in(folder: Path, backend_id: str) -> ConformanceResult:
    options = RuntimeOptions(dynamic_backends_path=folder)
    return run_conformance(backend_id, runtime_options=options, filter="ElementwiseBinary/")


def test_arm_nns_sample_passes_on_what_it_claims() -> None:
    result = run_in(EXAMPLES / "single_file", "SampleDynamic")
    assert result.is_passed
    assert result.counts["passed"] > 10
    reasons = {r.text for r in result.results if r.outcome is Outcome.UNSUPPORTED}
    assert "SIGNED32 is not supported, only FLOAT32 (data_type)" in reasons


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lie", "found"),
    [
        ("DropsLayers", "does not hold every layer"),
        ("WrongResults", "Expected 15"),
    ],
)
def test_a_lying_example_fails_at_the_operation_that_it_claims(
    lie: str, found: str, tmp_path: Path
) -> None:
    shutil.copy(EXAMPLES / "broken" / f"Broken_{lie}_backend.py", tmp_path)
    shutil.copytree(EXAMPLES / "broken" / "Broken_common", tmp_path / "Broken_common")
    result = run_in(tmp_path, f"Broken{lie}")
    assert not result.is_passed
    assert {problem.operation for problem in result.problems} == {"ElementwiseBinary"}
    assert f"Broken{lie} / ElementwiseBinary(" in result.problems[0].text
    assert any(found in problem.text for problem in result.problems)
