"""No invalid model, however made, gets anything but an `NnapiError` with the code for it.

300 models are tried, 2,000 in the full form; the environment variable ``ARMPY_FUZZ_COUNT`` says how
many instead (20,000 before a release), and ``ARMPY_FUZZ_START`` at which number to begin. A failure
names the number of the model, which always gives the same one.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from armpy.errors import NnapiError, ResultCode
from armpy_nnapi import Model
from armpy_nnapi.conformance.random_graphs.building import build_model
from armpy_nnapi.description.model_description import ModelDescription
from armpy_nnapi.validation.validate_model import validate_model
from armpy_testing.effort import effort

from .invalid_models.mutations import KINDS, Mutation, random_mutation

COUNT = effort(300, 2000, "ARMPY_FUZZ_COUNT")
START = int(os.environ.get("ARMPY_FUZZ_START", "0"))

pytestmark = pytest.mark.slow


def mutations_of(kind: str) -> list[Mutation]:
    """Every mutation of one kind."""
    first = list(KINDS).index(kind)
    return [
        random_mutation(number)
        for number in range(START, START + COUNT)
        if number % len(KINDS) == first
    ]


def outcome(use: Callable[[ModelDescription], object], mutation: Mutation) -> str:
    """The fault in the outcome of using a model; empty if it is refused as it should be."""
    try:
        use(mutation.description)
    except NnapiError as error:
        # There being no such operation is the one thing that is not BAD_DATA in a description.
        is_unknown = mutation.kind == "unknown_operation"
        allowed = {ResultCode.BAD_DATA} | ({ResultCode.UNEXPECTED_NULL} if is_unknown else set())
        return "" if error.code in allowed else f"{error.code.name}: {error}"
    except Exception as error:  # noqa: BLE001  # the test looks for any other error
        return f"{type(error).__name__}: {error}"
    return "accepted"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
def test_invalid_models_are_refused(kind: str) -> None:
    wrong = {}
    for mutation in mutations_of(kind):
        ways: dict[str, Callable[[ModelDescription], object]] = {
            "validate_model": validate_model,
            "from_description": Model.from_description,
        }
        if mutation.is_buildable:
            ways["methods"] = build_model
        outcomes = {way: outcome(use, mutation) for way, use in ways.items()}
        wrong.update({f"{mutation.seed} by {way}": text for way, text in outcomes.items() if text})
    assert wrong == {}


def test_a_number_always_gives_the_same_model() -> None:
    for number in range(len(KINDS)):
        # Compared as text, as a scale that is not a number is not equal to itself.
        assert repr(random_mutation(number)) == repr(random_mutation(number))
