"""Runs crash cases, each in a process of its own."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from armpy import CompilationCaching
from armpy.errors import Argument, InvalidArgumentError
from armpy.execution import RuntimeOptions
from armpy.types import BackendId
from armpy_conformance.crash.cases import AFTERWARDS, CASES, SURVEY, CrashCase
from armpy_conformance.crash.networks import builders
from armpy_conformance.crash.process import ProcessEnd, Task, run_apart
from armpy_conformance.crash.result import CrashOutcome, CrashResult, CrashRun
from armpy_conformance.result import is_selected
from armpy_conformance.workers import available_cores

_KILLS = 2
"""How often a case that is killed is begun anew."""

_LATEST_KILL_S = 0.3

Progress = Callable[[CrashResult], None]
"""Receives the result of each case."""


def run_crash(
    backend_id: BackendId,
    *,
    runtime_options: RuntimeOptions | None = None,
    filter: str | Sequence[str] = "",
    seed: int = 0,
    timeout_s: float = 60.0,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> CrashRun:
    """Try to make a backend end its process, hang, fail or lie.

    Parameters
    ----------
    runtime_options : RuntimeOptions, optional
        Where backends are found, and their options; `backends` and `registry` do not count.
    filter : str or sequence of str
        Run only cases whose ids contain this text, or one of these texts.
    seed : int
        Of inputs, and of the times when something is stopped.
    timeout_s : float
        How long one case may take before it hangs.
    jobs : int, optional
        Processes at a time; as many as there are cores if left out.
    progress : callable, optional
        Is given each `CrashResult` as it comes.

    Raises
    ------
    InvalidArgumentError
        If no case is selected.
    DeviceNotFoundError
        If the backend takes no layer, as this machine lacks its device.

    References
    ----------
    Android's NeuralNetworksApiCrashTest.
    """
    # A cached program would answer for all loads, and for a compiler that was changed since.
    nothing_kept = CompilationCaching(enabled=False)
    options = replace(
        runtime_options or RuntimeOptions(), registry=None, backends=None, caching=nothing_kept
    )
    started = time.perf_counter()
    asked, networks = _survey(Task(SURVEY.id, "", backend_id, options, seed), timeout_s)
    if progress is not None:
        progress(asked)
    left_out = tuple(name for name in builders() if name not in networks)
    chosen = [
        (case, network)
        for case in CASES
        for network in networks
        if is_selected(filter, f"{case.id}/{network}")
    ]
    # That case runs always, as it says for which networks there are others.
    if networks and not chosen and not is_selected(filter, SURVEY.id):
        raise InvalidArgumentError(
            "no case is selected",
            argument=Argument("filter"),
            actual=repr(filter),
            fix="Leave it out to run every case",
        )

    def run(pair: tuple[CrashCase, str]) -> CrashResult:
        case, network = pair
        task = Task(case.id, network, backend_id, options, seed)
        result = _run_case(case, task, timeout_s)
        if progress is not None:
            progress(result)
        return result

    with ThreadPoolExecutor(jobs or available_cores()) as pool:
        results = (asked, *pool.map(run, chosen))
    duration_s = time.perf_counter() - started
    return CrashRun(backend_id, seed, results, left_out, duration_s, bool(networks))


def _survey(task: Task, timeout_s: float) -> tuple[CrashResult, tuple[str, ...]]:
    """Ask a backend, in a process of its own, which networks it takes a layer of."""
    started = time.perf_counter()
    ended = run_apart(task, timeout_s)
    names: tuple[str, ...] = ()
    text = ended.text
    if ended.outcome is CrashOutcome.SUCCESS:
        names = tuple(filter(None, ended.text.split(" ")))
        text = f"takes layers of {len(names)} networks of {len(builders())}"
    duration_s = time.perf_counter() - started
    return CrashResult(SURVEY.id, ended.outcome, text, duration_s, ended.output), names


def _run_case(case: CrashCase, task: Task, timeout_s: float) -> CrashResult:
    """Run one case in its process, or in several if it is killed."""
    started = time.perf_counter()
    ended = _run_killed(task, timeout_s) if case.is_killed else run_apart(task, timeout_s)
    return CrashResult(
        f"{case.id}/{task.network}",
        ended.outcome,
        ended.text,
        time.perf_counter() - started,
        ended.output,
    )


def _run_killed(task: Task, timeout_s: float) -> ProcessEnd:
    """Kill processes at random times, and see whether the next one works."""
    times = random.Random(f"{task.seed}/{task.case}/{task.network}")
    for _ in range(_KILLS):
        ended = run_apart(task, timeout_s, kill_after_s=times.uniform(0, _LATEST_KILL_S))
        if ended.outcome is not CrashOutcome.SUCCESS:
            return ended
    after = run_apart(replace(task, case=AFTERWARDS.id), timeout_s)
    text = f"killed {_KILLS} times; afterwards: {after.text}"
    return ProcessEnd(after.outcome, text, after.output)
