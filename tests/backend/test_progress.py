from __future__ import annotations

import io
import logging

import pytest

from armpy.backend import Progress, report_progress, watch_progress

STEP = Progress("Acme", "compiling", 1, 2)


def test_progress_is_heard_while_it_is_watched() -> None:
    heard: list[Progress] = []
    report_progress(STEP)
    with watch_progress(heard.append):
        report_progress(STEP)
    report_progress(STEP)
    assert heard == [STEP]


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


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("time.monotonic", clock)
    return clock


class Clock:
    """The time, which passes when it is told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Terminal(io.StringIO):
    """Standard error of somebody who looks at it."""

    def isatty(self) -> bool:
        return True


def compile_slowly(clock: Clock, step_s: float) -> None:
    for done in range(5):
        report_progress(Progress("Acme", "compiling kernels", done, 4))
        clock.now_s += step_s


def test_a_task_of_over_two_seconds_is_announced_once(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    compile_slowly(clock, 0.9)
    (line,) = terminal.getvalue().splitlines()
    assert line.startswith("armpy: Acme is compiling kernels, 3 of 4 so far. ")
    assert 'compile="background"' in line
    compile_slowly(clock, 1.5)  # another load
    assert len(terminal.getvalue().splitlines()) == 2


def test_without_a_terminal_the_log_says_it(
    clock: Clock, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO, "armpy.backend"):
        compile_slowly(clock, 3.0)
    assert [record.getMessage()[:25] for record in caplog.records] == ["Acme is compiling kernels"]
    assert capsys.readouterr().err == ""
