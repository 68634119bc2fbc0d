"""Lines and tables, with and without a terminal."""

from __future__ import annotations

import io
import re
import sys

import pytest

pytest.importorskip("click")

from armpy.cli.printer import Printer


def test_a_table_is_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    Printer().table(["n>", "name", "last>"], [["1", "a", "x"], ["20", "\u6f22e\u0301", "\t"]])
    assert capsys.readouterr().out == (
        " n  name  last\n 1  a        x\n20  \u6f22e\u0301     \\t\n"
    )


def test_who_asks_for_colours_gets_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    Printer().heading("title")
    assert "\x1b[1mtitle" in capsys.readouterr().out


def test_a_terminal_shows_at_a_glance_whether_all_is_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Printer().marked("plain", is_good=False)
    assert capsys.readouterr().out == "plain\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    Printer().marked("3 fell back", is_good=False)
    Printer().marked("none did", is_good=True)
    bad, good = capsys.readouterr().out.splitlines()
    assert "\x1b[33m" in bad
    assert "\u26a0 3 fell back" in bad
    assert "\x1b[32m" in good
    assert "\u2713 none did" in good
    monkeypatch.setenv("NO_COLOR", "1")
    Printer().marked("3 fell back", is_good=False)
    assert capsys.readouterr().out == "\u26a0 3 fell back\n"


def test_a_narrow_terminal_folds_text_and_leaves_numbers_and_headings_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FORCE_COLOR", "1"), ("NO_COLOR", "1"), ("COLUMNS", "40")):
        monkeypatch.setenv(name, value)
    row = ("seven/a_long_name_of_a_picture.png", 7, "0.9961", "a label of several words")
    Printer().table(["file", "class>", "score>", "label"], [row])
    first, *others = capsys.readouterr().out.splitlines()
    assert re.sub(r"\x1b\[\d*m", "", first).split() == ["file", "class", "score", "label"]
    assert "0.9961" in others[0]
    letters = "".join("".join(others).split())
    assert sorted(letters) == sorted("".join(map(str, row)).replace(" ", ""))


def test_a_terminal_may_be_narrower_than_any_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FORCE_COLOR", "1"), ("NO_COLOR", "1"), ("COLUMNS", "1")):
        monkeypatch.setenv(name, value)
    Printer().table(["", "n>"], [("ab", 20)])
    assert capsys.readouterr().out.splitlines() == ["    n", "a  20", "b"]


def test_wide_characters_are_folded_by_the_columns_that_they_take(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FORCE_COLOR", "1"), ("NO_COLOR", "1"), ("COLUMNS", "8")):
        monkeypatch.setenv(name, value)
    Printer().table(["", "n>"], [("\u6f22\u5b57\u6f22", 20)])
    assert capsys.readouterr().out.splitlines() == ["       n", "\u6f22\u5b57  20", "\u6f22"]


def test_a_terminal_without_colours_or_unicode_gets_neither(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="ascii")
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("TERM", "dumb")
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    Printer().marked("3 fell back", is_good=False)
    stream.flush()
    assert written.getvalue().split() == [b"!", b"3", b"fell", b"back"]
