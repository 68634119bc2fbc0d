"""Judges one mutation in a process of its own: by the kit, and then by many more layers."""

from __future__ import annotations

import enum
import importlib
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from armpy_reference.backend import ReferenceBackend
from armpy_reference.factory import snake_case

from armpy.execution import RuntimeOptions
from armpy.ops.operation import Array
from armpy.ops.tolerance import compare
from armpy.plugins import BackendRegistry
from armpy.types import REFERENCE_BACKEND_ID
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.conformance import NamedCase, all_cases
from armpy_conformance.differences.description import describe
from armpy_conformance.result import CONTRACT

from .corpus import Corpus, Run, recording
from .sites import Site, mutated
from .twin import TWIN, TWIN_ID, Sources

_CPU_LIMIT_S = 60
_TIME_LIMIT_S = 300
_MEMORY_LIMIT_BYTES = 6 << 30

_MORE_THAN_COMPUTING = ("workload",)

_OF_SEVERAL = (CONTRACT, "pattern", "If", "While")
"""How ids of cases begin that have layers of any operation."""


class Verdict(enum.Enum):
    """What became of a mutation."""

    CAUGHT = "caught by the kit"
    ENDED = "ended its process or took too long while the kit ran"
    ESCAPED = "escaped, though it changes a result beyond its tolerance"
    TOLERATED = "changes results only within the tolerances"
    EQUIVALENT = "changed no result that was looked at"


@dataclass(frozen=True, slots=True)
class Trial:
    """A mutation and what became of it.

    Parameters
    ----------
    site : Site
    verdict : Verdict
    text : str
        What caught it, or which layer's result it changes.
    """

    site: Site
    verdict: Verdict
    text: str


class Court:
    """Judges mutations one after the other, each in a forked process.

    Parameters
    ----------
    sources : Sources
    corpus : Corpus
        Says whether a mutation that escapes changes anything.
    modules : collection of str
        Those of the mutations: files without such an operation are not examined.
    """

    def __init__(self, sources: Sources, corpus: Corpus, modules: Collection[str]) -> None:
        self._sources = sources
        self._corpus = corpus
        subject = BackendUnderTest(REFERENCE_BACKEND_ID)
        operations = set(_OF_SEVERAL).union(*map(sources.operations_of, modules))
        cases = (case for case in all_cases() if case.id.partition("/")[0] in operations)
        self._cases = [(case, runs_of(subject, case)) for case in cases]

    def judge(self, site: Site) -> Trial:
        """Judge a mutation."""
        verdict, text = in_child(lambda report: self._judge(site, report))
        return Trial(site, Verdict[verdict], text)

    def _judge(self, site: Site, report: Report) -> None:
        """Judge a mutation in this process, which is spoilt by it."""
        operations = self._sources.operations_of(site.module)
        try:
            twin = self._sources.twin(
                {site.module: mutated(self._sources.texts[site.module], site)}
            )
        except Exception as error:  # noqa: BLE001 - a mutated module may raise anything
            report("CAUGHT", f"cannot be imported: {error!r}")
            return
        registry = BackendRegistry()
        registry.register(TWIN_ID, lambda: twin)
        registry.register("CpuRef", ReferenceBackend)
        subject = BackendUnderTest(TWIN_ID, RuntimeOptions(registry=registry))
        for case in self._suspected(operations, site.module):
            result = case.judge(subject)
            if result.outcome.is_bad:
                report("CAUGHT", f"{case.id}: {result.text}")
                return
        report("TOLERATED", "")  # stands if what follows ends the process
        worst, text = self._changed(operations)
        report(worst.name, text)

    def _suspected(self, operations: frozenset[str], module: str) -> Iterator[NamedCase]:
        """Cases that the twin may fail: of layers whose outputs are not CpuRef's to the last bit.

        Notes
        -----
        Where a workload's outputs are the same bit by bit, the kit sees no difference either;
        workloads' common part does more than compute, so that every case is tried for it.
        """
        for case, runs in self._cases:
            layers = [run for run in runs if type(run.operation).__name__ in operations]
            if any(_difference(run) is not None for run in layers) or (
                layers and module in _MORE_THAN_COMPUTING
            ):
                yield case

    def _changed(self, operations: frozenset[str]) -> tuple[Verdict, str]:
        """Whether the twin gives other results than CpuRef, and where."""
        worst, text = Verdict.EQUIVALENT, ""
        of_kit = (run for _, runs in self._cases for run in runs)
        own = (run for run in of_kit if type(run.operation).__name__ in operations)
        for run in chain(own, self._corpus.of(operations)):
            difference = _difference(run)
            if difference is None:
                continue
            if difference:
                return Verdict.ESCAPED, f"{describe(run.operation)} {_shown(run)}: {difference}"
            if worst is Verdict.EQUIVALENT:
                worst, text = Verdict.TOLERATED, f"{describe(run.operation)} {_shown(run)}"
        return worst, text


