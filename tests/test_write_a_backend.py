"""write_a_backend.md is followed from top to bottom: what the page shows is what runs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.installed import skip_without
from tests.support.walkthrough import Reader, blocks, first_missing

skip_without("click", "rich", "pillow", "pip", "setuptools>=77")

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorials" / "write_a_backend.md"


def test_lines_are_found_in_order_and_points_stand_for_anything() -> None:
    output = "one  two\nthree 3.5 four\nfive\n"
    assert first_missing(["one two", "three ... four", "five"], output) is None
    assert first_missing(["five", "one two"], output) == "one two"
    assert first_missing(["three 3x5 four"], output) == "three 3x5 four"


def test_every_block_of_the_page_is_of_a_kind_that_is_followed() -> None:
    kinds = [block.kind for block in blocks(PAGE)]
    assert set(kinds) == {"console", "diff", "python", "sh"}
    assert kinds.count("sh") == 1  # how to get armpy itself


@pytest.mark.skipif(os.name == "nt", reason="the page is written for a POSIX shell")
def test_the_page_can_be_followed_from_top_to_bottom(tmp_path: Path) -> None:
    reader = Reader(PAGE, tmp_path)
    shutil.copy(ROOT / "examples" / "digits" / "digits_int8.tflite", reader.folder)
    reader.read()
