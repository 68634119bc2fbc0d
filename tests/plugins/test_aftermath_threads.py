"""What candidates change is found out and undone while other threads import."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from armpy.plugins.aftermath import InterpreterState, undo

NAMES = [f"armpy_imported_meanwhile_{i}" for i in range(100)]


@contextmanager
def others_importing() -> Iterator[None]:
    """Another thread that puts modules into ``sys.modules`` and takes them out."""
    stop, interval = threading.Event(), sys.getswitchinterval()

    def work() -> None:
        while not stop.is_set():
            for name in NAMES:
                sys.modules[name] = ModuleType(name)
            for name in NAMES:
                del sys.modules[name]

    thread = threading.Thread(target=work)
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)


def test_what_others_put_beside_it_meanwhile_stays() -> None:
    before = sys.path[:]
    taken_out = before[0]
    try:
        state = InterpreterState()
        sys.path[:] = ["/of/the/candidate", *before[1:]]
        changes = state.changes()
        sys.path.append("/of/somebody/else")
        undo([changes])
        assert sys.path == [taken_out, *before[1:], "/of/somebody/else"]
    finally:
        sys.path[:] = before


def test_changes_are_told_while_other_threads_import() -> None:
    with others_importing():
        for _ in range(1000):
            InterpreterState().changes()
