"""Gate between `os.fork` and calls whose matrix products a forked child could not go on from."""

from __future__ import annotations

import logging
import os
import threading
from types import TracebackType

_LONGEST_WAIT_S = 10.0
"""How long a fork waits for calls to end. One of them may be what forks."""

_log = logging.getLogger("armpy.execution")


class ForkGate:
    """Calls as a context; a fork waits until none is under way.

    OpenBLAS, with which NumPy computes matrix products, has locks that a child gets as they are: if
    a thread computes while another one forks, the next product of the child waits for ever.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._calls = 0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._close,
                after_in_parent=self._changed.release,
                after_in_child=self._begin_anew,
            )

    def __enter__(self) -> None:
        """Begin a call, unless the process is being forked right now."""
        with self._changed:
            self._calls += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End a call."""
        with self._changed:
            self._calls -= 1
            if not self._calls:
                self._changed.notify_all()

    def _close(self) -> None:
        """Wait until no call is under way, and let none begin."""
        self._changed.acquire()
        if not self._changed.wait_for(lambda: not self._calls, _LONGEST_WAIT_S):
            text = "forking while %d calls run on CpuRef: the child may hang in their products"
            _log.warning(text, self._calls)

    def _begin_anew(self) -> None:
        """Forget the calls of threads that the child does not have."""
        self._calls = 0
        self._changed.release()


fork_gate = ForkGate()
"""That of the process, for programs that run until all is compiled."""
