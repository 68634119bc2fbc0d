"""Judges items in worker processes, so that one that crashes takes nothing with it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Generic, TypeAlias, TypeVar

from armpy.records import dataclass

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")

Judge: TypeAlias = Callable[[ItemT], ResultT]

_CONTEXT = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Lost(Generic[ItemT]):
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
    *,
    jobs: int,
    timeout_s: float = 60.0,
) -> Iterator[ResultT | Lost[ItemT]]:
    """Judge every item, batch by batch, in `jobs` processes.

    Parameters
    ----------
    batches : sequence of sequences
        Items that one worker takes at a time; they must be picklable.
    make_judge : callable
        Called once in each worker; picklable. What it returns judges one item.
    jobs : int
        Number of workers.
    timeout_s : float
        How long one item may take.

    Yields
    ------
    object
        Each item's result, or `Lost`, as they come. What a judge raises ends the run: it is
        for the judge to say what an item's errors mean.
    """
    waiting = deque(list(batch) for batch in batches if batch)
    workers: list[_Worker[ItemT, ResultT]] = []
    try:
        while waiting or workers:
            while waiting and len(workers) < jobs:
                workers.append(_Worker(make_judge))
            for worker in workers:
                if not worker.items and waiting:
                    worker.give(waiting.popleft())
            ready = wait([worker.connection for worker in workers], timeout=0.5)
            for worker in list(workers):
                yield from worker.take(worker.connection in ready, timeout_s)
                if worker.is_dead and worker.items:
                    waiting.appendleft(worker.items)
                if worker.is_dead or not (worker.items or waiting):
                    worker.stop()
                    workers.remove(worker)
    finally:
        for worker in workers:
            worker.stop()


@dataclass
class _Worker(Generic[ItemT, ResultT]):
    """One process and the items that it has not answered yet, in order."""

    make_judge: Callable[[], Judge[ItemT, ResultT]]
    items: list[ItemT] = field(default_factory=list)
    is_dead: bool = False

    def __post_init__(self) -> None:
        self.connection, theirs = _CONTEXT.Pipe()
        self._process: SpawnProcess = _CONTEXT.Process(
            target=_work, args=(theirs, self.make_judge), daemon=True
        )
        self._process.start()
        theirs.close()
        self._since = time.monotonic() + _START_S

    def give(self, items: list[ItemT]) -> None:
        """Hand over a batch."""
        self.items = list(items)
        self._since = max(self._since, time.monotonic())
        with contextlib.suppress(OSError):  # the next take finds the worker dead
            self.connection.send(items)

    def take(self, is_ready: bool, timeout_s: float) -> Iterator[ResultT | Lost[ItemT]]:
        """The results that are there; the item that killed the worker, or that hangs."""
        while is_ready:
            try:
                result = self.connection.recv()
            except (EOFError, OSError):
                self._process.join()
                yield from self._lose(f"the process ended with code {self._process.exitcode}")
                return
            if isinstance(result, _Failure):
                raise result.error
            self.items.pop(0)
            self._since = time.monotonic()
            yield result
            is_ready = self.connection.poll()
        if self.items and time.monotonic() - self._since > timeout_s:
            yield from self._lose(f"no answer within {timeout_s:g} s")

    def _lose(self, reason: str) -> Iterator[Lost[ItemT]]:
        """Give the current item up."""
        self.is_dead = True
        if self.items:
            yield Lost(self.items.pop(0), reason)

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self.connection.close()


_START_S = 30.0
"""What a worker may take to start, beside its first item."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """What a judge raised."""

    error: BaseException


def _work(connection: Connection, make_judge: Callable[[], Judge[ItemT, ResultT]]) -> None:
    """Judge batches until there are no more."""
    judge = None
    while True:
        try:
            items = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        for item in items:
            try:
                judge = judge or make_judge()
                connection.send(judge(item))
            except Exception as error:  # noqa: BLE001 - raised again by the other side
                connection.send(_Failure(error))
                return