def runs_of(subject: BackendUnderTest, case: NamedCase) -> list[Run]:
    """What CpuRef's workloads compute in a case, each different execution once."""
    runs: dict[bytes, Run] = {}

    def keep(run: Run) -> None:
        elements = b"".join(b"-" if a is None else a.tobytes() for a in run.inputs)
        runs.setdefault(repr((run.operation, run.info.outputs)).encode() + elements, run)

    with recording(keep):
        case.judge(subject)
    return list(runs.values())


def _difference(run: Run) -> str | None:
    """How the twin's outputs differ; empty if by less than the tolerance, None if not at all."""
    name = type(run.operation).__name__
    module = importlib.import_module(f"{TWIN}.workloads.{snake_case(name)}")
    outputs = [np.zeros_like(array) for array in run.outputs]
    try:
        with np.errstate(all="ignore"):
            workload = getattr(module, f"{name}Workload")(run.operation, run.info)
            if run.operation.has_data_dependent_outputs:
                pairs = zip(workload.compute_dynamic(run.inputs), run.outputs, strict=True)
                # Handles convert their inputs.
                outputs = [np.asarray(a).astype(right.dtype) for a, right in pairs]
            else:
                workload.compute(run.inputs, outputs)
    except Exception as error:  # noqa: BLE001 - mutated code may raise anything
        return f"raises {error!r}"
    if all(_is_same(*pair) for pair in zip(run.outputs, outputs, strict=True)):
        return None
    for expected, actual, info in zip(run.outputs, outputs, run.info.outputs, strict=True):
        difference = compare(expected, actual, info)
        if difference is not None:
            return str(difference)
    return ""


def _is_same(expected: Array, actual: Array) -> bool:
    """Whether two outputs are equal, NaN included."""
    is_float = expected.dtype.kind == "f"
    return expected.dtype == actual.dtype and np.array_equal(expected, actual, equal_nan=is_float)


def _shown(run: Run) -> str:
    """A run's shapes and types."""
    return f"({', '.join(map(str, run.info.inputs))}) -> ({', '.join(map(str, run.info.outputs))})"


Report = Callable[[str, str], None]
Verdicts = tuple[str, str]


def in_child(work: Callable[[Report], None]) -> Verdicts:
    """Do work in a forked process with limits; the last that it reported.

    Parameters
    ----------
    work : callable
        Is given a function that takes a verdict's name and a text.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        os.close(reading)
        try:
            _limit()
            work(lambda *report: _send(writing, report))
        except MemoryError:
            os._exit(2)
        except BaseException as error:  # noqa: BLE001 - the process ends here
            _send(writing, ("ENDED", repr(error)))
        finally:
            os._exit(0)
    os.close(writing)
    try:
        return _last_report(reading, pid)
    finally:
        os.close(reading)


def _send(writing: int, report: Sequence[object]) -> None:
    """Write one report, shortened to what a pipe takes at once."""
    name, text = report
    os.write(writing, json.dumps([name, str(text)[:600]]).encode() + b"\n")


def _limit() -> None:
    """Give this process a limit of time and memory, and no output."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_LIMIT_S, _CPU_LIMIT_S))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT_BYTES, _MEMORY_LIMIT_BYTES))


def _last_report(reading: int, pid: int) -> Verdicts:
    """Read what a process reports until it ends, or end it."""
    received, deadline = b"", time.monotonic() + _TIME_LIMIT_S
    while True:
        ready, _, _ = select.select([reading], [], [], max(deadline - time.monotonic(), 0))
        part = os.read(reading, 1 << 16) if ready else b""
        if not part:
            break
        received += part
    if not ready:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    lines = received.splitlines()
    if not lines:
        return "ENDED", f"ended with status {status}"
    name, text = json.loads(lines[-1])
    return name, text
