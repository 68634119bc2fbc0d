"""Memory that a backend holds while a network runs on it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack

from armpy.backend import IMemoryManager
from armpy.errors import ArmpyError
from armpy.plugins.proxy.error_attribution import blamed
from armpy.plugins.proxy.guarded_call import call_method
from armpy.profiling import record_waiting
from armpy.types import BackendId


class SharedMemory:
    """Acquired for the first of overlapping executions and released after the last."""

    def __init__(
        self,
        backend_id: BackendId,
        managers: Sequence[IMemoryManager],  # the backend's, for one loaded network
        *,
        # Whether profiles of executions record how long they wait for it.
        is_profiled: bool = False,
    ) -> None:
        self._backend_id = backend_id
        self._managers = tuple(managers)
        self._is_profiled = is_profiled
        self._users = 0
        self._held = ExitStack()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        started_s = time.perf_counter() if self._is_profiled else 0.0
        # Acquiring happens under the lock: a second caller must not run before it is done.
        with self._lock:
            if self._users == 0:
                try:
                    self._acquire()
                except ArmpyError as error:
                    blamed(self._backend_id, error)
                    raise
            self._users += 1
        if self._is_profiled:
            record_waiting(f"the memory of {self._backend_id}", started_s)

    def _acquire(self) -> None:
        """Acquire all or, if one of them raises, none."""
        with ExitStack() as stack:
            for manager in self._managers:
                call_method(self._backend_id, manager, "acquire")
                stack.callback(call_method, self._backend_id, manager, "release")
            # Kept only now: if one of them raises, the stack releases those before it.
            self._held = stack.pop_all()

    def __exit__(self, *exc_info: object) -> None:
        with self._lock:
            self._users -= 1  # first: it is over for this execution also if releasing raises
            if self._users == 0:
                self._held.close()


def holding(memories: Sequence[SharedMemory]) -> ExitStack:
    """Hold what backends share between executions, until the stack is left."""
    with ExitStack() as stack:
        for memory in memories:
            stack.enter_context(memory)
        return stack.pop_all()
