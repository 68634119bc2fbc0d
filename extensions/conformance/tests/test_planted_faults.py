"""Faults of the kinds that vendors make, planted in honest backends: each is found by its rule."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from armpy.backend import IBackendInternal
from armpy.execution import RuntimeOptions
from armpy_conformance import CaseResult, Outcome
from armpy_conformance.backend_under_test import BackendUnderTest, specialized
from armpy_conformance.conformance import cases_for
from armpy_conformance.contract import CONTRACT_CASES
from armpy_conformance.contract.attribute_cases import attribute_cases
from armpy_conformance.contract.every_operation import one_of_each
from armpy_conformance.contract.growth import heap_bytes, memory_bytes
from armpy_conformance.contract.networks import samples, with_constants
from armpy_conformance.processes.process_state import ProcessState
from armpy_testing.backends.dynamic_modules import module_source, write_module

from .kit_runs import options_for
from .planted.device import OwnMemory, Parts
from .planted.gauges import BOUNDED, GROWTH_AREAS
from .planted.lifecycle import FastFails, Few
from .planted.planting import cases_of_area, first_bad_apart
from .planted.process import SHARED_FILE
from .planted.shapes import Flow, Fused, Plain, WithManager
from .planted.sizes import Resizing, right, stale
from .planted.table import EVERY_FAULT, IN_BACKENDS

pytestmark = pytest.mark.slow

RULES = {case.id for case in CONTRACT_CASES}

OF_THE_CORE = {
    "contract/options/wrong-values-are-refused",
    "contract/options/unknown-names-are-refused",
    "contract/graphs/input-as-output",
    "contract/graphs/no-layers",
    "contract/graphs/output-twice",
}
"""Duties of the core: a backend sees one layer, or none, and no graph outputs."""


@cache
def honest(shape: type[IBackendInternal]) -> BackendUnderTest:
    """A backend without a fault, with the cases that it can be tried with."""
    backend = shape()
    subject = BackendUnderTest(backend.get_id(), options_for(backend))
    samples(subject)
    with_constants(subject)
    one_of_each(subject)
    return subject


def judged(
    backend: IBackendInternal, area: str, *, stops: bool, soak: int = 0
) -> Sequence[CaseResult]:
    """Results of an area's cases, up to the first bad one."""
    subject = BackendUnderTest(backend.get_id(), options_for(backend), soak)
    shape = next((shape for shape in (Fused, Flow, Plain) if isinstance(backend, shape)), None)
    takes_all = getattr(backend, "_operations", None) is None  # others have other samples
    if shape is not None and takes_all and area in RULES:  # only rules need samples
        subject.notes.update(honest(shape).notes)
    results = []
    for case in cases_for(subject):
        if area in case.id:
            results.append(case.judge(subject))
            if stops and results[-1].outcome.is_bad:
                break
    return results


SLOW = "manners/hangs-in-a-child"
"""Found as late as a child has time."""


@pytest.mark.sampled(11)
@pytest.mark.parametrize("name", [name for name in EVERY_FAULT if name != SLOW])
def test_a_fault_is_found_by_its_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # More are for sound devices on busy machines: these stop too late however often they are tried.
    monkeypatch.setattr("armpy_conformance.contract.executing._ATTEMPTS", 3)
    # More are for sound backends whose pools fill up.
    monkeypatch.setattr("armpy_conformance.contract.growth._FULL_POOL", 0)
    planted = EVERY_FAULT[name]
    result: CaseResult | None
    if planted.area.startswith("contract/process/"):  # what it changes stays in a child
        result = first_bad_apart(planted, cases_of_area)
        SHARED_FILE.unlink(missing_ok=True)
        assert result is not None
    else:
        in_backend = IN_BACKENDS[name]
        result = judged(in_backend.make(), planted.area, stops=True, soak=in_backend.soak)[-1]
    assert result.outcome.is_bad, (result.case, result.outcome, result.text)
    assert re.search(planted.said, result.text) or result.case == "process", result.text


def test_every_rule_has_a_fault() -> None:
    areas = {planted.area for planted in EVERY_FAULT.values()}
    assert areas & RULES == RULES - OF_THE_CORE


def test_a_choice_that_is_refused_is_refused_by_name() -> None:
    result = judged(FastFails(), "contract/options/choices-are-accepted", stops=True)[-1]
    assert result.outcome is Outcome.FAILED
    assert "fast = True is refused, and not by name" in result.text


def test_almost_every_operation_has_a_case_whose_answers_depend_on_inputs() -> None:
    subject = honest(Plain)
    names = {case.operation.name for case in one_of_each(subject)}
    supported = {
        name
        for name, cases in attribute_cases().items()
        if any(subject.takes(specialized(case)) for case in cases)
    }
    # Random numbers, constants of the core, and strings of integers have none.
    missing = {"RandomBits", "Rank", "Shape", "Range", "TfIdfVectorizer"}
    assert len(supported) > 80
    assert supported - names <= missing


