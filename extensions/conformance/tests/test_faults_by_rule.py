"""Each rule of the contract finds faults of its kind, and names itself and what is wrong."""

from __future__ import annotations

import re

import pytest

from armpy.backend import IBackendInternal
from armpy_conformance import Outcome
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.contract import CONTRACT_CASES, judge_contract

from .kit_runs import options_for
from .planted.device import OwnMemory, Parts
from .planted.lifecycle import FastFails, Few
from .planted.table import EVERY_FAULT, IN_BACKENDS

pytestmark = pytest.mark.slow

RULES = {case.id: case for case in CONTRACT_CASES}
BY_RULE = {name: planted for name, planted in IN_BACKENDS.items() if planted.area in RULES}

OF_THE_CORE = {
    "contract/options/wrong-values-are-refused",
    "contract/options/unknown-names-are-refused",
    "contract/graphs/input-as-output",
    "contract/graphs/output-twice",
    "contract/graphs/no-layers",
    "contract/caller/wrong-input",
    "contract/caller/arrays-of-the-caller",
}
"""Duties of the core towards every backend; the kit checks them."""

ELSEWHERE = {
    # Tables of programs.py and executions.py, whose areas have several rules.
    "contract/calls/calls-with-every-request-are-alike",
    "contract/calls/networks-of-every-priority-are-alike",
    "contract/calls/relaxed-answers-are-as-good-as-float16",
    "contract/contents/functions-for-arrays-are-like-executions",
    # The table of process.py, whose faults are found by several rules.
    "contract/process/a-whole-life-changes-nothing",
    "contract/process/idle-backends-use-no-processor",
    "contract/process/imports-change-nothing",
    "contract/process/no-files-are-left",
    "contract/process/processes-get-the-same-facts",
    "contract/process/the-interpreter-ends",
    # Other files.
    "contract/alignment/nothing-is-written-past-the-padding",  # test_declared_memory_rules.py
    "contract/alignment/tensors-lie-where-their-factory-declares",  # there, too
    "contract/compiled/parts-that-cannot-be-used-are-compiled-anew",  # test_compiled_rule.py
    "contract/identity/id-is-constant",  # test_conformance_kit.py
    "contract/memory/manager-can-be-used-again",  # there, too
    "contract/sizes/new-sizes-are-as-if-compiled-for-them",  # test_sizes_rule.py
    "contract/support/unknown-operations-are-refused",  # test_conformance_kit.py
}
"""Rules whose faults are found in an area of several rules, or planted in other files."""


def judged(backend: IBackendInternal, rule: str) -> tuple[Outcome, str]:
    subject = BackendUnderTest(backend.get_id(), options_for(backend))
    result = judge_contract(subject, RULES[rule])
    return result.outcome, result.text


def test_every_rule_has_a_fault() -> None:
    areas = {planted.area for planted in EVERY_FAULT.values()}
    named = tuple(area for area in areas if area in RULES or not area.endswith("/"))
    found = {rule for rule in RULES if rule.startswith(named)}
    assert found | OF_THE_CORE | ELSEWHERE == set(RULES)
    assert not found & (OF_THE_CORE | ELSEWHERE)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("rule", dict.fromkeys(planted.area for planted in BY_RULE.values()))
@pytest.mark.parametrize("shape", ["few operations", "memory of its own"])
def test_a_backend_without_a_fault_keeps_every_rule(rule: str, shape: str) -> None:
    outcome, text = judged(Few() if shape == "few operations" else OwnMemory(Parts()), rule)
    assert outcome is Outcome.PASSED, text


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BY_RULE)
def test_a_fault_fails_at_its_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # More are for sound devices on busy machines: these stop too late however often they are tried.
    monkeypatch.setattr("armpy_conformance.contract.executing._ATTEMPTS", 3)
    planted = BY_RULE[name]
    backend = planted.make()
    outcome, text = judged(backend, planted.area)
    assert outcome in (Outcome.FAILED, Outcome.CRASHED), text
    assert text.startswith(f"{backend.get_id()} / {planted.area}: ")
    assert re.search(planted.said, text), text


def test_a_choice_that_is_refused_is_refused_by_name() -> None:
    outcome, text = judged(FastFails(), "contract/options/choices-are-accepted")
    assert outcome is Outcome.FAILED
    assert "fast = True is refused, and not by name" in text
