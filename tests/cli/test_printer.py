"""What is printed where there is no terminal is what rich would print, without it."""

from __future__ import annotations

import io
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("rich")

from rich.console import Console
from rich.table import Table
from rich.text import Text

from armpy.cli.printer import Printer, printable

WIDE = "\u6f22\U0001f600e\u0301\u200b\u00e4"
"""Characters that take two columns, two and colour, none after another, none, and one."""

texts = st.text(st.sampled_from("ab 1,.[bold]:smile:\n\t\x1b>" + WIDE), max_size=8)
tables = st.integers(1, 4).flatmap(
    lambda n: st.tuples(
        st.lists(st.tuples(texts, st.sampled_from(["", ">"])), min_size=n, max_size=n),
        st.lists(st.lists(texts, min_size=n, max_size=n), max_size=4),
    )
)


def by_rich(columns: list[tuple[str, str]], rows: list[list[str]]) -> str:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name, side in columns:
        table.add_column(Text(name), justify="right" if side else "left")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    stream = io.StringIO()
    Console(file=stream, width=10_000, highlight=False, markup=False, emoji=False).print(table)
    return "".join(line.rstrip() + "\n" for line in stream.getvalue().split("\n")[:-1])


def printed(columns: list[str], rows: list[list[str]]) -> str:
    stream = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("FORCE_COLOR", raising=False)
        patch.delenv("TTY_COMPATIBLE", raising=False)
        patch.setattr(sys, "stdout", stream)
        Printer().table(columns, rows)
    return stream.getvalue()


@given(tables)
def test_tables_of_ascii_are_those_of_rich(
    table: tuple[list[tuple[str, str]], list[list[str]]],
) -> None:
    def plain(text: str) -> str:
        return printable(text).encode("ascii", "ignore").decode().strip(">[]")

    columns = [(plain(name), side) for name, side in table[0]]
    rows = [[plain(cell) for cell in row] for row in table[1]]
    assert printed(["".join(column) for column in columns], rows) == by_rich(columns, rows)


def test_a_table_is_aligned() -> None:
    assert printed(["n>", "name", "last>"], [["1", "a", "x"], ["20", "longer", ""]]) == (
        " n  name    last\n 1  a          x\n20  longer\n"
    )


@pytest.mark.parametrize("variable", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_who_asks_for_colours_gets_them(
    variable: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(variable, "1")
    Printer().heading("title")
    assert "\x1b[1mtitle" in capsys.readouterr().out


def test_a_terminal_shows_at_a_glance_whether_all_is_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Printer().marked("plain", is_good=False)
    assert capsys.readouterr().out == "plain\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
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
