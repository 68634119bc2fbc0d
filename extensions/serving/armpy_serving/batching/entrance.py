"""Entrance: how items get in line, and their callers to their answers."""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial

from armpy.errors import ExecutionCancelledError, QueueFullError
from armpy.execution.scheduling.deadlines import Watch
from armpy_serving.batching.item import Answer, Item, too_late
from armpy_serving.batching.statistics import BatchCounter
from armpy_serving.batching.waiting_items import WaitingItems
from armpy_serving.batching.workers import Workers


class Entrance:
    """Entrance to a batcher's line."""

    def __init__(self, items: WaitingItems, workers: Workers, tally: BatchCounter) -> None:
        self._items, self._workers, self._tally = items, workers, tally

    def _add(self, item: Item, *, leads: bool = False) -> Future[None] | list[Item]:
        """Let an item in; a future of the room for it, or what its caller is to run."""
        self._workers.start()  # none are there yet, or none any more in a process that was forked
        try:
            place = self._items.add(item, leads=leads)
        except QueueFullError:
            self._tally.count("refused")
            raise
        if not isinstance(place, Future):
            self._watch(item)
        return place

    def _watch(self, item: Item) -> None:
        """End an item's waiting at its deadline."""
        if item.deadline_s is not None:
            item.watch(Watch(item.deadline_s, partial(_expire, self._items, item, self._tally)))

    def enter(self, item: Item, *, leads: bool = False) -> None:
        """Let an item in, and wait until there is room for it."""
        room = self._add(item, leads=leads)
        if not isinstance(room, Future):
            if room:
                self._workers.run(room)
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
            # An interrupt of the waiting caller: the answer would be lost, and the room would stay
            # taken.
            room.cancel()
            if item.future.cancel():
                self._items.remove(item)
            raise
        self._watch(item)

    async def enter_async(self, item: Item) -> None:
        """`enter` in an event loop, which goes on until there is room."""
        room = self._add(item)
        if isinstance(room, Future):
            try:
                await asyncio.wait_for(asyncio.wrap_future(room), item.remaining_s)
            except TimeoutError:
                self._tally.count("expired")
                raise too_late() from None
            self._watch(item)

    def answer(self, item: Item) -> Answer:
        """Wait for an item's answer."""
        try:
            return item.future.result()
        except CancelledError:
            raise _given_up() from None
        except BaseException:
            # An interrupt: the caller no longer waits for it.
            if item.future.cancel():
                self._items.remove(item)
            raise


def take_back(items: WaitingItems, item: Item, future: Future[Answer]) -> None:
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
