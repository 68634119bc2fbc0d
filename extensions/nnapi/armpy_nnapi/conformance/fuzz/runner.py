"""Looks for failures of a backend: guided where atheris is installed, else by chance."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from armpy.errors import Argument, InvalidArgumentError
from armpy.execution import RuntimeOptions
from armpy.types import BackendId
from armpy_conformance.result import CaseResult, Outcome
from armpy_conformance.workers import LostItem, available_cores, judge_in_workers
from armpy_nnapi.conformance.fuzz import guided
from armpy_nnapi.conformance.fuzz.judging import BytesJudge, Search, name_of
from armpy_nnapi.conformance.fuzz.result import Finding, FuzzRun

ATHERIS, SEEDED = "atheris", "seeded"

_BYTES = 256
"""Bytes of each random model."""

_BATCH = 20
_ROUND = 400
"""Models between two looks at the clock and at the findings."""


def run_fuzz(
    backend_id: BackendId,
    *,
    runtime_options: RuntimeOptions | None = None,
    engine: str | None = None,
    seed: int = 0,
    count: int | None = None,
    seconds: float | None = None,
    most_findings: int = 10,
    folder: str | os.PathLike[str] = "armpy-fuzz",
    reproduce: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    arguments: Sequence[str] = (),
) -> FuzzRun:
    """Look for models on which a backend crashes or does not give CpuRef's answers.

    Parameters
    ----------
    runtime_options : RuntimeOptions, optional
        Where backends are found, and their options; `backends` and `registry` do not count.
    engine : {"atheris", "seeded"}, optional
        atheris where it is installed, if left out. It goes by the coverage of the backend's code
        in Python and ends with its first finding.
    count, seconds : optional
        Maximum number of models, and time limit; 1,000 models if both are left out.
    most_findings : int
        A seeded search ends with as many.
    folder : path
        Where findings are kept, and the corpus of atheris. Made when it is needed.
    reproduce : path, optional
        Judge the model of this file alone.
    jobs : int, optional
        Processes at a time of a seeded search; one per core if left out.
    arguments : sequence of str
        Arguments of the command line, for the reproducers.

    Raises
    ------
    InvalidArgumentError
        If atheris is asked for and not installed.
    """
    options = replace(runtime_options or RuntimeOptions(), registry=None, backends=None)
    search = Search(backend_id, options, Path(folder), tuple(arguments))
    if count is None and seconds is None:
        count = 1000
    if engine == ATHERIS and not guided.is_available():
        raise InvalidArgumentError(
            "atheris is not installed",
            argument=Argument("engine"),
            fix=f"Choose '{SEEDED}', or install it. Run: pip install atheris",
        )
    started = time.perf_counter()
    if reproduce is not None:
        judged = _judged(search, [Path(reproduce).read_bytes()], 1)
        run = _run_of(search, SEEDED, seed, list(judged))
    elif engine == ATHERIS or (engine is None and guided.is_available()):
        run = _guided(search, seed, count, seconds)
    else:
        results = _seeded(search, seed, count, seconds, most_findings, jobs or available_cores())
        run = _run_of(search, SEEDED, seed, list(results))
    return replace(run, duration_s=time.perf_counter() - started)


def bytes_of(seed: int, number: int) -> bytes:
    """The bytes of one model of a seeded search."""
    return np.random.default_rng([seed, number]).bytes(_BYTES)


def _seeded(
    search: Search,
    seed: int,
    count: int | None,
    seconds: float | None,
    most_findings: int,
    jobs: int,
) -> Iterator[tuple[bytes, CaseResult]]:
    """Results of models made up by chance, until it is enough."""
    until = None if seconds is None else time.monotonic() + seconds
    number = num_bad = 0
    while count is None or number < count:
        size = _ROUND if count is None else min(_ROUND, count - number)
        items = [bytes_of(seed, i) for i in range(number, number + size)]
        number += size
        for data, result in _judged(search, items, jobs):
            num_bad += result.outcome.is_bad
            yield data, result
            if until is not None and time.monotonic() > until:
                return
        if num_bad >= most_findings:
            return


def _judged(
    search: Search, items: Sequence[bytes], jobs: int
) -> Iterator[tuple[bytes, CaseResult]]:
    """Judge models in processes that may end with them."""
    make_judge = partial(BytesJudge, search.backend_id, search.options, search.folder)
    batches = [items[i : i + _BATCH] for i in range(0, len(items), _BATCH)]
    by_name = {name_of(data): data for data in items}
    for judged in judge_in_workers(batches, make_judge, CaseResult, jobs=jobs):
        if isinstance(judged, LostItem):
            yield judged.item, search.of_lost(judged)
        else:
            yield by_name[judged.case.split("/")[1]], judged


def _run_of(
    search: Search, engine: str, seed: int, results: Sequence[tuple[bytes, CaseResult]]
) -> FuzzRun:
    """Sum results up."""
    findings = [search.finding(data, r) for data, r in results if r.outcome.is_bad]
    num_run = sum(bool(result.ran) or result.outcome.is_bad for _, result in results)
    lacks: tuple[str, ...] = ()
    if not num_run:
        lacks = (f"no layer ran on {search.backend_id}: this proves nothing about it",)
    return FuzzRun(search.backend_id, engine, seed, len(results), num_run, tuple(findings), lacks)


def _guided(search: Search, seed: int, count: int | None, seconds: float | None) -> FuzzRun:
    """Let atheris search, and examine its findings in another process."""
    explored = guided.explore(search, seed, count, seconds)
    findings: list[Finding] = []
    for data, result in _judged(search, list(explored.inputs), 1):
        seen = result
        if not result.outcome.is_bad:
            text = "it failed in atheris' process after others, and does not fail alone"
            seen = replace(result, outcome=Outcome.FAILED, text=text)
        findings.append(search.finding(data, seen))
    lacks = (explored.problem,) if explored.problem else ()
    return FuzzRun(
        search.backend_id, ATHERIS, seed, explored.num_models, None, tuple(findings), lacks
    )
