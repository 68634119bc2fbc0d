"""Faults in what backends do to their process and in what they declare."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from armpy.execution import RuntimeOptions
from armpy_conformance import Outcome
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.conformance import all_cases
from armpy_conformance.contract import CONTRACT_CASES
from armpy_conformance.processes.process_state import ProcessState
from armpy_testing.backends.dynamic_modules import module_source, write_module

from .planted.declarations import DECLARATION_FAULTS
from .planted.planting import cases_of_area, first_bad_apart
from .planted.process import PROCESS_FAULTS

RULES = {case.id for case in CONTRACT_CASES}


@pytest.mark.slow
@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", PROCESS_FAULTS)
def test_a_fault_in_the_process_is_found(name: str) -> None:
    planted = PROCESS_FAULTS[name]
    result = first_bad_apart(planted, cases_of_area)
    assert result is not None
    assert re.search(planted.said, result.text) or result.outcome is Outcome.CRASHED


@pytest.mark.slow
@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", [n for n, p in DECLARATION_FAULTS.items() if p.area not in RULES])
def test_a_fault_in_a_declaration_is_found(name: str) -> None:
    planted = DECLARATION_FAULTS[name]
    result = first_bad_apart(planted, cases_of_area)
    assert result is not None
    assert re.search(planted.said, result.text)


@pytest.mark.slow
def test_an_honest_module_keeps_its_process_as_it_was(tmp_path: Path) -> None:
    write_module(tmp_path, "test_honest_backend", module_source("Honest"))
    subject = BackendUnderTest("Honest", RuntimeOptions(dynamic_backends_path=tmp_path))
    rules = [case for case in all_cases() if case.id.startswith("contract/process/")]
    results = [rule.judge(subject) for rule in rules]
    assert [(r.case, r.text) for r in results if r.outcome is not Outcome.PASSED] == []
    own = subject.own_process
    assert own is not None
    assert (own.exit_code, own.problem, own.idle_share < 0.03) == (0, "", True)


def test_a_replaced_function_is_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    before = ProcessState.current()
    monkeypatch.setattr("json.dumps", str)
    monkeypatch.setattr("threading.Thread.join", str)
    changes = before.changes()
    assert "the function json.dumps" in changes
    assert "the function threading.Thread.join" in changes
