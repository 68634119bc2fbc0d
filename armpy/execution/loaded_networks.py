"""The networks that are loaded on a runtime, which go with it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from numbers import Integral

from armpy.core.dataclass import dataclass
from armpy.core.vlog import wants_traceback
from armpy.errors import (
    ArmpyError,
    InvalidArgumentError,
    is_without_memory,
    without_memory,
)
from armpy.execution.loaded_network import LoadedNetwork
from armpy.execution.setup.contexts import BackendContexts

_log = logging.getLogger("armpy.execution")


@dataclass(slots=True)
class NetworkEntry:
    """Id of a network that is being loaded, and the network as soon as it is made."""

    id: int
    network: LoadedNetwork = field(init=False)


class LoadedNetworks:
    """The loaded networks of a runtime by id, and the contexts that are notified of them.

    It outlives its runtime for as long as it takes to end all this, so it does not refer to it.
    """

    def __init__(
        self,
        contexts: BackendContexts,  # notified of each load and unload, and closed at the end
    ) -> None:
        self._contexts = contexts
        self._networks: dict[int, LoadedNetwork] = {}
        self._unloading: set[int] = set()
        self._under_way: list[int] = []  # loads and unloads, by the number of their thread
        self._next_id = 0
        # Reentrant: the garbage collector may end a runtime anywhere.
        self._changed = threading.Condition(threading.RLock())
        self.is_closed = False

    @contextmanager
    def _working(self) -> Iterator[None]:
        """A load or unload, whose end `close` waits for."""
        thread = threading.get_ident()
        with self._changed:
            # By thread: a context or the garbage collector may close from within a load, and would
            # wait for itself.
            self._under_way.append(thread)
        try:
            yield
        finally:
            with self._changed:
                self._under_way.remove(thread)
                self._changed.notify_all()

    @contextmanager
    def loading(self) -> Iterator[NetworkEntry]:
        """Notify the contexts before and after the block, which puts a network into the entry.

        Raises InvalidArgumentError if the runtime is closed.
        """
        contexts = self._contexts
        with self._working():
            with self._changed:
                if self.is_closed:
                    raise InvalidArgumentError("the runtime is closed", fix="Make another one")
                entry = NetworkEntry(self._next_id)
                self._next_id += 1
            # Without the lock: loading takes long, and contexts may ask for other networks.
            begun = contexts.notify("before_load_network", entry.id)
            try:
                if begun.error is not None:
                    raise begun.error
                yield entry
                ended = contexts.notify("after_load_network", entry.id)
                if ended.error is not None:
                    contexts.notify_regardless("before_unload_network", entry.id, ended.heard)
                    entry.network.close()
                    raise ended.error
            # On Ctrl-C as well: contexts that have heard of the network have to hear that it is
            # gone.
            except BaseException as error:
                contexts.notify_regardless("after_unload_network", entry.id, begun.heard)
                if is_without_memory(error):
                    raise without_memory(error)  # noqa: B904 - it has the cause
                raise
            self._networks[entry.id] = entry.network

    def get(self, network_id: int) -> LoadedNetwork:
        """The loaded network of an id; raises InvalidArgumentError if no such network is loaded."""
        is_number = isinstance(network_id, Integral)  # what cannot be hashed cannot be looked for
        network = self._networks.get(network_id) if is_number else None
        if network is None:
            raise InvalidArgumentError(
                f"no network is loaded under the id {network_id!r}",
                where="runtime",
                expected="the id of a loaded network"
                + (f": {', '.join(map(str, self._networks))}" if self._networks else ""),
                actual=repr(network_id),
                fix="Load a network, and use the id that load_network returns",
            )
        return network

    def all(self) -> list[LoadedNetwork]:
        """Every network that is loaded."""
        # A copy, as other threads load and unload.
        return list(self._networks.values())

    def unload(self, network_id: int) -> None:
        """Forget a network; errors as for `Runtime.unload_network`."""
        with self._changed:
            self.get(network_id)
            if network_id in self._unloading:  # of two threads, one gets the error
                raise InvalidArgumentError(f"the network {network_id} is being unloaded")
            self._unloading.add(network_id)
        error = self._unload(network_id)
        if error is not None:
            raise error

    def _unload(self, network_id: int, *, can_be_refused: bool = True) -> ArmpyError | None:
        """Unload a network that is marked for it; the first error of a context.

        Raises ArmpyError if a context refuses, so that the network stays.
        """
        contexts = self._contexts
        with self._working():
            try:
                asked = contexts.notify("before_unload_network", network_id)
                if asked.error is not None and can_be_refused:
                    # Contexts that prepared for the end are to prepare for executions again.
                    contexts.notify_regardless("after_load_network", network_id, asked.heard)
                    raise asked.error
                self._networks.pop(network_id).close()
            finally:
                self._unloading.discard(network_id)
            gone = contexts.notify("after_unload_network", network_id)
            return asked.error or gone.error

    def close(self) -> list[ArmpyError]:
        """Unload every network, close the contexts; what went wrong with unloading."""
        with self._changed:
            self.is_closed = True
        errors = []
        # One at a time: a load that was under way may have added another one since.
        while (network_id := self._next_to_unload()) is not None:
            error = self._unload(network_id, can_be_refused=False)
            if error is not None:
                errors.append(error)
        # Last: contexts are notified of each network's end before.
        self._contexts.close()
        return errors

    def _next_to_unload(self) -> int | None:
        """One of the networks, marked, once other threads have ended their work."""
        thread = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: all(other == thread for other in self._under_way))
            left = next((n for n in self._networks if n not in self._unloading), None)
            if left is not None:
                self._unloading.add(left)
            return left

    def drop(self) -> None:
        """Close, as the runtime was dropped without; no caller is left to be given errors."""
        for error in self.close():
            _log.warning("%s", error, exc_info=wants_traceback(_log))
