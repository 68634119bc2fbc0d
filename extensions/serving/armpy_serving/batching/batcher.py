"""Batcher: single items of many callers, run together."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

from armpy.errors import (
    ExecutionTimeoutError,
    InvalidArgumentError,
)
from armpy.execution import deadline_in
from armpy.execution.scheduling.executors import default_num_executors
from armpy_serving.batching.arguments import checked_arguments, checked_seconds
from armpy_serving.batching.direct_calls import DirectCalls
from armpy_serving.batching.entrance import Entrance, take_back
from armpy_serving.batching.item import Answer, AnswerSlot, Item
from armpy_serving.batching.rows import has_open_batch
from armpy_serving.batching.sizes import PreparedSizes
from armpy_serving.batching.statistics import BatchCounter, BatcherStatistics
from armpy_serving.batching.waiting_items import WaitingItems, closed_error
from armpy_serving.batching.workers import Workers

if TYPE_CHECKING:
    from armpy import Model
    from armpy.ops.operation import Array


class Batcher:
    """Runs single items of many callers, in batches or directly.

    Parameters
    ----------
    model : Model
        Model whose first dimension is the batch, of every input and output. Where the file has
        fixed it, `Model.reshape` opens it.
    max_batch : int
        The most items that are run together.
    max_wait_ms : float
        Longest wait of a batch's first item for others.
    max_waiting : int, optional
        Maximum number of waiting items, beside those that are run; eight batches if left out.
    when_full : {"wait", "error"}
        Handling of an item that finds no room: its caller waits for some, or gets a
        `QueueFullError`.
    workers : int
        Number of batches that run side by side.
    sizes : sequence of int, optional
        Numbers of rows that are executed: a batch is filled up to the next one. Powers of two and
        `max_batch` if left out.
    mode : {"batch", "direct"}
        "batch" runs items together, up to `max_batch` of them; its sizes are prepared by the
        constructor. "direct" runs each item by itself, calls of `run` in their callers' threads.

    Raises
    ------
    InvalidArgumentError
        If an argument cannot be used, or the model cannot be run on several items at once: if an
        input or output has no batch, a layer was made for the file's own, or there is state.

    Notes
    -----
    Threads of the batcher run the items of `submit` and `run_async`, and batches that no caller of
    `run` has filled up. A full batch begins at once, another one `max_wait_ms` after its first item
    came: a lone caller of mode "batch" waits so long for each answer.

    An item is checked, and arrays of `submit` or `run_async` are copied, before it gets in
    line. If a batch fails, its items are run one by one, so that each gets its own answer or error.
    An item's row is the same as if it were alone as long as the model treats rows apart from each
    other, as models do that were made for batches. A process that forks goes on with workers of its
    own in the child; items submitted before are answered in the parent alone.

    Examples
    --------
    >>> with armpy_serving.Batcher(model, max_batch=8, max_wait_ms=2) as batcher:  # doctest: +SKIP
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
        mode: str = "batch",
    ) -> None:
        checked = checked_arguments(
            model, max_batch, max_wait_ms, max_waiting, when_full, workers, sizes, mode
        )
        self._given, self._arguments = model, checked
        self._specs = model.inputs
        self._sizes = PreparedSizes(model, checked.sizes, is_open=has_open_batch(model, max_batch))
        self._direct = DirectCalls(model)
        self._tally = BatchCounter()
        self._is_direct = mode == "direct"
        num_threads = max(workers, default_num_executors())
        self._most_direct = num_threads + checked.max_waiting
        self._items = WaitingItems(
            max_batch=1 if self._is_direct else max_batch,
            max_wait_s=checked.max_wait_s,
            max_waiting=checked.max_waiting,
            workers=num_threads if self._is_direct else workers,
            refuses=checked.refuses,
        )
        self._workers = Workers(self._direct, self._sizes, self._items, self._tally, num_threads)
        self._entrance = Entrance(self._items, self._workers, self._tally)
        try:
            if self._direct.known_rows is not None:
                self._sizes.begin(self._direct.known_rows, several=not self._is_direct)
        except BaseException:
            self._sizes.close()
            raise
        # The workers hold the items and not the batcher, so that an unclosed batcher is
        # garbage-collected; they end once the queued items have their answers.
        self._finalizer = weakref.finalize(self, self._items.close, drops=False)
        _batchers.add(self)

    def _begin_again(self) -> None:
        """Begin without items and workers, in a process that was forked."""
        for part in (self._items, self._tally, self._workers, self._direct, self._sizes):
            part.reset()

    def run(self, inputs: Mapping[str, object], *, deadline_s: float | None = None) -> Answer:
        """Run one item, in a batch or directly, and wait for its answer.

        Parameters
        ----------
        inputs : mapping of str to array_like
            Every input, without the batch dimension or with one of 1.
        deadline_s : float, optional
            Time limit, waiting included.

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
        if self._is_direct and not self._is_crowded():
            return self._run_directly(inputs, deadline_s)
        item = self._read(inputs, deadline_s, AnswerSlot())
        # Signals interrupt the main thread, which is not to have others' items then. Direct calls
        # beyond their number wait for a worker.
        is_main = threading.get_ident() == threading.main_thread().ident
        leads = not self._is_direct and not is_main
        self._entrance.enter(item, leads=leads)
        return self._entrance.answer(item)

    def _is_crowded(self) -> bool:
        """Return whether so many items are run directly that the next one is to wait in line."""
        if len(self._direct.running) < self._most_direct:
            return False
        if self._items.refuses:
            self._tally.count("refused")
            raise self._items.full_error()
        return True

    def _run_directly(self, inputs: Mapping[str, object], deadline_s: float | None) -> Answer:
        """Run an item in its caller's thread."""
        direct, items = self._direct, self._items
        if deadline_s is not None:
            deadline_s = min(checked_seconds(deadline_s), threading.TIMEOUT_MAX)
        single, keeps_axis = direct.single(inputs)
        begin = time.perf_counter()
        direct.running.append(None)
        try:
            if items.is_closed:
                raise closed_error()
            return direct.run(single, keeps_axis, deadline_s)
        except BaseException as error:
            is_late = deadline_s is not None and isinstance(error, ExecutionTimeoutError)
            self._tally.count("expired" if is_late else "failed")
            raise
        finally:
            self._tally.ran_directly(time.perf_counter() - begin)
            direct.running.pop()
            if items.is_closed:
                direct.notify_drained()

    def __call__(self, *arrays: object) -> Array | tuple[Array, ...]:
        """`run` with the inputs in order; the output, or all of them where there are several."""
        if len(arrays) != len(self._specs):
            raise InvalidArgumentError(
                "the number of inputs is wrong",
                where="Batcher",
                expected=f"{len(self._specs)}: {', '.join(s.name for s in self._specs)}",
                actual=str(len(arrays)),
            )
        outputs = self.run({spec.name: a for spec, a in zip(self._specs, arrays, strict=True)})
        results = tuple(outputs.values())
        return results[0] if len(results) == 1 else results

    def submit(
        self, inputs: Mapping[str, object], *, deadline_s: float | None = None
    ) -> Future[Answer]:
        """Hand in one item, and go on meanwhile; its arrays can be changed at once.

        Returns
        -------
        concurrent.futures.Future
            Future of every output by name. It can be cancelled until its batch begins.

        Raises
        ------
        InvalidArgumentError, QueueFullError, ExecutionTimeoutError
            As for `run`; the last only if no room is found in time.
        """
        future: Future[Answer] = Future()
        item = self._read(inputs, deadline_s, future)
        # The caller goes on and may write to its arrays; `run` waits, and needs no copy.
        item.own_arrays()
        self._entrance.enter(item)
        return future

    async def run_async(
        self, inputs: Mapping[str, object], *, deadline_s: float | None = None
    ) -> Answer:
        """`run` in an event loop, which goes on meanwhile; cancelling the task withdraws it.

        Examples
        --------
        >>> scores = (await batcher.run_async({"image": image}))["scores"]  # doctest: +SKIP
        """
        future: Future[Answer] = Future()
        item = self._read(inputs, deadline_s, future)
        item.own_arrays()
        await self._entrance.enter_async(item)
        return await asyncio.wrap_future(future)

    def _read(
        self,
        inputs: Mapping[str, object],
        deadline_s: float | None,
        future: Future[Answer] | AnswerSlot,
    ) -> Item:
        if deadline_s is not None:
            deadline_s = deadline_in(checked_seconds(deadline_s))
        item = Item(*self._direct.read(inputs), deadline_s, future)
        if isinstance(future, Future):
            future.add_done_callback(partial(take_back, self._items, item))
        return item

    @property
    def statistics(self) -> BatcherStatistics:
        """Statistics up to now."""
        sizes, problem = self._sizes.prepared, self._sizes.problem
        return self._tally.statistics(len(self._items), sizes, problem)

    @property
    def model(self) -> Model:
        """The model that it was made with."""
        return self._given

    @property
    def is_closed(self) -> bool:
        """Return whether it takes no more items."""
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
        self._direct.drain()
        self._sizes.close()

    def __enter__(self) -> Batcher:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    async def __aenter__(self) -> Batcher:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await asyncio.to_thread(self.close)

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else f"{len(self._items)} waiting"
        arguments = self._arguments
        about = f"{arguments.max_batch}, {1e3 * arguments.max_wait_s:g}, mode={arguments.mode!r}"
        return f"Batcher({self._given!r}, {about}; {state})"


_batchers: weakref.WeakSet[Batcher] = weakref.WeakSet()


def _begin_again() -> None:
    """Let a child that was forked go on by itself."""
    # Copied first: the garbage collector may take one out of a weak set at any time.
    for batcher in [*_batchers]:
        batcher._begin_again()


# Threads do not live on in a forked child, and locks may be held by some that it has not got.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)
