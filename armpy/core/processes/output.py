"""Tail of a worker's standard output and error."""

from __future__ import annotations

import errno
import os
import select
import threading
from contextlib import ExitStack

KEPT_BYTES = 64 << 10
"""How much is kept."""

_WAIT_S = 0.2
"""How long the rest is waited for; a process of the worker's own may hold the pipe open."""


class Output:
    """Reads a pipe until its end, and keeps the last of it.

    Parameters
    ----------
    descriptor : int
        The pipe's end to read from, which is closed when there is no more to read, and where this
        cannot be made.

    Raises
    ------
    OSError
        If the process can have no more descriptors or threads.
    """

    def __init__(self, descriptor: int) -> None:
        self._kept = bytearray()
        self._is_stopped = False
        with ExitStack() as ends:
            ends.callback(os.close, descriptor)
            stopped, self._stop = os.pipe()
            ends.callback(os.close, stopped)
            ends.callback(os.close, self._stop)
            # It does not refer to this object, which could never be collected then.
            self._thread = threading.Thread(
                target=_read, args=(descriptor, stopped, self._kept), name="armpy-output"
            )
            # It must not keep the application from ending.
            self._thread.daemon = True
            try:
                self._thread.start()
            except RuntimeError as error:
                # The same kind as for descriptors: callers ask only whether the system had enough.
                raise OSError(errno.EAGAIN, str(error)) from error
            # From here on the thread closes two of them, and `stop` the third.
            ends.pop_all()

    def text(self, *, has_ended: bool = False) -> str:
        """What was kept; of a process that has ended, all of it."""
        if has_ended:
            self._thread.join(_WAIT_S)
        # What is kept may begin in the midst of a character.
        return bytes(self._kept).decode(errors="replace")

    def stop(self) -> None:
        """Read what there is and no more, whoever has the other end yet."""
        if not self._is_stopped:
            self._is_stopped = True
            os.close(self._stop)
            self._thread.join()


def _read(descriptor: int, stopped: int, kept: bytearray) -> None:
    poll = select.poll()
    for each in (descriptor, stopped):
        poll.register(each, select.POLLIN)
    try:
        while True:
            ready = dict(poll.poll())
            if descriptor in ready:
                chunk = os.read(descriptor, KEPT_BYTES)
                if not chunk:
                    return
                kept += chunk
                del kept[:-KEPT_BYTES]
            if stopped in ready:
                return
    finally:
        os.close(descriptor)
        os.close(stopped)
