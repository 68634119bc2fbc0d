"""Cases of features of words."""

from __future__ import annotations

from collections.abc import Iterator

from armpy.ops import TermWeighting, TfIdfVectorizer
from armpy_conformance.comparison.seeded_values import below
from armpy_conformance.sampling.case_template import CaseTemplate, every

_NGRAMS = ((2,), (3,), (5, 4), (5, 6), (1, 2, 3))
_WEIGHTS = (0.5, 1.0, 2.0, 4.0, 0.25, 3.0)


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    for weighting in TermWeighting:
        for skips in (0, 3):
            operation = TfIdfVectorizer(
                _NGRAMS, (0, 1, 2, 3, 5), _WEIGHTS, weighting, len(_WEIGHTS), skips
            )
            label = f"{weighting.name.lower()}-{skips}"
            yield CaseTemplate(label, operation, ((3, 40),), every, (below(7),))
    plain = TfIdfVectorizer(_NGRAMS, (4, 3, 2, 1, 0), num_features=5)
    yield CaseTemplate("one-row", plain, ((30,),), every, (below(7),))
