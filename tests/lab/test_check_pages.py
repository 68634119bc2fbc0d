from __future__ import annotations

from pathlib import Path

import pytest

from armpy_testing.browser import find_chromium

pytest.importorskip("playwright.sync_api", reason="needs the extra browser")
pytest.importorskip("axe_playwright_python", reason="needs the extra browser")
if find_chromium() is None:
    pytest.skip("Chromium is not installed", allow_module_level=True)

from lab.check_pages import main

HEAD = "<!doctype html><html lang='en'><head><title>t</title></head><body><main><h1>t</h1>"
PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACw="


FAULTS = {
    "<script>throw new Error('broken')</script>": "error: broken",
    "<img src='http://127.0.0.1:9/x.png' alt=''>": "it loads http://127.0.0.1:9/x.png",
    "<div style='width: 2000px'>text</div>": "it is wider than the screen",
    f"<img src='{PIXEL}'>": "critical: image-alt",
    "<h4>lower</h4>": "moderate: heading-order",
}
"""Bodies of pages, and the fault of each."""


@pytest.mark.parametrize("once", [[], ["--once"]])
def test_faults_of_pages_are_found(
    once: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, body in enumerate(FAULTS):
        (tmp_path / f"{number}.html").write_text(HEAD + body, "utf-8")
    assert main([*once, str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    for number, fault in enumerate(FAULTS.values()):
        assert any(f"{number}.html" in line and fault in line for line in lines), fault


def test_a_fault_of_the_dark_or_the_narrow_page_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    style = "<style>@media (prefers-color-scheme: dark) {p {color: #eee; background: #fff}}</style>"
    page.write_text(f"{HEAD}{style}<p>text</p><div style='width: 600px'>text</div>", "utf-8")
    assert main(["--once", str(page)]) == 0
    assert main([str(page)]) == 1
    printed = capsys.readouterr().out
    assert "(dark, 1400 wide): serious: color-contrast" in printed
    assert "(light, 390 wide): it is wider than the screen" in printed
