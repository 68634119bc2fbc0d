from __future__ import annotations

import threading
from contextvars import Context

import pytest

from armpy.backend import TuningRequest, TuningResult, request_tuning, requested_tuning
from armpy.errors import InvalidArgumentError


def test_a_request_holds_while_its_block_runs() -> None:
    with request_tuning(5) as request:
        assert requested_tuning() is request
        with request_tuning(6) as inner:
            assert requested_tuning() is inner
        assert requested_tuning() is request
    assert requested_tuning() is None


def test_a_request_ends_with_an_error() -> None:
    with pytest.raises(ZeroDivisionError), request_tuning(5):
        raise ZeroDivisionError
    assert requested_tuning() is None


def test_other_threads_are_asked_for_nothing() -> None:
    # In a context of its own: free-threaded Pythons hand the starting thread's on.
    seen: list[TuningRequest | None] = []
    with request_tuning(5):
        thread = threading.Thread(target=lambda: seen.append(requested_tuning()))
        Context().run(thread.start)
        thread.join()
    assert seen == [None]


def test_time_runs_out_and_can_be_given_back() -> None:
    request = TuningRequest(1000)
    assert 0 < request.remaining_s <= 1000
    request.extend(1000)
    assert 1000 < request.remaining_s <= 2000
    request.extend(-3000)
    assert request.remaining_s == 0


def test_time_begins_when_it_is_first_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([100.0, 100.0, 103.0])
    monkeypatch.setattr("armpy.backend.tuning.time.monotonic", lambda: next(now))
    request = TuningRequest(5)
    request.extend(1)
    assert request.remaining_s == 6
    assert request.remaining_s == 3


def test_results_are_collected() -> None:
    result = TuningResult("Acme", "a part")
    with request_tuning(5) as request:
        asked = requested_tuning()
        assert asked is not None
        asked.add(result)
    assert request.results == [result]


def test_the_time_is_a_number() -> None:
    with pytest.raises(InvalidArgumentError, match="not a number"), request_tuning(float("nan")):
        pass
    assert requested_tuning() is None
