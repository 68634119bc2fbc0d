# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from armpy_testing.browser import find_chromium

pytest.importorskip("playwright.sync_api", reason="needs the extra browser")
if find_chromium() is None:
    pytest.skip("Chromium is not installed", allow_module_level=True)

from scripts.check_pages import main

HEAD = "<!doctype html><html lang='en'><head><title>t</title></head><body>"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<script>throw new Error('broken')</script>", "error: broken"),
        ("<img src='http://127.0.0.1:9/x.png' alt=''>", "it loads http://127.0.0.1:9/x.png"),
        ("<div style='width: 2000px'>x</div>", "it is wider than the screen"),
    ],
)
def test_a_fault_of_a_page_is_found(
    body: str, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.html").write_text(HEAD + body, "utf-8")
    assert main([str(tmp_path)]) == 1
    assert fault in capsys.readouterr().out


def test_complaints_of_axe_count_if_they_are_serious(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.html").write_text(HEAD + "<p>x</p>", "utf-8")
    violation = "{impact, id: 'rule', help: 'why', nodes: [{target: 'p'}]}"
    for impact, code in (("serious", 1), ("minor", 0)):
        axe = tmp_path / "axe.js"
        violations = violation.replace("impact,", f"impact: '{impact}',")
        axe.write_text(f"window.axe = {{run: async () => ({{violations: [{violations}]}})}}")
        assert main(["--axe", str(axe), str(tmp_path / "page.html")]) == code
    assert "serious: rule, why" in capsys.readouterr().out
