"""Pages for maintainers name files, and names in them, that are there."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.support.pages import ROOT

PAGES = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/**/*.md", "backends/*/*.md", "extensions/*/*.md", "testing/*.md")
    for path in ROOT.glob(pattern)
    # These tell how to write files.
    if path.name not in {"adding_an_operation.md", "write_a_backend.md"}
)
_PATH = re.compile(r"`((?:armpy|backends|docs|examples|extensions|lab|testing|tests)/[\w./-]*)`")


def missing(text: str, folder: Path = ROOT) -> list[str]:
    """Paths of a page that lead nowhere, and names said to be in a file that does not have them.

    A path begins at the checkout, or at the folder of the page.
    """
    gone = [
        path
        for path in _PATH.findall(text)
        if not (ROOT / path).exists() and not (folder / path).exists()
    ]
    gone += [
        f"{name} in {path}"
        for name, path in _said_to_be_in(text)
        if path not in gone and name not in (ROOT / path).read_text("utf-8")
    ]
    return gone


def _said_to_be_in(text: str) -> list[tuple[str, str]]:
    """Pairs as in "`name` in `path`"."""
    return re.findall(r"`(\w+)` in `((?:armpy|backends|lab|tests)/[\w/]+\.py)`", text)


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_is_there(page: str) -> None:
    path = ROOT / page
    assert missing(path.read_text("utf-8"), path.parent) == []


def wrong_decisions(names: list[str], index: str) -> list[str]:
    """Files of decisions whose number another has, too, or that the index does not list."""
    numbers = Counter(name[:4] for name in names)
    return [name for name in names if numbers[name[:4]] > 1 or f"]({name})" not in index]


def test_decisions_have_a_number_each_and_are_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    names = sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert names
    assert wrong_decisions(names, (folder / "index.md").read_text("utf-8")) == []


def test_decisions_with_one_number_and_unlisted_ones_are_found() -> None:
    index = "[a](0001-a.md), [b](0001-b.md), [c](0002-c.md)"
    assert wrong_decisions(["0001-a.md", "0001-b.md", "0002-c.md"], index) == [
        "0001-a.md",
        "0001-b.md",
    ]
    assert wrong_decisions(["0002-c.md", "0003-d.md"], index) == ["0003-d.md"]


def test_a_path_that_leads_nowhere_is_found() -> None:
    assert missing("see `armpy/no_such_file.py`") == ["armpy/no_such_file.py"]
    assert missing("`tests/test_paths.py`", Path(__file__).parents[1]) == ["tests/test_paths.py"]
    assert missing("`tests/documents/test_paths.py`", Path(__file__).parent) == []


def test_a_name_that_is_not_in_its_file_is_found() -> None:
    assert missing("`Graph` in `armpy/graph/graph.py`") == []
    text = "`Elsewhere` in `armpy/graph/graph.py`"
    assert missing(text) == ["Elsewhere in armpy/graph/graph.py"]
