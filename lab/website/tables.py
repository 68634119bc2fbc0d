"""Marks tables of many columns, which `site.css` gives the width of the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FEWEST_COLUMNS = 6
"""Of a table that is wider than a line of text."""


def connect(app: Sphinx) -> None:
    """Connect with Sphinx."""
    app.connect("doctree-read", mark_wide)


def mark_wide(app: Sphinx, document: nodes.document) -> None:
    """Give tables of many columns the class ``wide``."""
    for columns in document.findall(nodes.tgroup):
        if columns["cols"] >= FEWEST_COLUMNS:
            columns.parent["classes"].append("wide")
