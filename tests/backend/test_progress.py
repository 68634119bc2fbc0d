from __future__ import annotations

import logging
import threading

import pytest

import armpy
from armpy.backend import Progress, report_progress, watch_progress

STEP = Progress("Acme", "compiling", 1, 2)


def test_progress_is_heard_while_it_is_watched() -> None:
    heard: list[Progress] = []
    report_progress(STEP)
    with watch_progress(heard.append):
        report_progress(STEP)
    report_progress(STEP)
    assert heard == [STEP]


def test_everyone_who_watches_hears_of_every_thread() -> None:
    first: list[Progress] = []
    second: list[Progress] = []
    with watch_progress(first.append), watch_progress(second.append):
        thread = threading.Thread(target=report_progress, args=(STEP,))
        thread.start()
        thread.join()
    assert first == second == [STEP]


def test_what_a_callback_raises_is_logged_and_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[Progress] = []

    def fail(_: Progress) -> None:
        raise ValueError("no screen")

    with watch_progress(fail), watch_progress(heard.append):
        report_progress(STEP)
    assert heard == [STEP]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "no screen" in caplog.text


def test_a_callback_can_stop_everything() -> None:
    def stop(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), watch_progress(stop):
        report_progress(STEP)
    report_progress(STEP)


def test_applications_find_it_in_armpy() -> None:
    assert armpy.watch_progress is watch_progress
