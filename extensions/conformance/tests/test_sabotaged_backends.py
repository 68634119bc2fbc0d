"""The kit on every example: the honest one passes, each lying twin fails and is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from armpy.backend import IBackendInternal
from armpy_conformance import Outcome
from armpy_testing.effort import IS_FULL

from .kit_runs import run
from .sabotaged_examples import (
    CLASSES,
    claims_too_much,
    first_problem,
    importable,
    name_of,
    twins,
)

pytestmark = pytest.mark.slow

TWINS = list(twins())

Classes = dict[str, type[IBackendInternal]]


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Classes]:
    with importable(tmp_path_factory.mktemp("projects")) as by_name:
        yield by_name


def class_of(example: str, classes: Classes) -> type[IBackendInternal]:
    if example not in classes:
        pytest.skip(f"the engine of {example} is not installed")
    return classes[example]


@pytest.mark.nightly
@pytest.mark.parametrize("example", CLASSES)
def test_an_honest_example_passes_and_runs_what_it_claims(example: str, classes: Classes) -> None:
    if example.startswith("template_") and not IS_FULL:
        pytest.skip("test_new_backend.py runs the kit on them, as their own tests")
    result = run(class_of(example, classes)(), "")
    assert [f"{r.case}: {r.text}" for r in result.problems] == []
    assert result.shortcomings == ()
    assert result.is_passed
    assert result.layers_run > 0
    assert result.exercised is not None
    assert result.exercised >= 0.95


def test_there_are_many_twins_of_every_example() -> None:
    assert len(TWINS) >= 80
    assert all([name for name, _ in TWINS].count(example) >= 8 for example in CLASSES)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("example", "make"), TWINS, ids=[f"{example}-{name_of(make)}" for example, make in TWINS]
)
def test_a_lying_twin_fails_with_the_operation_or_pattern_named(
    example: str,
    make: Callable[[type[IBackendInternal]], IBackendInternal],
    classes: Classes,
) -> None:
    honest = class_of(example, classes)
    twin = make(honest)
    problem = first_problem(honest(), twin, refused_too=make is claims_too_much)
    assert problem is not None
    assert problem.outcome in (Outcome.FAILED, Outcome.CRASHED)
    assert problem.operation != "contract"
    pattern = problem.case.partition("/")[2]
    assert problem.text.startswith(f"{twin.get_id()} / ")
    assert f" / {problem.operation}(" in problem.text or f" / {pattern}: " in problem.text
