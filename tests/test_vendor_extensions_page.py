"""vendor_extensions.md is followed from top to bottom: what the page shows is what runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.installed import skip_without
from tests.support.walkthrough import Reader, blocks

skip_without("click", "rich", "pillow", "pip", "setuptools>=77")

PAGE = Path(__file__).parents[1] / "docs" / "how_to" / "vendor_extensions.md"


def test_every_block_of_the_page_is_of_a_kind_that_is_followed() -> None:
    assert {block.kind for block in blocks(PAGE)} == {"console", "diff", "python"}


@pytest.mark.skipif(os.name == "nt", reason="the page is written for a POSIX shell")
def test_the_page_can_be_followed_from_top_to_bottom(tmp_path: Path) -> None:
    Reader(PAGE, tmp_path).read()
