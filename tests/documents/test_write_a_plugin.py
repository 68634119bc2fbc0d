"""write_a_plugin.md describes the example's plugin, and names every hook."""

from __future__ import annotations

import re

from tests.support.pages import ROOT

PAGE = ROOT / "docs" / "how_to" / "write_a_plugin.md"
PLUGINS = ROOT / "examples" / "plugins"


def test_the_page_describes_each_hook_of_the_example() -> None:
    source = (PLUGINS / "chain" / "armpy_chain" / "__init__.py").read_text("utf-8")
    hooks = re.findall(r"@hookimpl\ndef (\w+)", source)
    section = PAGE.read_text("utf-8").partition("## 3. ")[2].partition("\n## ")[0]
    assert re.findall(r"^- `(\w+)`:", section, re.M) == hooks


def test_the_page_names_every_hook() -> None:
    from armpy.plugins.hooks.checks import HOOKS

    text = PAGE.read_text("utf-8")
    assert [hook for hook in HOOKS if f"| `{hook}(" not in text] == []
