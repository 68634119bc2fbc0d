"""Judges items in worker processes, so that one that crashes takes nothing with it."""

from __future__ import annotations

import os
import queue
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from armpy.compiler.files.plain import PlainReader, plain
from armpy.core.dataclass import dataclass
from armpy.core.processes.worker import Worker, WorkerSettings, default_memory_bytes
from armpy.core.units import bytes_text
from armpy.errors import DeadObjectError
from armpy_conformance.processes.process_state import flush_output
from armpy_conformance.result import CaseResult

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

Judge: TypeAlias = Callable[[ItemT], ResultT]

_HANDLER = f"{__name__}:JudgeHandler"
_START_S = 30.0
"""What a worker may take to start, beside its first item."""

_FAULT_REPORT = "Fatal Python error"
"""Beginning of the interpreter's report of a fatal signal."""

_FRAME = re.compile(r'^  File "(.+)", line (\d+) in (\w+)$', re.MULTILINE)
"""A frame in that report, the innermost first."""

_OUT_OF_MEMORY = re.compile("bad_alloc|MemoryError|[Cc]annot allocate memory|[Oo]ut of memory")
"""What is written or raised where memory is refused."""

_STAGES = {
    "is_layer_supported": "a question about a layer",
    "are_layers_supported": "a question about layers",
    "convert": "conversion",
    "compile": "compilation",
    "optimize_subgraph_view": "compilation",
    "create_workload": "preparation",
    "execute": "execution",
    "close": "closing",
}
"""What a backend does in methods of the contract and of hosted engines."""

_MOST_OUTPUT = 200
"""Characters of a worker's last line in messages."""

_MOST_LINES = 8
"""Last lines of a worker's output that are shown beside a failure."""

_READING_S = 0.5
"""How long a worker waits after a failure until its output has been read."""


@dataclass(frozen=True, slots=True)
class LostItem(Generic[ItemT]):
    """An item whose worker died or hung."""

    item: ItemT
    reason: str


