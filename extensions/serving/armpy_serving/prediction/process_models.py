"""Models of this process: loaded once, however many predictors ask for them."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable

from armpy_serving.prediction.row_model import RowModel

MOST_MODELS = 8
"""Most models kept at once; the least recently used one is closed when it is idle."""


class ProcessModels:
    """Models by their source, each loaded by the first thread that asks.

    Notes
    -----
    Not a predictor's own: engines as Dask make another predictor of every task. One that was forked
    loads its own models, as threads and devices do not come along.
    """

    def __init__(self) -> None:
        self._before_fork: object = None
        self.reset()

    def reset(self) -> None:
        """Begin without models, as a process that was forked does."""
        # Held and not dropped: their ends would wait for threads that only the parent has.
        self._before_fork = getattr(self, "_slots", None)
        self._lock = threading.Lock()
        self._slots: OrderedDict[object, _Slot] = OrderedDict()

    def get(self, key: object, make: Callable[[], RowModel]) -> RowModel:
        """The model of a key; `make` loads it, and what that raises is raised."""
        with self._lock:
            slot = self._slots.setdefault(key, _Slot())
            self._slots.move_to_end(key)
            if len(self._slots) > MOST_MODELS:
                self._slots.popitem(last=False)
        return slot.get(make)


class _Slot:
    """One model, once it has been loaded."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: RowModel | None = None

    def get(self, make: Callable[[], RowModel]) -> RowModel:
        """The model, which one thread loads; after an error, the next one tries again."""
        if self._model is None:
            with self._lock:
                if self._model is None:
                    self._model = make()
        return self._model


process_models = ProcessModels()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=process_models.reset)
