"""Faults of the kinds that vendors make, planted in backends of three shapes: each is found."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armpy.backend import IBackendInternal
from armpy_conformance import CaseResult, Outcome
from armpy_conformance.backend_under_test import BackendUnderTest, specialized
from armpy_conformance.conformance import cases_for
from armpy_conformance.contract import CONTRACT_CASES
from armpy_conformance.contract.attribute_cases import attribute_cases
from armpy_conformance.contract.every_operation import one_of_each
from armpy_conformance.contract.growth import heap_bytes, memory_bytes
from armpy_conformance.contract.networks import samples, with_constants

from .kit_runs import options_for
from .planted.declarations import DECLARATION_FAULTS
from .planted.gauges import BOUNDED, GROWTH_AREAS
from .planted.settings import restored_settings
from .planted.shapes import HONEST, Flow, Fused, Plain, WithManager
from .planted.table import IN_BACKENDS, MISSED

pytestmark = pytest.mark.slow


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
    if shape is not None and takes_all:
        subject.notes.update(honest(shape).notes)
    results = []
    for case in cases_for(subject):
        if area in case.id:
            results.append(case.judge(subject))
            if stops and results[-1].outcome.is_bad:
                break
    return results


RULES = {case.id for case in CONTRACT_CASES}
SLOW = "manners/hangs-in-a-child"
"""Found as late as a child has time."""


def _faults() -> Iterator[Any]:
    """Names of faults; the others are in test_faults_by_rule.py and test_planted_process.py."""
    for name, planted in IN_BACKENDS.items():
        if planted.area not in RULES and name not in (SLOW, *DECLARATION_FAULTS):
            is_missed = pytest.mark.xfail(strict=True, reason=MISSED.get(name, ""))
            yield pytest.param(name, marks=[is_missed] if name in MISSED else [])


@pytest.mark.sampled(11)
@pytest.mark.parametrize("name", list(_faults()))
def test_a_planted_fault_is_found(name: str) -> None:
    planted = IN_BACKENDS[name]
    with restored_settings():
        results = judged(planted.make(), planted.area, stops=True, soak=planted.soak)
    assert results
    last = results[-1]
    assert last.outcome.is_bad, [(r.case, r.outcome, r.text) for r in results][:5]
    assert re.search(planted.said, last.text), last.text


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


AREAS = (
    "If/",
    "While/",
    "/long",
    "/256-kib",
    "/2-mib",
    "/tiles",
    "/channels",
    "+no-elements",
    "ArgMinMax/",
    "-halves/",
    "Transpose/square",
    "SoftNonMaxSuppression/",
    "DetectionPostProcess/",
    "contract/alike/",
    "contract/calls/",
    "contract/compiled/every-attribute",
    "contract/compiled/patterns",
    "contract/contents/",
    "contract/gauges/",
    "contract/loops/",
    "contract/memory/memory-is-held",
    "contract/process/",
    "contract/threads/threads-mix",
    "contract/threads/threads-share",
)
"""Cases in which most faults are found."""


@pytest.mark.sampled(7)
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
    results = judged(HONEST["flow"](), "If/", stops=False)
    assert {r.outcome for r in results} == {Outcome.PASSED}
    assert all(r.ran == r.claimed != () for r in results)
