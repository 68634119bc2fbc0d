"""Check pages in headless Chromium: nothing fails or is loaded, and axe-core finds no fault.

    python lab/check_pages.py report.html
    python lab/check_pages.py --once site/

Each page is opened in light and dark, wide and narrow, or once, light and wide. All that axe-core
finds fails, as do errors of the page's own programs, and parts wider than the screen. Pages that
lead to another one at once are left out, as nobody sees them. Needs the extra ``browser``, which
has axe-core, and Chromium.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.resources import files
from pathlib import Path

from playwright.sync_api import Page, Request, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from armpy_testing.browser import SWITCHES, find_chromium  # noqa: E402  # of this checkout

VIEWS: dict[tuple[int, str], dict[str, object]] = {
    (1400, "light"): {},
    (1400, "dark"): {"runOnly": ["color-contrast"]},
    (390, "light"): {"rules": {"color-contrast": {"enabled": False}}},
    (390, "dark"): {"runOnly": ["color-contrast"]},
}
"""Widths and schemes, with options of axe-core: dark changes colours alone."""

ONCE: dict[tuple[int, str], dict[str, object]] = {
    (1400, "light"): {"rules": {"color-contrast": {"enabled": False}}}
}
"""The view of a page that is opened once: its colours, which take most of the time to check, are
those of the site's other pages."""

LEADS_ON = '<meta http-equiv="refresh" content="0;'
"""In a page that leads to another one at once."""

REPEATED = ".sidebar-drawer"
"""The list of a site's pages, which axe-core leaves out where pages are opened once."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the pages that are named; 1 if there is a fault."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="+", type=Path, help="HTML files, or folders of them")
    parser.add_argument("--once", action="store_true", help="light and wide alone")
    options = parser.parse_args(arguments)
    if find_chromium() is None:
        print("Chromium is not installed")
        return 1
    paths = sorted(_files(options.pages), key=lambda path: path.stat().st_size, reverse=True)
    workers = min(os.cpu_count() or 1, len(paths))
    with ProcessPoolExecutor(workers) as pool:
        shares = [paths[start::workers] for start in range(workers)]
        checked = list(pool.map(partial(check, once=options.once), shares))
    faults = [fault for part in checked for fault in part]
    print(*sorted(faults), f"{len(paths)} pages, {len(faults)} faults", sep="\n")
    return 1 if faults else 0


def check(paths: Sequence[Path], once: bool) -> list[str]:
    """Faults of some pages, opened one after the other in a browser."""
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=SWITCHES)
        page = browser.new_context(offline=True).new_page()
        faults = [fault for path in paths for fault in _faults(page, path, axe, once)]
        browser.close()
    return faults


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    """All HTML files in some paths that a reader sees."""
    for path in paths:
        found = path.rglob("*.html") if path.is_dir() else [path]
        yield from (file for file in found if LEADS_ON not in file.read_text("utf-8"))


def _faults(page: Page, path: Path, axe: str, once: bool) -> Iterator[str]:
    """Faults of a page, those of a view with its scheme and width."""
    for complaint in _opened(page, path):
        yield f"{path}: {complaint}"
    page.evaluate(axe)
    for (width, scheme), rules in (ONCE if once else VIEWS).items():
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        where = f"{path} ({scheme}, {width} wide)"
        if page.evaluate("document.documentElement.scrollWidth") > width:
            yield f"{where}: it is wider than the screen"
        context = {"exclude": [REPEATED]} if once else {}
        for complaint in _complaints(page, context, rules):
            yield f"{where}: {complaint}"


def _opened(page: Page, path: Path) -> list[str]:
    """Open a page; errors of its programs, and what it loads from elsewhere."""
    complaints: list[str] = []

    def on_error(error: object) -> None:
        complaints.append(f"error: {error}")

    def on_request(request: Request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:", "about:")):
            complaints.append(f"it loads {request.url}")

    page.on("pageerror", on_error)
    page.on("request", on_request)
    page.goto(path.resolve().as_uri())
    page.wait_for_load_state("load")
    page.remove_listener("pageerror", on_error)
    page.remove_listener("request", on_request)
    return complaints


def _complaints(
    page: Page, context: dict[str, list[str]], rules: dict[str, object]
) -> Iterator[str]:
    """What axe-core finds in a view; frames are pages of their own."""
    options = {"iframes": False, "resultTypes": ["violations"], **rules}
    run = "([context, options]) => axe.run(context, options).then((result) => result.violations)"
    for violation in page.evaluate(run, [{"include": ["html"], **context}, options]):
        node = violation["nodes"][0]
        yield (
            f"{violation['impact']}: {violation['id']}, {violation['help']}"
            f" ({len(violation['nodes'])} times, first {node['target']})"
        )


if __name__ == "__main__":
    sys.exit(main())
