"""Waiting items: a bounded queue that hands out batches."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from concurrent.futures import Future

from armpy.errors import InvalidArgumentError, QueueFullError
from armpy_serving.batching.item import Item

_LONGEST_S = 3600.0
"""Longest sleep of a worker: locks cannot wait for any number of seconds."""


class WaitingItems:
    """Items in the order in which they came, handed out as batches.

    Parameters
    ----------
    max_batch : int
        The most items of one batch; 1 hands out single items.
    max_wait_s : float
        Longest wait of a batch's first item for others.
    max_waiting : int
        Maximum number of items.
    workers : int
        Batches that are run side by side.
    refuses : bool
        Whether one that finds no room is refused; else its caller waits.

    Attributes
    ----------
    is_closed : bool
        Whether it takes nothing more.
    """

    def __init__(
        self,
        max_batch: int,
        max_wait_s: float,
        max_waiting: int,
        workers: int,
        *,
        refuses: bool,
    ) -> None:
        self._max_batch = max_batch
        self._workers = workers
        self._max_wait_s = max_wait_s
        self._max_waiting = max_waiting
        self.refuses = refuses
        self.is_closed = False
        self.reset()

    def reset(self) -> None:
        """Begin without items, as a process that was forked does: they are its parent's."""
        # One lock for all of it: who gets in, who is outside and whether it is closed belong
        # together.
        self._changed = threading.Condition(threading.Lock())
        self._items: deque[Item] = deque()
        self._outside: deque[tuple[Item, Future[None]]] = deque()
        self._counts: Counter[object] = Counter()
        self._num_running = 0

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: Item, *, leads: bool = False) -> Future[None] | list[Item]:
        """Let an item in.

        Parameters
        ----------
        leads : bool
            Whether its caller runs the batch that is full with it.

        Returns
        -------
        Future or list of Item
            Done when there is room for it. Where there is at once, what its caller is to run; empty
            as a rule.

        Raises
        ------
        InvalidArgumentError
            If nothing more is taken.
        QueueFullError
            If there is no room, and items are refused then.

        Notes
        -----
        The thread that fills a batch runs it, as another thread would have to wake up first. Call
        `done` then as after `next_batch`.
        """
        with self._changed:
            self._check_open()
            # A caller that comes now waits after those outside, even if there is room: first come,
            # first served.
            if len(self._items) < self._max_waiting and not self._outside:
                self._enter(item)
                if leads and self._is_full(item.key) and self._num_running < self._workers:
                    batch = self._take(item.key)
                    if self._items:
                        self._changed.notify()
                    return batch
                self._wake_for(item)
                return []
            if self.refuses:
                raise self.full_error()
            room: Future[None] = Future()
            self._outside.append((item, room))
            return room

    def full_error(self) -> QueueFullError:
        """The error for an item that finds no room."""
        return QueueFullError(
            "so many items are waiting that there is no room for another",
            where="Batcher",
            expected=f"fewer than {self._max_waiting} (max_waiting)",
            fix="Try again later, or let callers wait with when_full='wait'",
        )

    def _check_open(self) -> None:
        """Check that it takes items."""
        if self.is_closed:
            raise closed_error()

    def _enter(self, item: Item) -> None:
        """Append an item to the queue."""
        item.is_waiting = True
        self._items.append(item)
        self._counts[item.key] += 1

    def _is_full(self, key: object) -> bool:
        """Return whether a batch of some shapes is not to be waited with."""
        return self._counts[key] >= self._max_batch

    def _wake_for(self, item: Item) -> None:
        """Wake a worker that waits for the first item, or for a full batch."""
        if len(self._items) == 1 or self._is_full(item.key):
            self._changed.notify()

    def remove(self, item: Item) -> bool:
        """Remove an abandoned item; returns whether it was still waiting."""
        with self._changed:
            if not item.is_waiting:
                return False
            self._leave(item)
            self._let_in()
            return True

    def _leave(self, item: Item) -> None:
        """Take an item out of the line."""
        item.is_waiting = False
        self._items.remove(item)
        self._counts[item.key] -= 1
        if not self._counts[item.key]:
            del self._counts[item.key]

    def _let_in(self) -> None:
        """Give room that has become free to those who wait outside."""
        while self._outside and len(self._items) < self._max_waiting:
            item, room = self._outside.popleft()
            # False for a room that was given up; True means that it can no longer be cancelled.
            if room.set_running_or_notify_cancel():
                self._enter(item)
                self._wake_for(item)
                room.set_result(None)

    def next_batch(self) -> list[Item] | None:
        """Wait for the next batch; None when there will be none any more.

        Notes
        -----
        `done` is to be called after each.
        """
        with self._changed:
            while True:
                if not self._items:
                    if self.is_closed:
                        return None
                    # In a loop, as a condition may wake a thread that has nothing to do.
                    self._changed.wait()
                    continue
                if self._num_running >= self._workers:
                    self._changed.wait()  # `done` wakes
                    continue
                key, wait_s = self._ready()
                if wait_s > 0:
                    self._changed.wait(min(wait_s, _LONGEST_S))
                    continue
                batch = self._take(key)
                if self._items:
                    self._changed.notify()  # there may be another worker
                if batch:
                    return batch

    def done(self) -> None:
        """Note that a batch has been run."""
        with self._changed:
            self._num_running -= 1
            if self._items:
                self._changed.notify()

    def _ready(self) -> tuple[object, float]:
        """Items that come next, and how long they wait for others."""
        first = self._items[0]
        wait_s = first.arrived_s + self._max_wait_s - time.perf_counter()
        if wait_s <= 0 or self.is_closed:
            return first.key, 0.0
        # A full batch gains nothing by waiting, even if another item is first in line.
        full = next((key for key in self._counts if self._is_full(key)), None)
        return (first.key, wait_s) if full is None else (full, 0.0)

    def _take(self, key: object) -> list[Item]:
        """Take the oldest items of some shapes; those that were cancelled are left out."""
        chosen = [item for item in self._items if item.key == key][: self._max_batch]
        for item in chosen:
            self._leave(item)
        # From here on they cannot be cancelled: their rows are being executed.
        batch = [item for item in chosen if item.future.set_running_or_notify_cancel()]
        self._let_in()
        if batch:
            self._num_running += 1
        return batch

    def close(self, *, drops: bool) -> list[Item]:
        """Take nothing more.

        Parameters
        ----------
        drops : bool
            Whether items that are waiting are given up; else they are still handed out.

        Returns
        -------
        list of Item
            The abandoned items.
        """
        with self._changed:
            self.is_closed = True
            dropped = [*self._items] if drops else []
            for item in dropped:
                self._leave(item)
            while self._outside:
                _, room = self._outside.popleft()
                if room.set_running_or_notify_cancel():
                    room.set_exception(closed_error())
            self._changed.notify_all()
        return dropped


def closed_error() -> InvalidArgumentError:
    """Return the error of a closed batcher."""
    return InvalidArgumentError("the batcher is closed", where="Batcher", fix="Make another one")
