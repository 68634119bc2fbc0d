"""Output subsets: models of one network with other outputs, kept while they are lately used."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from armpy.errors import InvalidArgumentError

if TYPE_CHECKING:
    from armpy.execution.runtime import Runtime
    from armpy.model.closable import Closable

    class LoadedModel(Closable, Protocol):
        """A model, as far as unloading it goes."""

        @property
        def runtime(self) -> Runtime:
            """The runtime that it is loaded on."""

        @property
        def network_id(self) -> int:
            """Its network's id there."""


ModelT = TypeVar("ModelT", bound="LoadedModel")

MOST_KEPT = 8
"""So many models with other outputs does a model keep."""


class OutputSubsets(Generic[ModelT]):
    """Models with other outputs than one model's, the least lately used forgotten first.

    Notes
    -----
    One that is forgotten may be running: it is unloaded with the last reference to it.
    """

    def __init__(self) -> None:
        # Held while one is made: two threads that ask for the same outputs share a model.
        self._lock = threading.Lock()
        self._kept: dict[Hashable, ModelT] = {}  # the last used at the end

    def get(self, key: Hashable, make: Callable[[], ModelT]) -> ModelT:
        """The model of a key, made if there is none."""
        with self._lock:
            found = self._kept.pop(key, None)
            if found is None or found.is_closed:
                found = make()
                _unload_with_last_reference(found)
            self._kept[key] = found
            while len(self._kept) > MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            return found

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            for model in self._kept.values():
                model.close()
            self._kept.clear()


def _unload_with_last_reference(model: LoadedModel) -> None:
    """Unload a model's network when nobody has the model any more."""
    # Not at exit: by then backends may be gone, and the process gives all back.
    weakref.finalize(model, _unload, model.runtime, model.network_id).atexit = False


def _unload(runtime: Runtime, network_id: int) -> None:
    """Unload a network, unless that has been done."""
    try:
        runtime.unload_network(network_id)
    except InvalidArgumentError:
        return  # it was closed, or the runtime was
