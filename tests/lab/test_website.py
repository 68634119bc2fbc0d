"""Parts of the documentation site that `lab/website/` makes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

nodes = pytest.importorskip("docutils.nodes", reason="needs the extra docs")
addnodes = pytest.importorskip("sphinx.addnodes", reason="needs the extra docs")

from sphinx.errors import ExtensionError  # noqa: E402  # after the check that it is there

from lab.website import commands, navigation, speeds, tables  # noqa: E402


def test_a_command_that_fails_ends_the_build_with_its_output(tmp_path: Path) -> None:
    assert commands.run(["echo first"], tmp_path) == [("echo first", "first\n")]
    with pytest.raises(ExtensionError, match=r"exit code 3 of: .*\nthe reason"):
        commands.run(["echo first", "echo the reason >&2; exit 3"], tmp_path)


def environment(children: dict[str, list[str]]) -> Any:
    """Sphinx's environment, as far as the list of pages reads it."""
    tables = {}
    for page, below in children.items():
        tables[page] = nodes.bullet_list()
        tables[page] += addnodes.toctree(entries=[(None, child) for child in below])
    return SimpleNamespace(
        config=SimpleNamespace(root_doc="root"),
        toctree_includes=children,
        tocs=tables,
        titles={page: nodes.title(text=page.upper()) for page in children},
    )


def links(page: str) -> list[str]:
    """Addresses in the list that a page has, for pages on three levels."""
    below = {"root": ["a", "b"], "a": ["a1"], "a1": ["a11"], "a11": [], "b": []}
    lines = navigation.List(environment(below), page, "{}.html".format).lines()
    return re.findall(r'<a [^>]*href="(.*?)"', "".join(lines))


def test_pages_on_the_third_level_are_listed_where_the_reader_is_within_them() -> None:
    assert links("b") == ["a.html", "a1.html", "b.html"]
    assert links("a1") == links("a11") == ["a.html", "a1.html", "a11.html", "b.html"]


def test_a_search_leaves_out_pages_about_the_past() -> None:
    kept: list[str] = []

    def prune(pages: Iterable[str]) -> None:
        """Go through the pages for each of two words, as Sphinx does."""
        kept.extend([*pages, *pages])

    pages = ["docs/index", "docs/decisions/0001-x", "CHANGELOG"]
    app: Any = SimpleNamespace(
        builder=SimpleNamespace(indexer=SimpleNamespace(prune=prune)),
        env=SimpleNamespace(all_docs=pages),
    )
    assert navigation.forget_pages_that_are_not_searched(app) == []
    assert kept == 2 * ["docs/index"]


def test_the_chart_has_a_dot_for_each_network_that_was_measured() -> None:
    text = speeds.PERFORMANCE.read_text("utf-8")
    processors = speeds.read(text)
    assert ("hello_world_float", 0.27) in processors["Intel Sapphire Rapids (AMX)"]
    assert ("hello_world_float", 2.25) in processors["AMD Zen 4 (AVX-512, VNNI)"]
    assert speeds.draw(processors).count("<circle") == sum(map(len, processors.values())) > 100
    with pytest.raises(ValueError, match="other columns"):
        speeds.read(
            text.replace("| Zen 4 µs | best peer | ratio |", "| Zen 4 µs | ratio | best peer |")
        )


def test_dots_of_the_chart_do_not_overlap_and_lie_on_a_logarithmic_axis() -> None:
    svg = speeds.draw({"processor": [("a", 2.0), ("b", 2.0), ("c", 4.0), ("d", 8.0)]})
    places = re.findall(r'cx="(.*?)%" cy="(.*?)"', svg)
    assert len(set(places)) == 4
    (a, _), (b, _), (c, _), (d, _) = [(float(x), y) for x, y in places]
    assert a == b
    assert c - a == pytest.approx(d - c, abs=0.02)


def test_tables_of_many_columns_are_marked() -> None:
    for columns, classes in ((5, []), (6, ["wide"])):
        table = nodes.table("", nodes.tgroup(cols=columns))
        document = nodes.bullet_list("", table)
        tables.mark_wide(None, document)  # it does not read the first
        assert table["classes"] == classes
