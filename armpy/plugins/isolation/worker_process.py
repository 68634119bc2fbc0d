"""The worker of one isolated backend."""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from typing import Any

from armpy.core.file_ownership import make_own_folder
from armpy.core.processes.worker import Worker, WorkerSettings
from armpy.errors import ArmpyError
from armpy.plugins.isolation.limits import IsolationLimits
from armpy.plugins.isolation.messages import CLOSE, CONFIGURE, LOAD, BackendSource

_log = logging.getLogger("armpy.plugins.isolation")

HANDLER = "armpy.execution.isolated_worker:BackendServer"
"""What answers in the worker; by name, as it stands above the runtime."""

UNKNOWN = object()
"""Sentinel for `culprit`: one of the executions that were under way."""
NO_EXECUTION = object()
"""Sentinel for `culprit`: the worker failed, and no execution is known to be the cause."""


class WorkerProcess(Worker):
    """A process that has one backend.

    Raises ArmpyError (what the backend raises there while it is loaded); DeadObjectError if the
    process ends instead; OSError if none can be started.
    """

    def __init__(
        self,
        source: BackendSource,
        limits: IsolationLimits,
        # Of scope RUNTIME; the backend is only described if they are left out.
        options: dict[str, Any] | None = None,  # Any: as the options are
    ) -> None:
        writable = tuple(os.fspath(path) for path in limits.writable_paths)
        if (folder := source.caching.folder) is not None:
            with suppress(OSError):  # then nothing is kept there
                make_own_folder(folder)  # a missing folder cannot be allowed
            writable += (os.fspath(folder),)
        settings = WorkerSettings(limits.memory_bytes, limits.confined, writable)
        super().__init__(HANDLER, settings, where=source.backend_id, log=_log)
        self._start_timeout_s = limits.start_timeout_s
        self.busy: set[object] = set()  # the executions that are under way, and preparations
        self.prepared: set[int] = set()  # numbers of the parts that it has
        # The execution that has ended it, `UNKNOWN` or `NO_EXECUTION`; None while it runs.
        self.culprit: object = None
        # Requests are answered in order: waiting here does not count against a part's limit.
        self.preparing = threading.Lock()  # held while parts are prepared, one after the other
        try:
            answer = self.request(
                (LOAD, source, _log.getEffectiveLevel()), timeout_s=limits.start_timeout_s
            )
            # The backend's description of itself.
            self.description: dict[str, Any] = answer  # Any: read with care
            if options is not None:
                self.configure(options)
        # On Ctrl-C as well: the caller does not have the process yet.
        except BaseException:
            self.stop()
            raise

    def retire(self, reason: str) -> None:
        """End the process, which cannot serve any more; its running requests are not at fault."""
        if self.culprit is None:
            self.culprit = NO_EXECUTION  # before others see that it has ended
        super().retire(reason)

    def close(self, timeout_s: float) -> None:
        """Let the backend close its devices, unless something is under way, and end."""
        if not self.busy and self.is_running and self.preparing.acquire(blocking=False):
            with suppress(ArmpyError):
                self.request((CLOSE,), timeout_s=timeout_s)
        self.stop()

    def configure(self, options: dict[str, Any]) -> None:  # Any: as the options are
        """Set the backend up; errors as for `request`."""
        self.request((CONFIGURE, options), timeout_s=self._start_timeout_s)
