"""write_a_plugin.md shows the example's plugin, and names every hook."""

from __future__ import annotations

from tests.support.pages import ROOT, blocks

PAGE = ROOT / "docs" / "how_to" / "write_a_plugin.md"
PLUGINS = ROOT / "examples" / "plugins"
OWN_FILES = {"by_hand.py", "even_placement.py", "vendor_shift.py"}
"""What the page has and the example has not."""


def test_the_page_shows_the_plugin_of_the_example() -> None:
    shown = {b.settings["title"]: b.text for b in blocks(PAGE) if "title" in b.settings}
    assert {*shown} - OWN_FILES == {"armpy_chain/__init__.py"}
    for name in {*shown} - OWN_FILES:
        assert shown[name] == (PLUGINS / "chain" / name).read_text("utf-8"), name


def test_the_page_names_every_hook() -> None:
    from armpy.plugins.hooks.checks import HOOKS

    text = PAGE.read_text("utf-8")
    assert [hook for hook in HOOKS if f"| `{hook}(" not in text] == []
