"""Each rule of the contract has backends that break it; the kit names the rule and how."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from armpy.backend import IBackendInternal
from armpy_conformance import Outcome
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract import CONTRACT_CASES, judge_contract

from .breaking_backends import BREAKERS
from .breaking_contract import (
    BROKEN_ELSEWHERE,
    OLD_BREAKERS,
    RULES_WITHOUT_BREAKERS,
    FastFails,
    Old,
)
from .breaking_memory import Breaker, mappable_device
from .kit_runs import options_for

pytestmark = pytest.mark.slow

RULES = {case.id.removeprefix("contract/"): case for case in CONTRACT_CASES}
NEW_AREAS = ("tensors", "arenas", "imports", "buffers", "executions", "profiles", "runtimes")
NEW_RULES = [rule for rule in RULES if rule.partition("/")[0] in NEW_AREAS]
PAIRS = [(rule, *breaker) for rule, breakers in BREAKERS.items() for breaker in breakers]


def judged(backend: IBackendInternal, rule: str) -> tuple[Outcome, str]:
    subject = BackendUnderTest(backend.get_id(), options_for(backend))
    result = judge_contract(subject, RULES[rule])
    return result.outcome, result.text


def test_every_rule_has_a_backend_that_breaks_it() -> None:
    assert list(BREAKERS) == NEW_RULES
    assert {*BREAKERS, *OLD_BREAKERS} | RULES_WITHOUT_BREAKERS | BROKEN_ELSEWHERE == set(RULES)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("rule", NEW_RULES)
def test_a_device_that_breaks_nothing_keeps_every_rule(rule: str) -> None:
    outcome, text = judged(Breaker(mappable_device()), rule)
    assert (outcome, text) == (
        Outcome.PASSED,
        "it declares no options of networks" if "model-contexts" in rule else "",
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("rule", "make", "said"), PAIRS, ids=[f"{rule}-{n}" for n, (rule, *_) in enumerate(PAIRS)]
)
def test_a_device_that_breaks_a_rule_fails_at_it(
    rule: str, make: Callable[[], IBackendInternal], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More are for sound devices on busy machines: these stop too late however often they are tried.
    monkeypatch.setattr("armpy_conformance.contract.executing._ATTEMPTS", 3)
    outcome, text = judged(make(), rule)
    assert outcome in (Outcome.FAILED, Outcome.CRASHED), text
    assert text.startswith(f"ExampleDevice / contract/{rule}: ")
    assert re.search(said, text), text


@pytest.mark.parametrize("rule", OLD_BREAKERS)
def test_a_backend_that_breaks_a_rule_fails_at_it(rule: str) -> None:
    make, said = OLD_BREAKERS[rule]
    assert judged(Old(), rule)[0] is Outcome.PASSED
    outcome, text = judged(make(), rule)
    assert outcome in (Outcome.FAILED, Outcome.CRASHED), text
    assert text.startswith(f"Liar / contract/{rule}: ")
    assert re.search(said, text), text


def test_a_choice_that_is_refused_is_refused_by_name() -> None:
    outcome, text = judged(FastFails(), "options/choices-are-accepted")
    assert outcome is Outcome.FAILED
    assert "fast = True is refused, and not by name" in text
