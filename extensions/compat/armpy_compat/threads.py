"""Numbers of threads that programs ask for."""

from __future__ import annotations

MOST_THREADS = 256
"""Most threads that armpy's backends take."""


def usable_threads(count: int) -> int | None:
    """Return the number of threads for armpy; None, for the backend's own choice, below 1.

    Notes
    -----
    LiteRT and ONNX Runtime accept more threads than a machine can have processors, such as
    ``os.cpu_count()`` of a large machine; armpy uses its largest number then.
    """
    return min(count, MOST_THREADS) if count > 0 else None
