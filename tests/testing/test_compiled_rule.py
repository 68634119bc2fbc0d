"""What the kit makes of backends that keep compiled parts in files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from armpy.backend import CompiledFiles, OptimizationViews, PreparationRequest
from armpy.errors import BackendCapabilityError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import SubgraphView
from armpy.testing import Outcome
from armpy.testing.backend_under_test import BackendUnderTest
from armpy.testing.contract import CONTRACT_CASES, judge_contract
from tests.support.example_backends import EXAMPLES
from tests.support.lying_backends import options_for, run_one

(RULE,) = (case for case in CONTRACT_CASES if case.id.startswith("contract/compiled/kept"))


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Any]:  # Any: its class is in a file that only armpy loads
    """The sample driver that keeps what it compiles; tests change its methods."""
    place = tmp_path / "drivers"
    shutil.copytree(EXAMPLES / "drivers", place, ignore=shutil.ignore_patterns("__pycache__"))
    with Runtime(RuntimeOptions(["SampleCaching"], dynamic_backends_path=place)) as runtime:
        yield runtime.registry.get("SampleCaching")


def judged(backend: Any) -> tuple[Outcome, str]:
    """What becomes of the rule, and why."""
    result = judge_contract(BackendUnderTest(backend.backend_id, options_for(backend)), RULE)
    return result.outcome, result.text


def test_what_comes_back_from_files_passes(backend: Any) -> None:
    assert judged(backend) == (Outcome.PASSED, "")


def test_parts_of_which_nothing_is_written_pass(backend: Any) -> None:
    backend.save_compiled = lambda *_: None
    assert judged(backend) == (Outcome.PASSED, "")


def test_constants_that_are_lost_in_files_fail(backend: Any) -> None:
    save = backend.save_compiled

    def lose(
        view: SubgraphView, views: OptimizationViews, request: PreparationRequest
    ) -> CompiledFiles:
        files = save(view, views, request)
        return CompiledFiles(files.model, tuple(bytes(len(data)) for data in files.data))

    backend.save_compiled = lose
    outcome, text = judged(backend)
    assert outcome is Outcome.FAILED
    assert "when it comes from files, the output" in text


def test_files_that_are_refused_where_they_were_written_fail(backend: Any) -> None:
    def refuse(*_: object) -> OptimizationViews:
        raise BackendCapabilityError("no file is good enough", where="SampleCaching")

    backend.load_compiled = refuse
    outcome, text = judged(backend)
    assert outcome is Outcome.FAILED
    assert "could not be loaded" in text
    assert "no file is good enough" in text


def test_fewer_files_than_declared_fail(backend: Any) -> None:
    backend.save_compiled = lambda *_: CompiledFiles((b"",), ())
    outcome, text = judged(backend)
    assert outcome is Outcome.FAILED
    assert "has not written the files that it declares" in text


def test_the_kit_judges_the_compiler_and_not_what_it_has_made_before(backend: Any) -> None:
    assert run_one(backend).outcome is Outcome.PASSED
    compiled = backend.num_compiled
    assert run_one(backend).outcome is Outcome.PASSED
    assert backend.num_compiled > compiled
