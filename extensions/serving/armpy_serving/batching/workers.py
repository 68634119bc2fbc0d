"""Workers: the threads of a batcher, and what runs its batches in any thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextvars import Context

from armpy.errors import QueueFullError
from armpy_serving.batching.direct_calls import DirectCalls
from armpy_serving.batching.item import Answer, Item
from armpy_serving.batching.rows import answers, stacked
from armpy_serving.batching.sizes import PreparedSizes
from armpy_serving.batching.statistics import BatchCounter
from armpy_serving.batching.waiting_items import WaitingItems


class Workers:
    """Threads that run batches until there are none any more.

    Parameters
    ----------
    direct : DirectCalls
        Runs single items.
    sizes : PreparedSizes
        Runs several.
    """

    def __init__(
        self,
        direct: DirectCalls,
        sizes: PreparedSizes,
        items: WaitingItems,
        tally: BatchCounter,
        num_threads: int,
    ) -> None:
        self._direct = direct
        self._sizes = sizes
        self._items = items
        self._tally = tally
        self._num_threads = num_threads
        self.reset()

    def reset(self) -> None:
        """Begin without threads, as a process that was forked does."""
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads, unless they are there."""
        # Asked by every item, so without the lock; a thread that sees none asks again with it.
        if self._threads:
            return
        with self._lock:
            for number in range(len(self._threads), self._num_threads):
                name = f"armpy-batcher-{number}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                try:
                    Context().run(thread.start)  # free-threaded Pythons hand the caller's on
                except RuntimeError as error:
                    if self._threads:  # which do all of it, in more time
                        return
                    raise QueueFullError(
                        f"no worker thread could be started: {error}",
                        where="Batcher",
                        fix="Let the process have more threads (ulimit -u), or memory for them",
                    ) from error
                self._threads.append(thread)

    def join(self) -> None:
        """Wait until all is done."""
        for thread in self._threads:
            # A future's callback may close the batcher, on the worker that calls it.
            if thread is not threading.current_thread():
                thread.join()

    def _work(self) -> None:
        while (batch := self._items.next_batch()) is not None:
            self.run(batch)
            del batch  # the last one's arrays are not kept while this waits

    def run(self, batch: Sequence[Item]) -> None:
        """Run a batch, and answer its items; one by one if that fails, so that each gets its own.

        Parameters
        ----------
        batch : sequence of Item
            Batch as `WaitingItems` has handed it out.
        """
        now = time.perf_counter()
        self._tally.began([now - item.arrived_s for item in batch])
        if len(batch) > 1:
            self._sizes.ask(batch[0].key)
        left = [*batch]
        while left:
            size = self._sizes.fitting(left[0].key, len(left))
            part, left = left[:size], left[size:]
            outcome = self._executed(part, size)
            if not left:
                # Before there are answers: a caller that gets one may hand in its next item.
                self._items.done()
            self._deliver(part, outcome)

    def _executed(self, items: Sequence[Item], size: int) -> list[Answer] | BaseException:
        """Execute items together; their answers, or what went wrong."""
        begin = time.perf_counter()
        try:
            if size == 1:
                item = items[0]
                arrays = {name: array[None] for name, array in item.arrays.items()}
                rows = [self._direct.run(arrays, item.keeps_axis)]
                self._tally.ran_directly(time.perf_counter() - begin)
            else:
                outputs = self._sizes.model.run(stacked(items, size))
                rows = answers(items, size, outputs)
                self._tally.executed(len(items), size, time.perf_counter() - begin)
        except BaseException as error:  # noqa: BLE001 - raised in the callers that wait for it
            if size == 1:
                self._tally.ran_directly(time.perf_counter() - begin)
            return error
        return rows

    def _deliver(self, items: Sequence[Item], outcome: list[Answer] | BaseException) -> None:
        """Give callers their answers or the error."""
        if not isinstance(outcome, BaseException):
            for item, row in zip(items, outcome, strict=True):
                item.answer(row)
        # Retried one by one, once: a single bad item is not to cost the others their answers. An
        # interrupt or exit is not an item's fault, and fails all of them.
        elif len(items) > 1 and isinstance(outcome, Exception):
            for item in items:
                if not item.future.done():
                    self._deliver([item], self._executed([item], 1))
        else:
            self._tally.count("failed", len(items))
            for item in items:
                item.fail(outcome)
