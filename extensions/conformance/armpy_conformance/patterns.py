"""Judges a pattern: a small network, of which the backend may run a part."""

from __future__ import annotations

from collections.abc import Mapping

from armpy.backend import Support
from armpy.compiler import specialize
from armpy.errors import ArmpyError, BackendCapabilityError
from armpy.graph import Layer
from armpy.ops.operation import Array
from armpy.ops.tolerance import compare
from armpy_conformance.backend_under_test import BackendUnderTest, refusal
from armpy_conformance.differential_run import (
    DifferentialRun,
    FailureError,
    run_trial,
    tolerance_of,
)
from armpy_conformance.executed_layers import kind_of, kinds_run
from armpy_conformance.judge import ANSWERED_BY_CORE, expected_of
from armpy_conformance.pattern import Pattern
from armpy_conformance.raised import described
from armpy_conformance.result import CaseResult, Outcome

PATTERN = "pattern"
"""Stands for the operation in tables."""


def judge_pattern(subject: BackendUnderTest, case: str, pattern: Pattern) -> CaseResult:
    """Judge one of the kit's patterns, with CpuRef for the layers that the backend does not take.

    Parameters
    ----------
    case : str
        Id in results.

    Returns
    -------
    CaseResult
        PASSED if the answers are right and the backend ran some of the layers; ELSEWHERE if it
        ran none of those that it says it supports, or the core takes out all layers; UNSUPPORTED
        if it takes none.
    """
    return _judged(subject, case, pattern, is_declared=False)


def judge_declared(subject: BackendUnderTest, case: str, pattern: Pattern) -> CaseResult:
    """Judge a pattern that the backend declares: every layer has to run on it."""
    return _judged(subject, case, pattern, is_declared=True)


def _judged(
    subject: BackendUnderTest, case: str, pattern: Pattern, *, is_declared: bool
) -> CaseResult:
    """The result of a pattern; errors are reported with its name."""
    where = f"{subject.backend_id} / {pattern.name}"
    data_type = ""
    layers: tuple[Layer, ...] = ()
    claimed: tuple[str, ...] = ()
    ran: tuple[str, ...] = ()
    try:
        graph = pattern.graph
        data_type = next(iter(graph.inputs)).info.data_type.name if graph.inputs else ""
        whole = specialize(graph)
        layers = whole.layers
        if is_declared:
            claimed = tuple(map(kind_of, layers))
        supports = list(subject.supports(whole).values())
        if not is_declared and not layers:
            return CaseResult(case, PATTERN, data_type, Outcome.ELSEWHERE, ANSWERED_BY_CORE)
        if not is_declared and not any(supports):
            return CaseResult(case, PATTERN, data_type, Outcome.UNSUPPORTED, refusal(supports))
        runtime = subject.runtime if is_declared else subject.mixed
        placement = run_trial(runtime, _trial(subject, pattern))
        ran = kinds_run(layers, placement, subject.backend_id)
        outcome, text = _outcome(supports, ran, is_declared=is_declared)
    except FailureError as failure:
        ran = kinds_run(layers, failure.placement, subject.backend_id)
        names = ", ".join(dict.fromkeys(ran)) or "nothing"
        outcome, text = Outcome.FAILED, f"{failure}. On the backend ran {names}"
    except ArmpyError as error:
        outcome, text = Outcome.FAILED, str(error)
    except Exception as error:  # noqa: BLE001 - the backend's code may raise anything
        outcome, text = Outcome.FAILED, described(error)
    text = f"{where}: {text}" if outcome.is_bad else text
    return CaseResult(case, PATTERN, data_type, outcome, text, claimed, ran)


def _outcome(
    supports: list[Support], ran: tuple[str, ...], *, is_declared: bool
) -> tuple[Outcome, str]:
    """Return the outcome of a pattern whose answers are right."""
    text = f"{len(ran)} of {len(supports)} layers"
    if len(ran) == len(supports):
        return Outcome.PASSED, text
    if is_declared:
        missing = f"it is declared, and {text} ran on the backend. {refusal(supports)}"
        return Outcome.FAILED, missing.rstrip()
    if ran:
        return Outcome.PASSED, text
    return Outcome.ELSEWHERE, "the backend gave back layers that it had accepted"


def _trial(subject: BackendUnderTest, pattern: Pattern) -> DifferentialRun:
    """Return the trial, with the right answers."""
    graph, feeds = pattern.graph, pattern.feeds()
    labels = [f"the output '{name}'" for name in graph.output_names]
    numbers = max(1, len(graph.layers)), subject.backend.device.numerics
    try:
        both, expected = expected_of(subject, graph, feeds)
    except BackendCapabilityError:
        if pattern.expected is None:
            raise
        right = dict(pattern.expected)
        again = pattern.again or (feeds, right)
        both, expected = (feeds, dict(again[0])), (right, dict(again[1]))
        return DifferentialRun(graph, both, expected, labels, False, *numbers)
    trial = DifferentialRun(graph, both, expected, labels, False, *numbers)
    if problem := _why_other_than_reference(trial, pattern.expected or {}):
        raise FailureError(problem)
    return trial


def _why_other_than_reference(trial: DifferentialRun, declared: Mapping[str, Array]) -> str:
    """Describe errors in a pattern's own outputs that CpuRef can compute; empty if none."""
    for name, value in zip(trial.graph.output_names, trial.graph.outputs, strict=True):
        if name in declared:
            tolerance = tolerance_of(trial, value.info.data_type)
            difference = compare(trial.expected[0][name], declared[name], value.info, tolerance)
            if difference is not None:
                return f"the pattern expects another output '{name}' than CpuRef: {difference}"
    return ""
