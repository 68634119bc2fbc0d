"""The worker's process: loads one backend and does what the application asks for."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from armpy.worker.confinement import confine


def main(settings: Mapping[str, Any]) -> None:  # pragma: no cover - runs in the worker
    """Serve the application until it closes the connection, or ends.

    Parameters
    ----------
    settings : mapping
        ``connection`` and ``life``, descriptors of sockets; ``memory_bytes``, ``confined`` and
        ``writable``, as `confine` takes them.
    """
    in_force = confine(
        life=settings["life"],
        memory_bytes=settings["memory_bytes"],
        rights=settings["confined"],
        writable=settings["writable"],
    )
    from armpy.worker.serving import serve  # noqa: PLC0415 - rights go before any thread is there

    try:
        serve(settings["connection"], in_force)
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(0)  # whatever threads and exit handlers the backend has left
