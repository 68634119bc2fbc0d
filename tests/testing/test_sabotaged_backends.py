"""The kit on every example: the honest one passes, each lying twin fails and is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from armpy.backend import IBackendInternal
from armpy.testing import Outcome
from tests.support.sabotaged_examples import (
    CLASSES,
    Kit,
    first_problem,
    importable,
    name_of,
    twins,
    whole_kit,
)

TWINS = list(twins())

Classes = dict[str, type[IBackendInternal]]


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Classes]:
    with importable(tmp_path_factory.mktemp("projects")) as found:
        yield found


@pytest.fixture(scope="module")
def kit_of(classes: Classes) -> Callable[[str], Kit]:
    """The whole kit on an example, once for all tests."""
    known: dict[str, Kit] = {}

    def kit(example: str) -> Kit:
        if example not in classes:
            pytest.skip(f"the engine of {example} is not installed")
        if example not in known:
            known[example] = whole_kit(classes[example]())
        return known[example]

    return kit


@pytest.mark.parametrize("example", CLASSES)
def test_an_honest_example_passes_and_runs_what_it_claims(
    example: str, kit_of: Callable[[str], Kit]
) -> None:
    result = kit_of(example).result
    assert [f"{r.case}: {r.text}" for r in result.problems] == []
    assert result.shortcomings == ()
    assert result.is_passed
    assert result.layers_run > 0
    assert result.exercised is not None
    assert result.exercised >= 0.95


def test_there_are_many_twins_of_every_example() -> None:
    assert len(TWINS) >= 80
    assert all([name for name, _ in TWINS].count(example) >= 8 for example in CLASSES)


@pytest.mark.parametrize(
    ("example", "make"), TWINS, ids=[f"{example}-{name_of(make)}" for example, make in TWINS]
)
def test_a_lying_twin_fails_with_the_operation_or_pattern_named(
    example: str,
    make: Callable[[type[IBackendInternal]], IBackendInternal],
    classes: Classes,
    kit_of: Callable[[str], Kit],
) -> None:
    kit = kit_of(example)
    cases = [*kit.passed, *kit.others] if name_of(make) == "claims_too_much" else kit.passed
    problem = first_problem(make(classes[example]), cases)
    assert problem is not None
    assert problem.outcome in (Outcome.FAILED, Outcome.CRASHED)
    assert problem.operation != "contract"
    pattern = problem.case.partition("/")[2]
    assert problem.text.startswith(f"{kit.result.backend} / ")
    assert f" / {problem.operation}(" in problem.text or f" / {pattern}: " in problem.text
