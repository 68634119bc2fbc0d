"""The contexts of a runtime's backends, which are notified of loads and unloads."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import NamedTuple

from armpy.backend import IBackendContext
from armpy.core.vlog import wants_traceback
from armpy.errors import ArmpyError
from armpy.plugins.proxy.guarded_call import call_method
from armpy.types import BackendId

_log = logging.getLogger("armpy.execution")


class NotifyOutcome(NamedTuple):
    """The outcome of notifying contexts of a network."""

    # Ids of the backends whose contexts were notified and raised nothing.
    heard: frozenset[BackendId]
    error: ArmpyError | None  # the first that one has raised


class BackendContexts:
    """The contexts of a runtime's backends, in the order in which they were added."""

    def __init__(self) -> None:
        self._contexts: dict[BackendId, IBackendContext] = {}

    def add(self, backend_id: BackendId, context: IBackendContext) -> None:
        """Add a context."""
        self._contexts[backend_id] = context

    def __bool__(self) -> bool:
        return bool(self._contexts)

    def notify(
        self, event: str, network_id: int, only: Collection[BackendId] | None = None
    ) -> NotifyOutcome:
        """Notify every context, or some, that a network is loaded or unloaded.

        There is a result also if some raise: what they have raised is in it.
        """
        notified: list[BackendId] = []
        first: ArmpyError | None = None
        for backend_id, context in self._contexts.items():
            if only is not None and backend_id not in only:
                continue
            try:
                call_method(backend_id, context, event, network_id)
                notified.append(backend_id)
            except ArmpyError as error:
                if first is not None:
                    _log_error(error)
                first = first or error
        return NotifyOutcome(frozenset(notified), first)

    def notify_regardless(
        self, event: str, network_id: int, only: Collection[BackendId] | None = None
    ) -> None:
        """`notify`, with errors that are only logged."""
        error = self.notify(event, network_id, only).error
        if error is not None:
            _log_error(error)

    def after_run(self, network_id: int) -> None:
        """Notify every context that an execution has ended, well or not."""
        # No context's error may take the place of its results, or of its own error.
        self.notify_regardless("after_enqueue_workload", network_id)

    def close(self) -> None:
        """Close every context, once; errors are only logged."""
        # Callers that are notifying continue with the old ones.
        contexts, self._contexts = self._contexts, {}
        for backend_id, context in contexts.items():
            close_context(backend_id, context)


def _log_error(error: ArmpyError) -> None:
    """Log an error that no caller waits for."""
    _log.warning("%s", error, exc_info=wants_traceback(_log))


def close_context(backend_id: BackendId, context: object) -> None:
    """Close a backend's object of a runtime or a network; errors are only logged."""
    try:
        call_method(backend_id, context, "close")
    except ArmpyError as error:
        _log_error(error)
