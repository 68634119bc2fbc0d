"""Batcher: single items of many callers, run together."""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial
from typing import TYPE_CHECKING

from armpy.core.arguments import MOST_THREADS, check_whole
from armpy.errors import (
    ExecutionCancelledError,
    InvalidArgumentError,
    QueueFullError,
)
from armpy.execution.scheduling.deadlines import Watch
from armpy.execution.scheduling.stop_signal import deadline_in
from armpy.model import late
from armpy.model.model import Model
from armpy.serving.batching.item import Answer, Item, too_late
from armpy.serving.batching.rows import batch_sizes, read_item, with_open_batch
from armpy.serving.batching.statistics import BatchCounter, BatcherStatistics
from armpy.serving.batching.waiting_items import WaitingItems
from armpy.serving.batching.workers import Workers

if TYPE_CHECKING:
    from armpy.ops.operation import Array

_WHEN_FULL = ("wait", "error")


class Batcher:
    """Runs single items that many callers hand in as batches, and hands each its row.

    Parameters
    ----------
    model : Model
        Its first dimension is the batch, of every input and output. Where the file has fixed it,
        `Model.reshape` opens it.
    max_batch : int
        The most items that are run together.
    max_wait_ms : float
        How long an item waits for others before it is run, if a worker is free.
    max_waiting : int, optional
        So many items wait at most; eight batches if left out.
    when_full : {"wait", "error"}
        What becomes of an item that finds no room: its caller waits for some, or gets a
        `QueueFullError`.
    workers : int
        How many batches run side by side.
    sizes : sequence of int, optional
        Numbers of rows that are executed: a batch is filled up to the next one. Powers of two and
        `max_batch` if left out.

    Raises
    ------
    InvalidArgumentError
        If an argument cannot be used, or the model cannot be run on several items at once: if an
        input or output has no batch, a layer was made for the file's own, or there is state.

    Notes
    -----
    An item is checked, and what is handed in by `submit` or `run_async` copied, before it gets in
    line. If a batch fails, its items are run one by one, so that each gets its own answer or error.
    An item's row is the same as if it were alone as long as the model treats rows apart from each
    other, as models do that were made for batches. A process that forks goes on with workers of its
    own in the child; what was handed in before is answered in the parent alone.

    Examples
    --------
    >>> with armpy.Batcher(model, max_batch=8, max_wait_ms=2) as batcher:  # doctest: +SKIP
    ...     scores = batcher.run({"image": image})["scores"]               # in any thread
    """

    def __init__(
        self,
        model: Model,
        max_batch: int = 8,
        max_wait_ms: float = 5.0,
        *,
        max_waiting: int | None = None,
        when_full: str = "wait",
        workers: int = 1,
        sizes: Sequence[int] | None = None,
    ) -> None:
        if not isinstance(model, Model):
            raise InvalidArgumentError(
                "there is no model to run",
                where="Batcher",
                expected="what armpy.load gave",
                actual=type(model).__name__,
            )
        _check_whole("max_batch", max_batch)
        check_whole(workers, "Batcher: workers", least=1, most=MOST_THREADS)
        waiting = 8 * max_batch if max_waiting is None else max_waiting
        _check_whole("max_waiting", waiting)
        self._max_wait_ms = _checked_wait(max_wait_ms)
        if when_full not in _WHEN_FULL:
            raise _wrong("when_full", " or ".join(map(repr, _WHEN_FULL)), when_full)
        chosen = _checked_sizes(sizes, max_batch)
        self._given = model
        self._model = with_open_batch(model, max_batch)
        self._specs, self._max_batch = self._model.inputs, max_batch
        # A shape is compiled now or in the middle of a call: no caller shall wait for that.
        try:
            self._prepare(chosen)
        except BaseException:
            self._close_model()
            raise
        self._tally = BatchCounter()
        self._items = WaitingItems(
            max_batch, self._max_wait_ms / 1e3, waiting, refuses=when_full == "error"
        )
        self._workers = Workers(self._model, self._items, chosen, self._tally, workers)
        # The workers hold the items and not the batcher, so that one which nobody closes can go;
        # they end then, when what is in line has its answers.
        self._finalizer = weakref.finalize(self, self._items.close, drops=False)
        _batchers.add(self)

    def _begin_again(self) -> None:
        """Begin without items and workers, in a process that was forked."""
        self._items.reset()
        self._tally.reset()
        self._workers.reset()

    def _prepare(self, sizes: Sequence[int]) -> None:
        """Prepare the model for every number of rows, if all other dimensions are known."""
        rows = {spec.name: (spec.shape or ())[1:] for spec in self._specs}
        if any(None in row for row in rows.values()):
            return
        for size in sizes:
            self._model.prepare(
                {name: (size, *(n or 0 for n in row)) for name, row in rows.items()}
            )

    def run(self, inputs: Mapping[str, object], *, deadline_s: float | None = None) -> Answer:
        """Run one item in a batch with others, and wait for its answer.

        Parameters
        ----------
        inputs : mapping of str to array_like
            Every input, without the batch dimension or with one of 1.
        deadline_s : float, optional
            How long it may take, waiting included.

        Returns
        -------
        dict of str to ndarray
            Every output of this item, with a batch dimension if the inputs have one.

        Raises
        ------
        InvalidArgumentError
            If names, types or shapes do not fit, or the batcher is closed.
        QueueFullError
            If there is no room, and items are refused then.
        ExecutionTimeoutError
            If it takes longer.
        ExecutionCancelledError
            If the batcher was closed without waiting for it.
        """
        item = self._read(inputs, deadline_s)
        self._enter(item)
        return self._answer(item)

    def __call__(self, *arrays: object) -> Array | tuple[Array, ...]:
        """`run` with the inputs in order; the output, or all of them where there are several."""
        if len(arrays) != len(self._specs):
            raise InvalidArgumentError(
                "the number of inputs is wrong",
                where="Batcher",
                expected=f"{len(self._specs)}: {', '.join(s.name for s in self._specs)}",
                actual=str(len(arrays)),
            )
        made = self.run({spec.name: a for spec, a in zip(self._specs, arrays, strict=True)})
        results = tuple(made.values())
        return results[0] if len(results) == 1 else results

    def submit(
        self, inputs: Mapping[str, object], *, deadline_s: float | None = None
    ) -> Future[Answer]:
        """Hand in one item, and go on meanwhile; its arrays can be changed at once.

        Returns
        -------
        concurrent.futures.Future
            Of every output by name. It can be cancelled until its batch begins.

        Raises
        ------
        InvalidArgumentError, QueueFullError, ExecutionTimeoutError
            As for `run`; the last only if no room is found in time.
        """
        item = self._read(inputs, deadline_s)
        # The caller goes on and may write to its arrays; `run` waits, and needs no copy.
        item.own_arrays()
        self._enter(item)
        return item.future

    async def run_async(
        self, inputs: Mapping[str, object], *, deadline_s: float | None = None
    ) -> Answer:
        """`run` in an event loop, which goes on meanwhile; who cancels the task takes it back.

        Examples
        --------
        >>> scores = (await batcher.run_async({"image": image}))["scores"]  # doctest: +SKIP
        """
        item = self._read(inputs, deadline_s)
        item.own_arrays()
        room = self._add(item)
        if room is not None:
            try:
                await late.wait_for(late.wrap_future(room), item.remaining_s)
            except TimeoutError:
                self._tally.count("expired")
                raise too_late() from None
            self._watch(item)
        return await late.wrap_future(item.future)

    def _read(self, inputs: Mapping[str, object], deadline_s: float | None) -> Item:
        """One item, checked."""
        if deadline_s is not None:
            deadline_s = deadline_in(_checked_seconds(deadline_s))
        item = read_item(self._specs, inputs, self._model.quantize_inputs, deadline_s)
        item.future.add_done_callback(partial(_take_back, self._items, item))
        return item

    def _add(self, item: Item) -> Future[None] | None:
        """Let an item in; a future of the room for it if there is none yet."""
        self._workers.start()  # none are there yet in a process that was forked
        try:
            room = self._items.add(item)
        except QueueFullError:
            self._tally.count("refused")
            raise
        if room is None:
            self._watch(item)
        return room

    def _watch(self, item: Item) -> None:
        """End an item's waiting at its deadline."""
        if item.deadline_s is not None:
            item.watch(Watch(item.deadline_s, partial(_expire, self._items, item, self._tally)))

    def _enter(self, item: Item) -> None:
        """Let an item in, and wait until there is room for it."""
        room = self._add(item)
        if room is None:
            return
        try:
            room.result(item.remaining_s)
        except FutureTimeoutError:
            # Cancelling fails where a worker gave room at the same moment: the item is in line
            # then, and its deadline is watched as any other's.
            if room.cancel():
                self._tally.count("expired")
                raise too_late() from None
        except BaseException:
            # An interrupt of the waiting caller: nobody would take the answer, and the room would
            # stay taken.
            room.cancel()
            item.future.cancel()
            raise
        self._watch(item)

    def _answer(self, item: Item) -> Answer:
        """Wait for an item's answer."""
        try:
            return item.future.result()
        except CancelledError:
            raise _given_up() from None
        except BaseException:
            item.future.cancel()  # nobody waits for it any more
            raise

    @property
    def statistics(self) -> BatcherStatistics:
        """What it has done so far."""
        return self._tally.statistics(len(self._items))

    @property
    def model(self) -> Model:
        """The model that it was made with."""
        return self._given

    @property
    def is_closed(self) -> bool:
        """Whether it takes no more items."""
        return self._items.is_closed

    def close(self, *, drops: bool = False) -> None:
        """Take no more items, and wait until those that are there have their answers.

        Parameters
        ----------
        drops : bool
            Whether items whose batch has not begun are given up: their futures are cancelled.

        Notes
        -----
        The model that it was made with stays open.
        """
        for item in self._items.close(drops=drops):
            item.future.cancel()
        # Only then: the workers run the model that is closed next.
        self._workers.join()
        self._close_model()

    def _close_model(self) -> None:
        """Close a model of its own."""
        if self._model is not self._given and not self._given.is_closed:
            self._model.close()

    def __enter__(self) -> Batcher:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    async def __aenter__(self) -> Batcher:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await late.to_thread(self.close)

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else f"{len(self._items)} waiting"
        return f"Batcher({self._given!r}, {self._max_batch}, {self._max_wait_ms:g}; {state})"


