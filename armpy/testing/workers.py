"""Judges items in worker processes, so that one that crashes takes nothing with it."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from armpy.compiler.files.plain import PlainReader, plain
from armpy.core.processes.worker import Worker
from armpy.errors import DeadObjectError

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

Judge: TypeAlias = Callable[[ItemT], ResultT]

_HANDLER = f"{__name__}:JudgeHandler"
_START_S = 30.0
"""What a worker may take to start, beside its first item."""


@dataclass(frozen=True, slots=True)
class LostItem(Generic[ItemT]):
    """An item whose worker died or hung.

    Parameters
    ----------
    item : object
    reason : str
    """

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
) -> Iterator[ResultT | LostItem[ItemT]]:
    """Judge every item, batch by batch, in `jobs` processes.

    Parameters
    ----------
    batches : sequence of sequences
        Items that one worker takes at a time; they must be picklable.
    make_judge : callable
        Called once in each worker; picklable. What it returns judges one item.
    kind : type
        Of the results: a dataclass, or another type that `PlainReader` makes. They come as JSON,
        so that nothing is unpickled that a backend may have written.
    jobs : int
        Number of workers.
    timeout_s : float
        How long one item may take.

    Yields
    ------
    object
        Each item's result, or `LostItem`, as they come. What a judge raises ends the run: it is
        for the judge to say what an item's errors mean.
    """
    waiting: queue.SimpleQueue[Sequence[ItemT]] = queue.SimpleQueue()
    for batch in filter(None, batches):
        waiting.put(batch)
    crew = _Crew(waiting, make_judge, timeout_s)
    read = PlainReader().read
    threads = [
        threading.Thread(target=crew.work, name="armpy-judge", daemon=True)
        for _ in range(min(jobs, waiting.qsize()))
    ]
    try:
        for thread in threads:
            thread.start()
        num_left = len(threads)
        while num_left:
            found = crew.results.get()
            if found is None:
                num_left -= 1
            elif isinstance(found, BaseException):
                raise found
            else:
                yield (
                    found
                    if isinstance(found, LostItem)
                    else read(kind, found.get("result"), "result")
                )
    finally:
        crew.stop()
        for thread in threads:
            thread.join()


class _Crew(Generic[ItemT]):
    """Threads with a worker each, and what they have in common."""

    def __init__(
        self,
        waiting: queue.SimpleQueue[Sequence[ItemT]],
        make_judge: Callable[[], Judge[ItemT, Any]],
        timeout_s: float,
    ) -> None:
        self._waiting = waiting
        self._make_judge = make_judge
        self._timeout_s = timeout_s
        self._is_stopped = False
        self._workers: set[Worker] = set()
        # Any: answers, and what is not one; None where a thread has come to its end
        self.results: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def work(self) -> None:
        """Judge batches until there are no more."""
        worker: Worker | None = None
        try:
            while not self._is_stopped:
                try:
                    batch = self._waiting.get_nowait()
                except queue.Empty:
                    return
                for item in batch:
                    worker = self._judge(item, worker)
        except BaseException as error:  # noqa: BLE001 - raised again by whoever reads the results
            self.results.put(error)
        finally:
            self._end(worker)
            self.results.put(None)

    def _judge(self, item: ItemT, worker: Worker | None) -> Worker | None:
        """Judge one item; the worker for the next one, if there is one yet."""
        worker = worker or self._begin()
        try:
            self.results.put(worker.request(item, timeout_s=self._timeout_s))
        except DeadObjectError:
            late = f"no answer within {self._timeout_s:g} s"
            self.results.put(
                LostItem(item, late if worker.is_late else f"the process {_end(worker)}")
            )
            self._end(worker)
            return None
        return worker

    def _begin(self) -> Worker:
        """A worker that has its judge."""
        worker = Worker(_HANDLER)
        self._workers.add(worker)
        if self._is_stopped:
            worker.kill("the run was stopped")
        worker.request(self._make_judge, timeout_s=_START_S)
        return worker

    def _end(self, worker: Worker | None) -> None:
        """End a worker."""
        if worker is not None:
            worker.stop()
            self._workers.discard(worker)

    def stop(self) -> None:
        """End all workers, as nobody reads results any more."""
        self._is_stopped = True
        for worker in [*self._workers]:
            worker.kill("the run was stopped")


def _end(worker: Worker) -> str:
    """How a worker has ended, in words."""
    code = worker.exit_code
    return worker.reason.removeprefix("it ") if code is None else f"ended with code {code}"


class JudgeHandler:
    """Judges in a worker."""

    def __init__(self) -> None:
        self._judge: Judge[Any, Any] | None = None  # Any: whatever there is to judge

    def answer(self, request: Any, descriptors: Sequence[int]) -> Mapping[str, object]:
        """Make the judge, which comes first, or judge an item."""
        if self._judge is None:
            self._judge = request()
            return {}
        return {"result": plain(self._judge(request))}
