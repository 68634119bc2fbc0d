# SPDX-License-Identifier: Apache-2.0
"""Check pages in headless Chromium: nothing fails or is loaded, and axe-core does not complain.

    python scripts/check_pages.py --axe node_modules/axe-core/axe.min.js report.html site/

Each page is opened in light and dark, wide and narrow. Complaints that axe-core calls serious or
critical fail, as do errors of the page's own programs, and parts wider than the screen. Needs the
extra ``browser`` and Chromium.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from armpy_testing.browser import SWITCHES, find_chromium  # noqa: E402  # of this checkout

SERIOUS = ("serious", "critical")
WIDTHS = (1400, 390)
SCHEMES = ("light", "dark")


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the pages that are named; 1 if there is a fault."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="+", type=Path, help="HTML files, or folders of them")
    parser.add_argument("--axe", type=Path, help="axe.min.js of the package axe-core")
    options = parser.parse_args(arguments)
    chromium = find_chromium()
    if chromium is None:
        print("Chromium is not installed")
        return 1
    axe = options.axe.read_text("utf-8") if options.axe else ""
    faults = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=SWITCHES)
        for path in _files(options.pages):
            for width, scheme in product(WIDTHS, SCHEMES):
                page_faults = list(_faults(browser, path, width, scheme, axe))
                faults += len(page_faults)
                for fault in page_faults:
                    print(f"{path} ({scheme}, {width} wide): {fault}")
        browser.close()
    print(f"{faults} faults")
    return 1 if faults else 0


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """All HTML files in some paths."""
    for path in paths:
        yield from sorted(path.rglob("*.html")) if path.is_dir() else [path]


def _faults(browser: Browser, path: Path, width: int, scheme: str, axe: str) -> Iterator[str]:
    """Faults of a page."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        offline=True,
    )
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("request", lambda request: complaints.extend(_foreign(request.url)))
    page.goto(path.resolve().as_uri())
    page.wait_for_load_state("load")
    yield from complaints
    if page.evaluate("document.documentElement.scrollWidth") > width:
        yield "it is wider than the screen"
    if axe:
        yield from _complaints(page, axe)
    context.close()


def _foreign(url: str) -> list[str]:
    """A complaint about an address that is not on this machine."""
    return [] if url.startswith(("file:", "data:", "blob:")) else [f"it loads {url}"]


def _complaints(page: Page, axe: str) -> Iterator[str]:
    """What axe-core calls serious."""
    page.evaluate(axe)
    for violation in page.evaluate("axe.run().then((found) => found.violations)"):
        if violation["impact"] in SERIOUS:
            node = violation["nodes"][0]
            yield (
                f"{violation['impact']}: {violation['id']}, {violation['help']}"
                f" ({len(violation['nodes'])} times, first {node['target']})"
            )


if __name__ == "__main__":
    sys.exit(main())