_batchers: weakref.WeakSet[Batcher] = weakref.WeakSet()


def _begin_again() -> None:
    """Let a child that was forked go on by itself."""
    # Copied first: the garbage collector may take one out of a weak set at any time.
    for batcher in [*_batchers]:
        batcher._begin_again()


# Threads do not live on in a forked child, and locks may be held by some that it has not got.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)


def _take_back(items: WaitingItems, item: Item, future: Future[Answer]) -> None:
    """Free the room of an item that was cancelled."""
    # Called for every end of a future, and within `cancel` itself, by whatever thread calls that.
    if future.cancelled():
        items.remove(item)


def _expire(items: WaitingItems, item: Item, tally: BatchCounter) -> None:
    """End an item whose deadline has passed; one that is being executed, for its caller alone."""
    items.remove(item)
    if not item.future.done():
        tally.count("expired")
        item.expire()


def _given_up() -> ExecutionCancelledError:
    """The error for an item that was taken back."""
    return ExecutionCancelledError("the item was given up", where="Batcher")


def _check_whole(name: str, given: object) -> None:
    """Check a number that is to be 1 or more."""
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise _wrong(name, "a whole number of 1 or more", given)


def _checked_wait(given: float) -> float:
    """How long items wait, in milliseconds."""
    if not isinstance(given, (int, float)) or not 0 <= given < math.inf:
        raise _wrong("max_wait_ms", "a number of milliseconds, 0 or more", given)
    return float(given)


def _checked_seconds(given: float) -> float:
    """How long an item may take: no time at all if its caller had less than that left."""
    if not isinstance(given, (int, float)) or math.isnan(given):
        raise _wrong("deadline_s", "a number of seconds", given)
    return max(0.0, float(given))


def _checked_sizes(given: Sequence[int] | None, max_batch: int) -> tuple[int, ...]:
    """The numbers of rows that are executed, smallest first."""
    if given is None:
        return batch_sizes(max_batch)
    if not isinstance(given, Sequence):
        raise _wrong("sizes", "whole numbers", given)
    for size in given:
        _check_whole("sizes", size)
    sizes = tuple(sorted({*given}))
    if not sizes or sizes[-1] != max_batch:
        raise _wrong("sizes", f"whole numbers, the largest of them max_batch ({max_batch})", given)
    return sizes


def _wrong(name: str, expected: str, given: object) -> InvalidArgumentError:
    """The error for an argument that cannot be used."""
    return InvalidArgumentError(
        f"{name} cannot be used", where="Batcher", expected=expected, actual=repr(given)
    )
