"""A passing case of each operation that a backend takes, with answers that depend on its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np

from armpy.errors import ArmpyError
from armpy.graph import Graph
from armpy.ops.operation import Array
from armpy.types import DataType
from armpy_conformance.backend_under_test import BackendUnderTest, specialized
from armpy_conformance.case import Case
from armpy_conformance.cases import sample_cases
from armpy_conformance.contract.attribute_cases import attribute_cases, is_small
from armpy_conformance.contract.case import ViolationError
from armpy_conformance.contract.networks import Bench, depends_on_feeds, is_apart, is_plain
from armpy_conformance.differential_run import other_feeds
from armpy_conformance.judge import examine
from armpy_conformance.result import Outcome

_MOST_TRIES = 12
"""Cases of an operation that are tried if no case's first and last rows depend on the inputs."""


def one_of_each(subject: BackendUnderTest) -> tuple[Case, ...]:
    """A passing case of each operation, with answers that change with the inputs."""
    one_each = subject.notes.get("one of each")
    if one_each is None:
        every = (_find_one(subject, name) for name in attribute_cases())
        one_each = subject.notes["one of each"] = tuple(case for case in every if case is not None)
    return one_each


def _find_one(subject: BackendUnderTest, name: str) -> Case | None:
    """The case of an operation with the most attributes; None if no case passes."""
    for case in attribute_cases()[name]:
        if _is_usable(subject, case) and is_plain(case) and depends_on_feeds(subject, case):
            verdict = examine(subject, case)
            if verdict.result.outcome is Outcome.PASSED:
                return verdict.case
    return next(_others(subject, name), None)


def _others(subject: BackendUnderTest, name: str) -> Iterator[Case]:
    """Passing cases with some answer that changes somewhere."""
    cases = (c for c in sample_cases() if c.operation.name == name and is_small(c))
    for case in islice((c for c in cases if _is_usable(subject, c)), _MOST_TRIES):
        if unlike_benches(subject, case) is None:
            continue
        verdict = examine(subject, case)
        # A backend that takes no single layer passes a case of several.
        benches = unlike_benches(subject, verdict.case)
        if benches is None or verdict.result.outcome is not Outcome.PASSED:
            continue
        network_id = subject.runtime.load_network(verdict.case.graph())
        try:
            for bench in benches:
                bench.run(subject.runtime, network_id, "with other inputs")
            yield verdict.case
        except ViolationError:  # a wrong answer is the operation cases' business
            continue
        finally:
            subject.runtime.unload_network(network_id)


def _is_usable(subject: BackendUnderTest, case: Case) -> bool:
    """Return whether the backend takes a case, of a type that is exact enough to compare."""
    has_inputs = any(item is not None and not item.is_constant for item in case.inputs)
    is_half = case.data_type == DataType.FLOAT16.name
    if not has_inputs or is_half or subject.plain_refusal(case):
        return False
    return subject.takes(specialized(case))


def unlike_benches(subject: BackendUnderTest, case: Case) -> tuple[Bench, Bench] | None:
    """A case's network with two kinds of inputs that have different answers; None if none do."""
    graph, feeds = case.graph(), case.feeds()
    for other in (other_feeds(graph, feeds), _scaled(graph, feeds)):
        both = (feeds, other)
        try:
            answers = subject.expected_each(graph, both)
        except ArmpyError:  # other inputs mean nothing to the operation
            continue
        if any(_differ(answers[0][name], answers[1][name]) for name in answers[0]):
            first, second = (Bench(graph, *pair) for pair in zip(both, answers, strict=True))
            return first, second
    return None


def _differ(left: Array, other: Array) -> bool:
    """Return whether two answers differ by more than any tolerance, or in their shapes."""
    return left.shape != other.shape or (left.size > 0 and is_apart(left, other))


def _scaled(graph: Graph, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Inputs with smaller numbers; truth values are inverted, integers stay."""
    infos = {value.name: value.info for value in graph.inputs}
    changed = {}
    for name, array in feeds.items():
        data_type = infos[name].data_type
        if data_type is DataType.BOOLEAN:
            changed[name] = ~array
        elif data_type.is_float:
            with np.errstate(all="ignore"):
                changed[name] = (array * 0.75).astype(array.dtype)
        else:
            changed[name] = array
    return changed
