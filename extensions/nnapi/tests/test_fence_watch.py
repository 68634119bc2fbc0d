"""The thread that waits for fences."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pytest

from armpy.errors import QueueFullError
from armpy_nnapi.run import fence_watch
from armpy_nnapi.run.fence_watch import FenceWatch


def test_a_fence_without_a_thread_to_wait_is_refused_and_the_next_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(target: Callable[[], object], name: str) -> None:
        raise RuntimeError("can't start new thread")

    watch = FenceWatch()
    seen = threading.Event()
    first, second = os.pipe(), os.pipe()
    with monkeypatch.context() as patch:
        patch.setattr(fence_watch, "start_daemon", fail)
        with pytest.raises(QueueFullError, match="no thread can wait for the fence: can't start"):
            watch.begin(first[0], lambda: None)
    watch.begin(second[0], seen.set)
    os.write(second[1], b"x")
    assert seen.wait(10)
    for end in (*first, *second):
        os.close(end)
