"""write_a_plugin.md is followed from top to bottom: what the page shows is what runs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.installed import skip_without
from tests.support.walkthrough import Reader, blocks

skip_without("click", "rich", "pillow", "pip", "setuptools>=77")

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "how_to" / "write_a_plugin.md"
PLUGINS = ROOT / "examples" / "plugins"
OWN_FILES = {"by_hand.py", "vendor_shift.py"}
"""What the page has and the example has not."""


def test_the_page_shows_the_files_of_the_example() -> None:
    shown = {b.settings["title"]: b.text for b in blocks(PAGE) if "title" in b.settings}
    assert {*shown} - OWN_FILES == {
        "pyproject.toml",
        "armpy_chain/__init__.py",
        "armpy_chain/parser.py",
    }
    for name in {*shown} - OWN_FILES:
        assert shown[name] == (PLUGINS / "chain" / name).read_text("utf-8"), name


def test_the_page_names_every_hook() -> None:
    from armpy.plugins.hook_checks import HOOKS

    text = PAGE.read_text("utf-8")
    assert [hook for hook in HOOKS if f"| `{hook}(" not in text] == []


@pytest.mark.skipif(os.name == "nt", reason="the page is written for a POSIX shell")
def test_the_page_can_be_followed_from_top_to_bottom(tmp_path: Path) -> None:
    reader = Reader(PAGE, tmp_path)
    shutil.copytree(PLUGINS / "broken", reader.folder / "broken")
    shutil.copy(ROOT / "examples" / "digits" / "digits_int8.tflite", reader.folder)
    reader.read()
