"""What a worker writes to its standard output and error, the last of it."""

from __future__ import annotations

import os
import threading

KEPT_BYTES = 64 << 10
"""How much is kept."""

_WAIT_S = 0.2
"""How long the rest is waited for; a process of the worker's own may hold the pipe open."""


class Output:
    """Reads a pipe until its end, and keeps the last of it.

    Parameters
    ----------
    descriptor : int
        The pipe's end to read from; closed with the last writer.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._read, name="armpy-output", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        """Read until nobody has the other end."""
        try:
            while chunk := os.read(self._descriptor, KEPT_BYTES):
                self._kept += chunk
                del self._kept[:-KEPT_BYTES]
        finally:
            os.close(self._descriptor)

    def text(self, *, has_ended: bool = False) -> str:
        """What was kept; of a process that has ended, all of it."""
        if has_ended:
            self._thread.join(_WAIT_S)
        return bytes(self._kept).decode(errors="replace")