def test_a_forked_child_that_hangs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armpy_conformance.contract.process._FORK_LIMIT_S", 0.2)
    planted = IN_BACKENDS[SLOW]
    results = judged(planted.make(), planted.area, stops=True)
    assert re.search(planted.said, results[-1].text)


def test_pages_of_files_are_no_growth(tmp_path: Path) -> None:
    size = 1 << 24
    path = tmp_path / "large"
    path.write_bytes(bytes(size))
    before = memory_bytes()
    mapped = np.memmap(path, np.uint8, "r")
    assert not mapped[:: 1 << 12].any()  # reads all pages
    assert memory_bytes() - before < size // 4
    with mmap.mmap(-1, size) as pages:  # new memory, which an array would not need
        pages[:: 1 << 12] = bytes([1]) * (size >> 12)
        assert memory_bytes() - before > size // 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")
def test_a_forked_child_is_watched_beside_many_open_files() -> None:
    resource = pytest.importorskip("resource")
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 1500:
        pytest.skip("the system allows fewer files")
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        planted = IN_BACKENDS["manners/wrong-in-a-child"]
        results = judged(planted.make(), planted.area, stops=True)
    finally:
        for file in files:
            os.close(file)
    assert re.search(planted.said, results[-1].text)


def test_memory_that_was_freed_before_does_not_hide_growth() -> None:
    size = 100_000  # from the heap of the C library, which keeps it
    freed = [np.ones(size, np.uint8) for _ in range(2000)]
    last = np.ones(size, np.uint8)  # keeps the heap from being shortened
    freed.clear()
    planted = IN_BACKENDS["growth/weights-per-load"]
    results = judged(planted.make(), planted.area, stops=True)
    assert results[-1].outcome.is_bad
    assert last.all()


def test_growth_is_found_in_memory_that_was_resident_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not heap_bytes():
        pytest.skip("the C library does not report its allocations")
    monkeypatch.setattr("armpy_conformance.contract.growth.memory_bytes", lambda: 1 << 30)
    planted = IN_BACKENDS["growth/weights-per-load"]
    results = judged(planted.make(), planted.area, stops=True)
    assert "bytes of the C library's heap" in results[-1].text


HONEST: dict[str, Callable[[], IBackendInternal]] = {
    "plain": Plain,
    "fused": Fused,
    "flow": Flow,
    "few operations": Few,
    "memory of its own": lambda: OwnMemory(Parts()),
}
AREAS = dict.fromkeys(p.area for p in IN_BACKENDS.values() if not p.area[0].isupper())
"""Rules and groups of cases in which faults are found; whole operations are tried with CpuRef."""


@pytest.mark.sampled(29)
@pytest.mark.parametrize("shape", HONEST)
@pytest.mark.parametrize("area", AREAS)
def test_an_honest_backend_of_each_shape_passes(area: str, shape: str) -> None:
    results = judged(HONEST[shape](), area, stops=False)
    assert results
    assert [f"{r.case}: {r.text}" for r in results if r.outcome.is_bad] == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("area", GROWTH_AREAS)
def test_what_is_bounded_is_not_growth(area: str, name: str) -> None:
    (result,) = judged(BOUNDED[name](), area, stops=False)
    assert (result.outcome, result.text) == (Outcome.PASSED, "")


def test_a_backend_that_is_another_one_for_each_runtime_is_watched() -> None:
    (result,) = judged(WithManager(), "contract/memory/memory-is-held", stops=False)
    assert (result.outcome, result.text) == (Outcome.PASSED, "")


def test_control_flow_that_is_claimed_is_counted() -> None:
    results = judged(Flow(), "If/", stops=False)
    assert {r.outcome for r in results} == {Outcome.PASSED}
    assert all(r.ran == r.claimed != () for r in results)


def test_programs_that_follow_their_sizes_pass_and_others_are_not_tried() -> None:
    (result,) = judged(Resizing(right), "contract/sizes/", stops=False)
    assert (result.outcome, result.text) == (Outcome.PASSED, "")
    (result,) = judged(Resizing(stale, is_declared=False), "contract/sizes/", stops=False)
    assert result.outcome is Outcome.PASSED
    assert result.text == "it does not say that sizes may be traced"


def test_an_honest_module_keeps_its_process_as_it_was(tmp_path: Path) -> None:
    write_module(tmp_path, "test_honest_backend", module_source("Honest"))
    subject = BackendUnderTest("Honest", RuntimeOptions(dynamic_backends_path=tmp_path))
    rules = [case for case in cases_for(subject) if case.id.startswith("contract/process/")]
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
