"""Forks and calls that compute with OpenBLAS until all is compiled."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from armpy.execution.background import tiers
from armpy.execution.background.tiers import CallCounter

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


class Call:
    """A call of the slower tier that a test ends when it likes."""

    def __init__(self) -> None:
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        self.has_ended = False

    def run(self, *_: Any) -> list[Any]:
        """Wait until the test lets it end."""
        self.has_begun.set()
        assert self.may_end.wait(60)
        self.has_ended = True
        return []


@pytest.mark.parametrize("is_bound", [False, True])
def test_a_fork_waits_for_the_calls_of_the_slower_tier(is_bound: bool) -> None:
    call, counter = Call(), CallCounter()
    run: Callable[[], object] = partial(counter.counted(call.run), [])
    if is_bound:
        run = counter.counted_binding(lambda *_: call.run)([], [])
    caller = threading.Thread(target=run)
    caller.start()
    assert call.has_begun.wait(60)
    threading.Timer(0.2, call.may_end.set).start()
    child = os.fork()
    if not child:
        os._exit(0 if call.has_ended else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    caller.join(60)


def test_a_fork_within_a_call_does_not_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tiers, "_LONGEST_WAIT_S", 0.05)
    with tiers.fork_gate:
        child = os.fork()
        if not child:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert "the child may hang" in caplog.text
