"""Work in several threads that begin together."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

THREADS = 8
TIMEOUT_SECONDS = 60


def in_threads(work: Callable[[int], object], count: int = THREADS) -> list[Exception]:
    """Do some work in several threads that begin together; what they raise."""
    errors: list[Exception] = []
    barrier = threading.Barrier(count)

    def run(number: int) -> None:
        barrier.wait(TIMEOUT_SECONDS)
        try:
            work(number)
        except Exception as error:  # noqa: BLE001 - the caller looks at all of them
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads take turns often, so that races show
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT_SECONDS)
    finally:
        sys.setswitchinterval(interval)
    assert not any(thread.is_alive() for thread in threads), "a deadlock"
    return errors
