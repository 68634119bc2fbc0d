"""Messages between the application and the worker of a backend.

Notes
-----
Requests are tuples that begin with one of these words. Executions have sockets of their own, with
a single byte in each direction if all is well; their tensors lie in shared memory.
"""

from __future__ import annotations

import json

LOAD = "load"
"""Load the backend and describe it; the first request."""
CONFIGURE = "configure"
"""Set the backend up with options of scope RUNTIME."""
SUPPORT = "support"
"""Ask whether a layer can run."""
PREPARE = "prepare"
"""Prepare a part, which comes in shared memory."""
OPEN = "open"
"""Open a place where a part is executed: a socket and shared memory."""
RELEASE = "release"
"""Forget a part."""


GO = b"\1"
"""Execute, to a worker."""
GO_TIMED = b"\2"
"""Execute, and write down how long the device took."""
DONE = b"\0"
"""All outputs are written, from a worker."""

# A packet has to fit the socket's buffer whole, whatever a hostile backend puts into its errors.
MAX_FAILURE_BYTES = 16 << 10
"""Longest packet that a worker says with what went wrong in an execution."""


def parse_failure(packet: bytes) -> object:
    """What a worker says went wrong in an execution, of the form of JSON; None if it is not."""
    try:
        return json.loads(packet)
    # The second one comes of deep nesting, which a hostile worker can write.
    except (ValueError, RecursionError):
        return None
