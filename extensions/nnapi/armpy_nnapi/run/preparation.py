"""Preparation of a reusable execution: a network bound to its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from armpy.execution.memory import idle_release

if TYPE_CHECKING:
    from armpy import Execution as BoundExecution
    from armpy_nnapi.run.execution_results import ExecutionResults


class Preparation:
    """A network bound to the arguments of an execution, kept from one computation to the next.

    Notes
    -----
    It holds working memory, so a watchdog takes it away after some seconds without computations.
    """

    __slots__ = ("__weakref__", "_bound", "_is_closed", "_is_idle")

    def __init__(self) -> None:
        # Taken out while it runs: the watchdog, a burst that is closed and the thread that
        # computes are three threads, and none of them may release what another one uses.
        self._bound: list[BoundExecution] = []
        self._is_idle = False
        self._is_closed = False

    @property
    def is_there(self) -> bool:
        """Return whether a network is kept and does not run at the moment."""
        return bool(self._bound)

    def run(self, results: ExecutionResults, bound: BoundExecution | None = None) -> bool:
        """Run the kept network, or the given one, and keep it; False if there is none."""
        if bound is None:
            try:
                bound = self._bound.pop()
            except IndexError:
                return False
        self._is_idle = False
        try:
            if results.is_timed:
                results.measure(bound)
            else:
                bound()
        except BaseException:
            # Its binding may be lost, as after a device that died: the next one binds anew.
            bound.close()
            raise
        self._bound.append(bound)
        return True

    def begin(self, bound: BoundExecution, results: ExecutionResults) -> None:
        """Run a network that was bound just now, and keep it until it idles."""
        self.run(results, bound)
        idle_release.watchdog.watch(self)

    def release(self) -> bool:
        """Release the kept program, unless it runs; return whether there was one."""
        try:
            bound = self._bound.pop()
        except IndexError:
            return False
        bound.close()
        return True

    def release_if_idle(self) -> bool:
        """Release the kept program unless it has run since the last call of this.

        Returns
        -------
        bool
            Whether there may be something to give back later.
        """
        # The first look only marks it: a program that has just run is kept until the second one.
        if not self._is_idle:
            self._is_idle = True
            return True
        # If there is nothing to release, it runs just now, or will be prepared again.
        return not self.release() and not self._is_closed

    def close(self) -> None:
        """Release the kept program for good."""
        self._is_closed = True
        self.release()
