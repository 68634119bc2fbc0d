"""The kit's verdict on backends that keep compiled parts in files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from armpy.backend import (
    OptimizationViews,
    OptionValues,
    PreparationRequest,
    SavedProgram,
    Substitution,
)
from armpy.errors import BackendCapabilityError, BackendError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import SubgraphView
from armpy.store.digests import digest_of
from armpy_conformance import Outcome
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract import CONTRACT_CASES, ContractCase, judge_contract
from armpy_testing.checkout import checkout_path

from .kit_runs import options_for, run_one

KEPT, ANEW = (
    next(case for case in CONTRACT_CASES if case.id.startswith(f"contract/compiled/{name}"))
    for name in ("kept", "parts-that-cannot-be-used")
)


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Any]:  # Any: its class is in a file that only armpy loads
    """The sample driver that keeps compiled parts; tests change its methods."""
    place = tmp_path / "drivers"
    shutil.copytree(
        checkout_path("backends", "dynamic_examples", "drivers"),
        place,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    with Runtime(RuntimeOptions(["SampleCaching"], dynamic_backends_path=place)) as runtime:
        yield runtime.registry.get("SampleCaching")


def judged(backend: Any, rule: ContractCase = KEPT) -> tuple[Outcome, str]:
    """Outcome of a rule, and the reason."""
    result = judge_contract(BackendUnderTest(backend.get_id(), options_for(backend)), rule)
    return result.outcome, result.text


def change_programs(backend: Any, **methods: Callable[..., object]) -> None:
    """Give the backend's programs other methods."""
    right = backend.get_programs()
    changed = type("Changed", (type(right),), {k: staticmethod(m) for k, m in methods.items()})
    backend.get_programs = changed


@pytest.mark.slow
def test_what_comes_back_from_files_passes(backend: Any) -> None:
    assert judged(backend) == (Outcome.PASSED, "")


@pytest.mark.slow
def test_parts_of_which_nothing_is_written_pass(backend: Any) -> None:
    change_programs(backend, save=lambda *_: None)
    assert judged(backend) == (Outcome.PASSED, "")


def test_a_backend_that_keeps_no_programs_has_nothing_to_try(backend: Any) -> None:
    backend.get_programs = lambda: None
    for rule in (KEPT, ANEW):
        outcome, text = judged(backend, rule)
        assert outcome is not Outcome.FAILED
        assert "keeps none of its programs" in text


@pytest.mark.slow
def test_constants_that_are_lost_in_files_fail(backend: Any) -> None:
    save = backend.get_programs().save

    def lose(program: object, options: OptionValues) -> SavedProgram:
        saved: SavedProgram = save(program, options)
        return saved._replace(parts={name: bytes(len(p)) for name, p in saved.parts.items()})

    change_programs(backend, save=lose)
    outcome, text = judged(backend)
    assert outcome is Outcome.FAILED
    assert "when it comes from files, the output" in text


@pytest.mark.slow
def test_programs_that_are_refused_where_they_were_written_fail(backend: Any) -> None:
    def refuse(*_: object) -> object:
        raise BackendCapabilityError("no file is good enough", where="SampleCaching")

    change_programs(backend, load=refuse)
    outcome, text = judged(backend)
    assert outcome is Outcome.FAILED
    assert "could not be loaded" in text
    assert "no file is good enough" in text


@pytest.mark.slow
def test_what_cannot_be_written_fails(backend: Any) -> None:
    change_programs(backend, save=lambda *_: SavedProgram({}, {"code": "text"}))  # type: ignore[dict-item]  # the test's point
    outcome, text = judged(backend)
    assert outcome is Outcome.FAILED
    assert "the part 'code' is 'text', neither bytes" in text


@pytest.mark.slow
def test_what_is_compiled_anew_passes(backend: Any) -> None:
    assert judged(backend, ANEW) == (Outcome.PASSED, "")


def change_compiling_again(
    backend: Any, change: Callable[[OptimizationViews], OptimizationViews]
) -> None:
    """Change the answers about layers whose programs were written down before."""
    compile_right, save_right = backend.optimize_subgraph_view, backend.get_programs().save
    compiled: list[bytes] = []
    written = set()

    def optimize(view: SubgraphView, request: PreparationRequest) -> OptimizationViews:
        compiled.append(digest_of(view))
        views: OptimizationViews = compile_right(view, request)
        return change(views) if compiled[-1] in written else views

    def save(program: object, options: OptionValues) -> SavedProgram:
        written.add(compiled[-1])
        saved: SavedProgram = save_right(program, options)
        return saved

    backend.optimize_subgraph_view = optimize
    change_programs(backend, save=save)


@pytest.mark.slow
def test_a_backend_that_compiles_only_once_fails(backend: Any) -> None:
    def refuse(_: OptimizationViews) -> OptimizationViews:
        raise BackendError("it is in its files already")

    change_compiling_again(backend, refuse)
    outcome, text = judged(backend, ANEW)
    assert outcome in (Outcome.FAILED, Outcome.CRASHED)
    assert "is in its files already" in text


@pytest.mark.slow
def test_a_backend_that_is_wrong_when_it_compiles_anew_fails(backend: Any) -> None:
    def spoil(views: OptimizationViews) -> OptimizationViews:
        (substitution,) = views.substitutions
        (layer,) = substitution.replacement.layers
        operation: Any = layer.operation
        last = operation.program.instructions[-1]
        sevens = replace(last, step=replace(last.step, bounds=(7.0, 7.0)))
        wrong = replace(operation.program, instructions=(sevens,))
        changed = replace(operation, program=wrong)
        return OptimizationViews([Substitution.by_operation(substitution.subgraph, changed)])

    change_compiling_again(backend, spoil)
    outcome, text = judged(backend, ANEW)
    assert outcome is Outcome.FAILED
    assert "when its files are damaged, the output" in text


@pytest.mark.slow
def test_the_kit_judges_the_compiler_and_not_what_it_has_made_before(backend: Any) -> None:
    assert run_one(backend).outcome is Outcome.PASSED
    compiled = backend.num_compiled
    assert run_one(backend).outcome is Outcome.PASSED
    assert backend.num_compiled > compiled
