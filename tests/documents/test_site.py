"""The documentation site that was built (`ARMPY_SITE`), in a browser: search finds pages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from armpy_testing.browser import SWITCHES, find_chromium

SITE = os.environ.get("ARMPY_SITE", "")
pytestmark = [
    pytest.mark.skipif(not SITE, reason="ARMPY_SITE names no site that was built"),
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed"),
]


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:  # of Playwright, which may not be installed
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=find_chromium(), args=SWITCHES)
        yield browser.new_page(viewport={"width": 1300, "height": 1000})
        browser.close()


def search(page: Any, word: str) -> list[str]:
    """Titles that a search on the first page gives."""
    page.goto((Path(SITE) / "docs" / "index.html").resolve().as_uri())
    page.fill("input[name=q]", word)
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results > h2:has-text('Search Results')", timeout=20000)
    return [str(title) for title in page.locator("ul.search li > a").all_inner_texts()]


def test_a_word_of_a_page_leads_to_it(page: Any) -> None:
    assert "From ONNX Runtime" in search(page, "io_binding")
    assert search(page, "nosuchwordanywhere") == []


def test_a_name_from_a_docstring_leads_to_its_class(page: Any) -> None:
    assert any("RuntimeOptions" in title for title in search(page, "RuntimeOptions"))
