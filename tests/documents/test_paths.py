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


def test_decisions_have_a_number_each() -> None:
    folder = ROOT / "docs" / "decisions"
    numbers = Counter(path.name[:4] for path in folder.glob("[0-9]*.md"))
    assert numbers
    assert [number for number, files in numbers.items() if files > 1] == []
