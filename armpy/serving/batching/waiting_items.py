"""Waiting items: a bounded queue that hands out batches."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from concurrent.futures import Future

from armpy.errors import InvalidArgumentError, QueueFullError
from armpy.serving.batching.item import Item

_LONGEST_S = 3600.0
"""How long a worker sleeps at most: locks cannot wait for any number of seconds."""


class WaitingItems:
    """Items in the order in which they came, handed out as batches.

    Parameters
    ----------
    max_batch : int
        The most items of one batch.
    max_wait_s : float
        How long the first item of a batch waits for others.
    max_waiting : int
        So many items find room.
    refuses : bool
        Whether one that finds no room is refused; else its caller waits.
    """

    def __init__(
        self, max_batch: int, max_wait_s: float, max_waiting: int, *, refuses: bool
    ) -> None:
        self._max_batch = max_batch
        self._max_wait_s = max_wait_s
        self._max_waiting = max_waiting
        self._refuses = refuses
        self._is_closed = False
        self.reset()

    def reset(self) -> None:
        """Begin without items, as a process that was forked does: they are its parent's."""
        # One lock for all of it: who gets in, who is outside and whether it is closed belong
        # together.
        self._changed = threading.Condition(threading.Lock())
        self._items: deque[Item] = deque()
        self._outside: deque[tuple[Item, Future[None]]] = deque()
        self._counts: Counter[object] = Counter()

    def __len__(self) -> int:
        return len(self._items)

    @property
    def is_closed(self) -> bool:
        """Whether it takes nothing more."""
        return self._is_closed

    def add(self, item: Item) -> Future[None] | None:
        """Let an item in.

        Returns
        -------
        Future or None
            Done when there is room for it; None if there is at once.

        Raises
        ------
        InvalidArgumentError
            If nothing more is taken.
        QueueFullError
            If there is no room, and items are refused then.
        """
        with self._changed:
            self._check_open()
            # Who comes now waits behind those outside, even if there is room: first come, first
            # served.
            if len(self._items) < self._max_waiting and not self._outside:
                self._enter(item)
                return None
            if self._refuses:
                raise QueueFullError(
                    "so many items are waiting that there is no room for another",
                    where="Batcher",
                    expected=f"fewer than {self._max_waiting} (max_waiting)",
                    fix="Try again later, or let callers wait with when_full='wait'",
                )
            room: Future[None] = Future()
            self._outside.append((item, room))
            return room

    def _check_open(self) -> None:
        """Check that it takes items."""
        if self._is_closed:
            raise _closed_error()

    def _enter(self, item: Item) -> None:
        """Put an item behind the others."""
        item.is_waiting = True
        self._items.append(item)
        self._counts[item.key] += 1
        # Whoever waits for the first item, or for a full batch, has something to do.
        if len(self._items) == 1 or self._counts[item.key] >= self._max_batch:
            self._changed.notify()

    def remove(self, item: Item) -> bool:
        """Take an item out that nobody wants any more; whether it was still waiting."""
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
            # No for a room that was given up; yes lets nobody cancel it between here and its
            # result.
            if room.set_running_or_notify_cancel():
                self._enter(item)
                room.set_result(None)

    def next_batch(self) -> list[Item] | None:
        """Wait for the next batch; None when there will be none any more."""
        with self._changed:
            while True:
                if not self._items:
                    if self._is_closed:
                        return None
                    # In a loop, as a condition may wake who has nothing to do.
                    self._changed.wait()
                    continue
                key, wait_s = self._ready()
                if wait_s > 0:
                    self._changed.wait(min(wait_s, _LONGEST_S))
                    continue
                batch = self._take(key)
                self._let_in()
                if self._items:
                    self._changed.notify()  # there may be another worker
                if batch:
                    return batch

    def _ready(self) -> tuple[object, float]:
        """Which items come next, and how long they wait for others."""
        first = self._items[0]
        wait_s = first.arrived_s + self._max_wait_s - time.perf_counter()
        if wait_s <= 0 or self._is_closed:
            return first.key, 0.0
        # A full batch gains nothing by waiting, whoever is first in line.
        full = next((k for k, n in self._counts.items() if n >= self._max_batch), None)
        return (first.key, wait_s) if full is None else (full, 0.0)

    def _take(self, key: object) -> list[Item]:
        """Take the oldest items of some shapes; those that were cancelled are left out."""
        taken = [item for item in self._items if item.key == key][: self._max_batch]
        for item in taken:
            self._leave(item)
        # From here on they cannot be cancelled: their rows are being executed.
        return [item for item in taken if item.future.set_running_or_notify_cancel()]

    def close(self, *, drops: bool) -> list[Item]:
        """Take nothing more.

        Parameters
        ----------
        drops : bool
            Whether items that are waiting are given up; else they are still handed out.

        Returns
        -------
        list of Item
            What was given up.
        """
        with self._changed:
            self._is_closed = True
            dropped = [*self._items] if drops else []
            for item in dropped:
                self._leave(item)
            while self._outside:
                _, room = self._outside.popleft()
                if room.set_running_or_notify_cancel():
                    room.set_exception(_closed_error())
            self._changed.notify_all()
        return dropped


def _closed_error() -> InvalidArgumentError:
    """What is raised once the batcher is closed."""
    return InvalidArgumentError("the batcher is closed", where="Batcher", fix="Make another one")
