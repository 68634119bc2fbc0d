"""A passing case of each operation that a backend takes."""

from __future__ import annotations

from collections.abc import Iterator

from armpy.testing.backend_under_test import BackendUnderTest
from armpy.testing.case import Case
from armpy.testing.contract.networks import is_plain, tells_feeds_apart
from armpy.testing.contract.telling import telling_cases
from armpy.testing.judge import examine
from armpy.testing.result import Outcome
from armpy.types import DataType


def one_of_each(subject: BackendUnderTest) -> tuple[Case, ...]:
    """A passing case of each operation, with answers that change with the inputs."""
    found = subject.notes.get("one of each")
    if found is None:
        found = subject.notes["one of each"] = tuple(_find_one_of_each(subject))
    return found


def _find_one_of_each(subject: BackendUnderTest) -> Iterator[Case]:
    """The first such case of each operation."""
    for cases in telling_cases().values():
        for case in cases:
            # What a device may do to half-precision numbers is the operation cases' business.
            if case.data_type == DataType.FLOAT16.name or not is_plain(case):
                continue
            if not tells_feeds_apart(subject, case):
                continue
            verdict = examine(subject, case)
            if verdict.result.outcome is Outcome.PASSED:
                yield verdict.case
                break
