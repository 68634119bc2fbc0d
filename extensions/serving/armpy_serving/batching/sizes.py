"""Sizes: the numbers of rows that a model is prepared for, in the background."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextvars import Context
from typing import TypeAlias

from armpy import Model
from armpy.errors import ArmpyError

Rows: TypeAlias = "tuple[tuple[int, ...], ...]"
"""Shape of each input without the batch: only items of the same can be run together."""

_log = logging.getLogger("armpy_serving.batching")


class PreparedSizes:
    """Numbers of rows that a model is prepared for.

    Parameters
    ----------
    given : Model
        Runs single rows.
    sizes : sequence of int
        Smallest first.
    is_open : bool
        Whether it takes any number of rows; otherwise another one is made of it that does.

    Attributes
    ----------
    problem : str
        Why there are no batches; empty as long as nothing stands against them.

    Notes
    -----
    All sizes are prepared together; for rows of new shapes, by a thread of its own. They share
    packed weights: where sizes could be traced, and this network's cannot, the largest is the only
    one.
    """

    def __init__(self, given: Model, sizes: Sequence[int], *, is_open: bool) -> None:
        self.given = given
        num_programs = _programs_kept(given)
        self._sizes = _sizes_kept(sizes, num_programs)
        self._is_open = is_open
        self._model = given if is_open else None
        self._most_kept = max(1, num_programs // (len(self._sizes) + 1))
        self._prepared: dict[Rows, tuple[int, ...]] = {}
        self.problem = ""
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self.reset()

    def begin(self, rows: Rows, *, several: bool) -> None:
        """Prepare single rows, and with `several` all other sizes too.

        Raises
        ------
        ArmpyError
            If that cannot be.
        """
        if self._is_open:
            names = [spec.name for spec in self.given.inputs]
            self.given.prepare({n: (1, *row) for n, row in zip(names, rows, strict=True)})
        if several and self._sizes:
            self._prepare(rows)

    def reset(self) -> None:
        """Go on in a process that was forked, which has no thread that prepares."""
        # Locks of the network may be held for ever here, if a thread of the parent's had them.
        if self._thread is not None:
            self.problem = "the process was forked while sizes were prepared"
        self._lock = threading.Lock()
        self._wanted: list[Rows] = []
        self._thread = None

    @property
    def model(self) -> Model:
        """Return the model that runs several rows, once something is prepared."""
        assert self._model is not None
        return self._model

    @property
    def prepared(self) -> tuple[int, ...]:
        """Numbers of rows, smallest first; those of the rows that were prepared last."""
        several = [*self._prepared.values()]
        return (1, *several[-1]) if several else (1,)

    def fitting(self, rows: Rows, count: int) -> int:
        """The smallest size that takes so many rows; else the largest one that there is."""
        if count == 1:
            return 1
        sizes = self._prepared.get(rows, ())
        return next((size for size in sizes if size >= count), sizes[-1] if sizes else 1)

    def ask(self, rows: Rows) -> None:
        """Prepare batches of some rows in the background, unless they are prepared."""
        if rows in self._prepared or self.problem or not self._sizes:
            return
        with self._lock:
            if rows not in self._wanted:
                self._wanted.append(rows)
            self._have_thread()

    def _have_thread(self) -> None:
        """Start a thread for the requested shapes, if there is none."""
        if self._thread is None:
            thread = threading.Thread(
                target=self._prepare_wanted, name="armpy-batcher-prepares", daemon=True
            )
            try:
                Context().run(thread.start)  # free-threaded Pythons hand the caller's on
            except RuntimeError as error:  # the system gives no more threads
                self.problem = f"no thread prepares sizes: {error}"
                return
            self._thread = thread

    def wait(self) -> None:
        """Wait until nothing is being prepared."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _prepare_wanted(self) -> None:
        """Prepare the requested shapes, one after the other."""
        while (rows := self._next_wanted()) is not None:
            try:
                self._prepare(rows)
            except ArmpyError as error:
                # Items run one by one then; `Batcher.statistics` has the reason.
                self.problem = str(error)
                _log.warning("items are run one by one, batches cannot be prepared: %s", error)
            except BaseException as error:
                self.problem = f"{type(error).__name__}: {error}"
                self._thread = None
                raise  # a mistake of armpy's own, which the thread's hook shows

    def _next_wanted(self) -> Rows | None:
        """Return the thread's next batch; None if it is to end."""
        with self._lock:
            self._wanted = [rows for rows in self._wanted if rows not in self._prepared]
            if not self._wanted or self.problem or self._is_closed:
                self._thread = None
                return None
            return self._wanted[0]

    def _prepare(self, rows: Rows) -> None:
        """Prepare every size for some rows."""
        names = [spec.name for spec in self.given.inputs]
        if self._model is None:
            opened = {name: (None, *row) for name, row in zip(names, rows, strict=True)}
            self._model = self.given.reshape(opened)
        # The largest first: kernels are chosen for it, and the others use the same.
        sizes = self._sizes[::-1]
        shapes = [[(size, *row) for row in rows] for size in sizes]
        count = self._model.handle.loaded.prepare_together(shapes)
        prepared = {**self._prepared, rows: tuple(sorted(sizes[:count]))}
        for oldest in [*prepared][: -self._most_kept]:
            del prepared[oldest]
        self._prepared = prepared  # in one step, as others read it without a lock

    def close(self) -> None:
        """Close a model of its own."""
        self._is_closed = True
        self.wait()
        if self._model is not None and not self._is_open and not self.given.is_closed:
            self._model.close()


def _sizes_kept(sizes: Sequence[int], num_programs: int) -> list[int]:
    """The largest sizes that can stay prepared beside single rows; all if one program is kept."""
    larger = [size for size in sizes if size > 1]
    if num_programs <= 1:
        return larger
    return larger[-(num_programs - 1) :]


def _programs_kept(model: Model) -> int:
    """Return the number of sets of shapes that a model stays prepared for."""
    return 8 if model.is_light else model.runtime.options.program_cache_size
