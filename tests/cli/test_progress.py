from __future__ import annotations

import io
import re

import pytest

from armpy.backend import Progress, report_progress

for library in ("click", "PIL"):
    pytest.importorskip(library)

from armpy.cli.progress import progress_shown  # noqa: E402


class Terminal(io.StringIO):
    """A file that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_a_terminal_shows_how_many_steps_are_done() -> None:
    stream = Terminal()
    with progress_shown(stream):
        for done in range(4):
            report_progress(Progress("Acme", "compiling kernels", done, 3))
    shown = stream.getvalue()
    assert "Acme: compiling kernels" in shown
    for done in range(3):
        assert f"{done}/3" in shown
    assert shown.endswith("\r")
    assert not shown.rpartition("2/3")[2].strip()


def test_names_of_steps_do_not_control_the_terminal() -> None:
    stream = Terminal()
    with progress_shown(stream):
        report_progress(Progress("Acme", "\x1b[2Jcompiling", 1, 3))
    assert r"Acme: \x1b[2Jcompiling 1/3" in stream.getvalue()


def test_nothing_is_shown_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    with progress_shown(stream):
        report_progress(Progress("Acme", "compiling kernels", 0, 3))
    assert stream.getvalue() == ""


def test_a_task_that_breaks_off_removes_its_line() -> None:
    stream = Terminal()

    def break_off() -> None:
        with progress_shown(stream):
            report_progress(Progress("Acme", "compiling kernels", 1, 3))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        break_off()
    after = stream.getvalue().rpartition("1/3")[2]
    assert re.fullmatch(r"\r +\r", after)
