"""Cases of transforms to frequencies."""

from __future__ import annotations

from collections.abc import Iterator

from armpy.ops import Dft
from armpy_conformance.sampling.case_template import CaseTemplate, every


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    for parts in (1, 2):
        for label, operation in (
            ("plain", Dft()),
            ("first-axis", Dft(axis=0)),
            ("cut", Dft(axis=1, length=5)),
            ("filled", Dft(axis=1, length=12)),
            ("inverse", Dft(is_inverse=True)),
            ("inverse-filled", Dft(length=12, is_inverse=True)),
        ):
            yield CaseTemplate(f"{label}-{parts}", operation, ((3, 8, parts),), every)
    yield CaseTemplate("one-sided", Dft(is_onesided=True), ((2, 3, 8, 1),), every)
    yield CaseTemplate("one-sided-odd", Dft(is_onesided=True), ((2, 3, 9, 1),), every)
    halves = Dft(is_onesided=True, is_inverse=True)
    yield CaseTemplate("halves-to-signal", halves, ((3, 5, 2),), every)
    odd = Dft(length=9, is_onesided=True, is_inverse=True)
    yield CaseTemplate("halves-to-odd-signal", odd, ((3, 5, 2),), every)
