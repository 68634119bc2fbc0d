"""Tasks on threads of their own, which their caller may leave alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


def begin_apart(task: Callable[[], T], name: str) -> Future[T]:
    """Begin a task on a thread of its own, in the caller's context; its answer or error to come.

    Raises
    ------
    RuntimeError
        If the process can have no more threads.
    """
    done: Future[T] = Future()
    # A new thread has an empty context, in which profiles and reports of caches would be lost.
    context = copy_context()

    def run() -> None:
        try:
            done.set_result(context.run(task))
        except BaseException as error:  # noqa: BLE001  # raised again, in the thread that asked
            done.set_exception(error)

    # Of no pool, which would never get a stuck thread back; a daemon, so that the process can end.
    threading.Thread(target=run, name=name, daemon=True).start()
    return done
