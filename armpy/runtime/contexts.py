"""The contexts of a runtime's backends, which are told what becomes of networks."""

from __future__ import annotations

import logging

from armpy.backend import IBackendContext
from armpy.errors import ArmpyError
from armpy.logs import wants_traceback
from armpy.plugins.boundary import call_method
from armpy.types import BackendId

_log = logging.getLogger("armpy.runtime")


class BackendContexts:
    """The contexts of a runtime's backends, in the order in which they were added."""

    def __init__(self) -> None:
        self._contexts: dict[BackendId, IBackendContext] = {}

    def add(self, backend_id: BackendId, context: IBackendContext) -> None:
        """Tell one more."""
        self._contexts[backend_id] = context

    def __bool__(self) -> bool:
        return bool(self._contexts)

    def tell(self, event: str, network_id: int) -> None:
        """Tell every context that a network comes or goes; then raise the first error."""
        first: ArmpyError | None = None
        for backend_id, context in self._contexts.items():
            try:
                call_method(backend_id, context, event, network_id)
            except ArmpyError as error:
                if first is not None:
                    _log.warning("%s", error, exc_info=wants_traceback(_log))
                first = first or error
        if first is not None:
            raise first

    def after_run(self, network_id: int) -> None:
        """Tell every context that an execution has ended; its results are not to be lost."""
        try:
            self.tell("after_enqueue_workload", network_id)
        except ArmpyError as error:
            _log.warning("%s", error, exc_info=wants_traceback(_log))

    def close(self) -> None:
        """Close every context, once; what they raise is only logged."""
        contexts, self._contexts = self._contexts, {}  # whoever tells them goes on with the old
        for backend_id, context in contexts.items():
            close_context(backend_id, context)


def close_context(backend_id: BackendId, context: object) -> None:
    """Close what a backend keeps for a runtime or a network; what it raises is only logged."""
    try:
        call_method(backend_id, context, "close")
    except ArmpyError as error:
        _log.warning("%s", error, exc_info=wants_traceback(_log))
