"""Runs a directory of test vectors on a backend."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.execution import RuntimeOptions
from armpy.types import BackendId
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.result import CaseResult, ConformanceResult, Outcome, is_selected
from armpy_conformance.workers import LostItem, available_cores, judge_in_workers
from armpy_nnapi.conformance.vectors.example import Example, read_examples
from armpy_nnapi.conformance.vectors.judge import Variation, VectorJudge, data_type_of, operation_of
from armpy_nnapi.conformance.vectors.twins import has_signed_twin

Progress = Callable[[CaseResult], None]
"""Receives the result of each variation of each example."""

_BATCH = 16
"""Variations that a worker takes at a time."""

_WORST_FIRST = (
    Outcome.CRASHED,
    Outcome.FAILED,
    Outcome.UNSUPPORTED,
    Outcome.ELSEWHERE,
    Outcome.KNOWN,
)


LEAST_EXERCISED = 0.1
"""Share of the layers that a backend claims, of which less running fails the run."""


@dataclass(frozen=True, slots=True)
class VectorsResult(ConformanceResult):
    """Results of running test vectors: one per variation of an example."""

    least_share: float = 0.0
    """Share of the cases in which a layer has to run on the backend."""

    @property
    def shortcomings(self) -> tuple[str, ...]:
        """Why the run proves little or nothing; operations without examples need not run."""
        if self.problems:
            return ()
        if not self.layers_run:
            return (f"no layer ran on {self.backend}: this proves nothing about it",)
        texts = []
        num_run = sum(bool(result.ran) for result in self.results)
        if num_run < self.least_share * len(self.results):
            texts.append(
                f"layers ran on {self.backend} in {num_run} of {len(self.results)} models: this "
                f"proves little about it. Expected at least {self.least_share:.0%}"
            )
        if self.exercised is not None and self.exercised < LEAST_EXERCISED:
            texts.append(
                f"{self.backend} runs {self.exercised:.1%} of the layers that it claims. Expected "
                f"at least {LEAST_EXERCISED:.0%}. Refuse layers that are given back"
            )
        return tuple(texts)

    @property
    def by_example(self) -> dict[str, Outcome]:
        """Each example's outcome: the worst of its variations."""
        by_name: dict[str, set[Outcome]] = {}
        for result in self.results:
            by_name.setdefault(result.case.rpartition("/")[0], set()).add(result.outcome)
        return {
            name: next((o for o in _WORST_FIRST if o in outcomes), Outcome.PASSED)
            for name, outcomes in by_name.items()
        }

    def to_document(self) -> dict[str, object]:
        """Everything as plain dictionaries and lists, with the number of examples by outcome."""
        outcomes = list(self.by_example.values())
        examples = {
            outcome.value: outcomes.count(outcome)
            for outcome in Outcome
            if outcome is not Outcome.KNOWN  # there are none of these
        }
        document = ConformanceResult.to_document(self)
        return {**examples, "examples": len(outcomes), "variations": len(self.results), **document}


def run_vectors(
    directory: str | os.PathLike[str],
    backend_id: BackendId,
    *,
    runtime_options: RuntimeOptions | None = None,
    filter: str | Sequence[str] = "",
    jobs: int | None = None,
    progress: Progress | None = None,
) -> VectorsResult:
    """Run every example of a directory, in two variations or three.

    Parameters
    ----------
    directory : path
        Folder with files ``*.json.gz``, also in directories below it.
    runtime_options : RuntimeOptions, optional
        Where backends are found, and their options; `backends` and `registry` do not count.
    filter : str or sequence of str
        Run only examples whose file, name or operations contain this text, or one of these texts.
    jobs : int, optional
        Processes at a time; as many as there are cores if left out.
    progress : callable, optional
        Is given each `CaseResult` as it comes.

    Returns
    -------
    VectorsResult
        Results in the order of the files. An example that ends its process, or takes longer than a
        minute, has crashed.

    Raises
    ------
    BackendUnavailableError
        If the backend cannot be used.
    InvalidArgumentError
        If no example is selected.
    ParserError
        If a file is not of the vectors' format.
    """
    options = replace(runtime_options or RuntimeOptions(), registry=None, backends=None)
    subject = BackendUnderTest(backend_id, options)
    variations = [
        variation
        for example in read_examples(Path(directory))
        if is_selected(filter, example.file, example.name, *example.operations)
        for variation in variations_of(example)
    ]
    if not variations:
        raise InvalidArgumentError(
            "no example is selected", where=str(directory), actual=f"filter {filter!r}"
        )
    results = _judge_all(variations, backend_id, options, jobs or available_cores())
    return collect(subject, results, [variation.case for variation in variations], progress)


def variations_of(example: Example) -> Iterator[Variation]:
    """The example as declared, with unknown output dimensions, and its signed twin if any."""
    yield Variation(example, has_unknown_outputs=False)
    yield Variation(example, has_unknown_outputs=True)
    if has_signed_twin(example):
        yield Variation(example, has_unknown_outputs=False, is_signed_twin=True)


def collect(
    subject: BackendUnderTest,
    results: Iterable[CaseResult],
    cases: Iterable[str],
    progress: Progress | None = None,
    *,
    least_share: float = 0.0,
) -> VectorsResult:
    """Put results together as they come.

    Parameters
    ----------
    subject : BackendUnderTest
        The backend that is judged.
    results : iterable of CaseResult
        Results in any order.
    cases : iterable of str
        Ids of the cases in the order that they are to have.
    progress : callable, optional
        Is given each result as it comes.
    least_share : float
        Share as of `VectorsResult`.
    """
    started = time.perf_counter()
    by_case: dict[str, CaseResult] = {}
    for result in results:
        by_case[result.case] = result
        if progress is not None:
            progress(result)
    backend = subject.backend
    return VectorsResult(
        backend.get_id(),
        backend.version,
        backend.get_api_version(),
        tuple(by_case[case] for case in cases),
        duration_s=time.perf_counter() - started,
        least_share=least_share,
    )


def _judge_all(
    variations: Sequence[Variation], backend_id: BackendId, options: RuntimeOptions, jobs: int
) -> Iterator[CaseResult]:
    batches = [variations[i : i + _BATCH] for i in range(0, len(variations), _BATCH)]
    make_judge = partial(VectorJudge, backend_id, options)
    for result in judge_in_workers(batches, make_judge, CaseResult, jobs=jobs):
        yield _crashed(result) if isinstance(result, LostItem) else result


def _crashed(lost: LostItem[Variation]) -> CaseResult:
    """The result of a variation that took its process with it."""
    example = lost.item.example
    return CaseResult(
        lost.item.case,
        operation_of(example),
        data_type_of(example),
        Outcome.CRASHED,
        lost.reason,
    )