def available_cores() -> int:
    """Number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def judge_in_workers(
    batches: Sequence[Sequence[ItemT]],
    make_judge: Callable[[], Judge[ItemT, ResultT]],
    kind: type[ResultT],
    *,
    jobs: int,
    timeout_s: float = 60.0,
    memory_bytes: int | None = None,
    first: JudgingWorker[ItemT] | None = None,
    end_s: float | None = None,
) -> Iterator[ResultT | LostItem[ItemT]]:
    """Judge every item, batch by batch, in `jobs` processes.

    Parameters
    ----------
    batches : sequence of sequences
        Items that one worker takes at a time; they must be picklable.
    make_judge : callable
        Called once in each worker; picklable. It returns the function that judges one item.
    kind : type
        Of the results: a dataclass, or another type that `PlainReader` makes. They come as JSON,
        so that nothing is unpickled that a backend may have written.
    jobs : int
        Number of workers.
    timeout_s : float
        How long one item may take.
    memory_bytes : int, optional
        As of `JudgingWorker`.
    first : JudgingWorker, optional
        A worker with such a judge, which is used as one of the workers and ended with them.
    end_s : float, optional
        When to end without the results that are missing, by `time.perf_counter`.

    Yields
    ------
    object
        Each item's result, or `LostItem`, as they come. What a judge raises ends the run: it is
        for the judge to say what an item's errors mean.
    """
    waiting: queue.SimpleQueue[Sequence[ItemT]] = queue.SimpleQueue()
    for batch in filter(None, batches):
        waiting.put(batch)
    crew = _Crew(waiting, make_judge, kind, timeout_s, memory_bytes, first)
    threads = [
        threading.Thread(target=crew.work, name="armpy-judge", daemon=True)
        for _ in range(min(jobs, waiting.qsize()))
    ]
    try:
        for thread in threads:
            thread.start()
        num_left = len(threads)
        while num_left:
            left_s = None if end_s is None else max(end_s - time.perf_counter(), 0)
            try:
                received = crew.results.get(timeout=left_s)
            except queue.Empty:
                return
            if received is None:
                num_left -= 1
            elif isinstance(received, BaseException):
                raise received
            else:
                yield received
    finally:
        crew.stop()
        for thread in threads:
            thread.join()


class JudgingWorker(Generic[ItemT]):
    """A process that judges items, and another one after each item that ends it.

    Parameters
    ----------
    make_judge : callable
        As of `judge_in_workers`.
    timeout_s : float
        Time limit of an item.
    memory_bytes : int, optional
        Limit of the process's own memory; three quarters of the machine's if left out, 0 for none.
    """

    def __init__(
        self,
        make_judge: Callable[[], Judge[ItemT, Any]],
        timeout_s: float = 60.0,
        memory_bytes: int | None = None,
    ) -> None:
        self._make_judge = make_judge
        self._timeout_s = timeout_s
        self._memory_bytes = default_memory_bytes() if memory_bytes is None else memory_bytes
        self._worker: Worker | None = None
        self._seen = ""
        self._is_stopped = False

    def judge(self, item: ItemT, kind: type[ResultT]) -> ResultT | LostItem[ItemT]:
        """Judge one item; `LostItem` if the process dies or hangs. Raises the judge's errors."""
        worker = self._worker = self._worker or self._begin()
        self._seen = worker.output()
        try:
            answer = worker.request(item, timeout_s=self._timeout_s, is_own_time=True)
        except DeadObjectError:
            late = f"no answer within {self._timeout_s:g} s"
            reason = late if worker.is_late else _end(worker)
            lost = LostItem(item, reason + self._refused(self._written(worker)))
            self.stop()
            return lost
        result = PlainReader().read(kind, answer.get("result"), "result")
        if isinstance(result, CaseResult) and result.outcome.is_bad:
            output = self._new_output(worker)
            text = result.text + self._refused(f"{result.text}\n{output}")
            return replace(result, text=text, output=output)
        return result

    def _refused(self, text: str) -> str:
        """The limit of memory, for a failure by whose text memory was refused; else empty."""
        if not self._memory_bytes or not _OUT_OF_MEMORY.search(text):
            return ""
        limit = bytes_text(self._memory_bytes)
        return f"; memory was refused in a process with a limit of {limit}"

    def _new_output(self, worker: Worker) -> str:
        """The last lines that the process has written for this item."""
        lines = [line[:_MOST_OUTPUT] for line in self._written(worker).splitlines() if line.strip()]
        return "\n".join(lines[-_MOST_LINES:])

    def _written(self, worker: Worker) -> str:
        """All that the process has written for this item; of longer outputs only the end."""
        return worker.output().removeprefix(self._seen)

    def _begin(self) -> Worker:
        worker = self._worker = Worker(_HANDLER, WorkerSettings(memory_bytes=self._memory_bytes))
        if self._is_stopped:
            worker.kill("the run was stopped")
        worker.request(self._make_judge, timeout_s=_START_S, is_own_time=True)
        return worker

    def stop(self) -> None:
        """End the process."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None

    def kill(self) -> None:
        """End the process, and each that begins from now on, while another thread judges."""
        self._is_stopped = True
        worker = self._worker
        if worker is not None:
            worker.kill("the run was stopped")


class _Crew(Generic[ItemT]):
    """Threads with a worker each, and their shared state."""

    def __init__(
        self,
        waiting: queue.SimpleQueue[Sequence[ItemT]],
        make_judge: Callable[[], Judge[ItemT, Any]],
        kind: type[Any],
        timeout_s: float,
        memory_bytes: int | None,
        first: JudgingWorker[ItemT] | None,
    ) -> None:
        self._waiting = waiting
        self._make_worker = partial(JudgingWorker[ItemT], make_judge, timeout_s, memory_bytes)
        self._kind = kind
        self._is_stopped = False
        self._workers: list[JudgingWorker[ItemT]] = []
        self._ready = [] if first is None else [first]
        # Any: results, and errors; None where a thread has come to its end
        self.results: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def work(self) -> None:
        """Judge batches until there are no more."""
        worker = self._ready.pop() if self._ready else self._make_worker()
        self._workers.append(worker)
        try:
            while not self._is_stopped:
                try:
                    batch = self._waiting.get_nowait()
                except queue.Empty:
                    return
                for item in batch:
                    self.results.put(worker.judge(item, self._kind))
        except BaseException as error:  # noqa: BLE001 - raised again by the reader of the results
            self.results.put(error)
        finally:
            worker.stop()
            self.results.put(None)

    def stop(self) -> None:
        """End all workers, as results are no longer read."""
        self._is_stopped = True
        for worker in [*self._workers]:
            worker.kill()


def _end(worker: Worker) -> str:
    """The end of a worker, with the last line that it wrote."""
    code = worker.exit_code
    is_exit = code is not None and code >= 0
    end = f"ended with code {code}" if is_exit else worker.reason.removeprefix("it ")
    text, _, report = worker.output().partition(_FAULT_REPORT)
    written = text.split("\n")
    last = next((line.strip() for line in reversed(written) if line.strip()), "")
    output = f"; its last output was {last[:_MOST_OUTPUT]!r}" if last else ""
    return f"{_crash_site(report)}the process {end}{output}"


def _crash_site(report: str) -> str:
    """Location of a crash: the innermost method of the contract in the fault report."""
    thread = report.partition("Current thread ")[2].partition("\n\n")[0]
    for file, line, function in _FRAME.findall(thread):
        if function in _STAGES:
            return f"crash in {_STAGES[function]} ({os.path.basename(file)}:{line}): "
    return ""


class JudgeHandler:
    """Judges in a worker."""

    def __init__(self) -> None:
        self._judge: Judge[Any, Any] | None = None  # Any: whatever there is to judge

    def answer(self, request: Any, attachments: object) -> Mapping[str, object]:
        """Make the judge, which comes first, or judge an item."""
        if self._judge is None:
            self._judge = request()
            return {}
        result = self._judge(request)
        flush_output((sys.stdout, sys.stderr))
        if isinstance(result, CaseResult) and result.outcome.is_bad:
            _wait_until_read()
        return {"result": plain(result)}


def _wait_until_read() -> None:
    """Wait until the other end of the standard output's pipe has read everything."""
    end_s = time.monotonic() + _READING_S
    with suppress(OSError):  # the system cannot say it
        while _num_unread() and time.monotonic() < end_s:
            time.sleep(0.0005)


if sys.platform == "win32":

    def _num_unread() -> int:
        """Return 0: the system cannot say it."""
        return 0

else:
    import fcntl
    import termios

    def _num_unread() -> int:
        """Bytes in the pipe of the standard output."""
        return int.from_bytes(fcntl.ioctl(1, termios.FIONREAD, bytes(4)), sys.byteorder)
