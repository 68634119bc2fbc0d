"""Variants: models of one network with other outputs, kept as long as they are lately used."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from armpy.errors import InvalidArgumentError

if TYPE_CHECKING:
    from armpy.execution.runtime import Runtime
    from armpy.model.model import Model

MOST_KEPT = 8
"""So many variants does a model keep."""


class Variants:
    """The variants of one model, the least lately used forgotten first.

    Notes
    -----
    One that is forgotten may be running: it is unloaded with the last reference to it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Hashable, Model] = {}

    def get(self, key: Hashable, make: Callable[[], Model]) -> Model:
        """The variant of a key, made if there is none."""
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
            for variant in self._kept.values():
                variant.close()
            self._kept.clear()


def _unload_with_last_reference(model: Model) -> None:
    """Unload a model's network when nobody has the model any more."""
    import weakref  # noqa: PLC0415 - most models have no variants

    weakref.finalize(model, _unload, model.runtime, model.network_id).atexit = False


def _unload(runtime: Runtime, network_id: int) -> None:
    """Unload a network, unless that has been done."""
    try:
        runtime.unload_network(network_id)
    except InvalidArgumentError:
        return  # it was closed, or the runtime was
