"""Workers: the threads of a batcher."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from armpy.errors import QueueFullError
from armpy.model.model import Model
from armpy.serving.batching.item import Item
from armpy.serving.batching.rows import answers, stacked
from armpy.serving.batching.statistics import BatchCounter
from armpy.serving.batching.waiting_items import WaitingItems


class Workers:
    """Threads that run batches until there are none any more.

    Parameters
    ----------
    model : Model
    items : WaitingItems
    sizes : sequence of int
        The numbers of rows that are executed, smallest first.
    tally : BatchCounter
    num_threads : int
    """

    def __init__(
        self,
        model: Model,
        items: WaitingItems,
        sizes: Sequence[int],
        tally: BatchCounter,
        num_threads: int,
    ) -> None:
        self._model = model
        self._items = items
        self._sizes = sizes
        self._tally = tally
        self._num_threads = num_threads
        self.reset()
        self.start()

    def reset(self) -> None:
        """Begin without threads, as a process that was forked does."""
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads, unless they are there."""
        # Asked by every item, so without the lock; who sees none asks again with it.
        if self._threads:
            return
        with self._lock:
            for number in range(len(self._threads), self._num_threads):
                name = f"armpy-batcher-{number}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:
                    if self._threads:  # which do all of it, in more time
                        return
                    raise QueueFullError(
                        f"nobody can run the batches: {error}",
                        where="Batcher",
                        fix="Let the process have more threads (ulimit -u), or memory for them",
                    ) from error
                self._threads.append(thread)

    def join(self) -> None:
        """Wait until all is done."""
        for thread in self._threads:
            # A future's callback may close the batcher, on the worker that tells it.
            if thread is not threading.current_thread():
                thread.join()

    def _work(self) -> None:
        """What a thread does."""
        while (batch := self._items.next_batch()) is not None:
            now = time.perf_counter()
            self._tally.began([now - item.arrived_s for item in batch])
            self._run(batch)
            del batch  # the last one's arrays are not kept while this waits

    def _run(self, items: list[Item]) -> None:
        """Execute items together; one by one if that fails, so that each gets its own error."""
        # Rows are filled up to a size that is prepared: cheaper than to compile one for each
        # number.
        size = next(size for size in self._sizes if size >= len(items))
        begin = time.perf_counter()
        try:
            outputs = self._model.run(stacked(items, size))
            rows = answers(items, size, outputs)
        except BaseException as error:  # noqa: BLE001 - told to those who wait for it
            self._fail(items, size, begin, error)
            return
        self._tally.executed(len(items), size, time.perf_counter() - begin)
        for item, row in zip(items, rows, strict=True):
            item.answer(row)

    def _fail(self, items: list[Item], size: int, begin: float, error: BaseException) -> None:
        """What becomes of items whose execution has failed."""
        # Retried one by one, once: a single bad item is not to cost the others their answers. An
        # interrupt or exit is no item's fault, and is told to all.
        if len(items) > 1 and isinstance(error, Exception):
            self._tally.executed(0, 0, time.perf_counter() - begin)
            for item in items:
                if not item.future.done():
                    self._run([item])
            return
        self._tally.executed(len(items), size, time.perf_counter() - begin)
        self._tally.count("failed", len(items))
        for item in items:
            item.fail(error)
