"""Threads that are started where a signal handler of the application's may raise at any time."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable


def start_nameless(
    target: Callable[[], object],  # raises nothing
) -> None:
    """Start a thread that `threading` need not know of, and that does not keep the process.

    Raises RuntimeError if the process can have no more threads, or the interpreter none that end
    with it.
    """
    may_be_daemon = getattr(_thread, "daemon_threads_allowed", None)  # from Python 3.12 on
    if may_be_daemon is not None and not may_be_daemon():
        raise RuntimeError("this interpreter has no threads that end with it")
    _thread.start_new_thread(target, ())


def start_daemon(target: Callable[[], object], name: str) -> None:
    """Start a thread that does not keep the process from ending.

    Raises RuntimeError if the process can have no more threads, or the interpreter none that end
    with it.

    `threading.Thread.start` is not proof against handlers of signals that raise: interrupted
    between two of its steps it raises KeyError in the caller's place, or in the new thread's before
    that has begun. Handlers run on the main thread alone. So a plain thread, which is started in
    one step, starts the one with a name.
    """

    def begin() -> None:
        try:
            threading.Thread(target=target, name=name, daemon=True).start()
        except (RuntimeError, MemoryError):  # there can be one thread and not two: this is it
            target()

    # It asks for both: in the new thread, `begin` would take the refusal for a want of threads.
    start_nameless(begin)
