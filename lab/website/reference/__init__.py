"""Pages of the reference that follow from definitions; the files in `docs/` say where from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import contract, load_options, onnx, operations, tflite
from .markdown import wrap

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGES = {
    "docs/reference/backend_contract": contract.page,
    "docs/reference/load_options": load_options.page,
    "docs/reference/onnx": onnx.page,
    "docs/reference/operations": operations.page,
    "docs/reference/tflite_operators": tflite.page,
}
"""Functions that make the pages' texts, by document."""


def connect(app: Sphinx) -> None:
    """Connect with Sphinx."""
    app.connect("env-get-outdated", list_pages)
    app.connect("source-read", fill_page)


def list_pages(*_: object) -> list[str]:
    """List the pages, which are read in every build because the definitions may have changed."""
    return [*PAGES]


def fill_page(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace the text of a file by its page."""
    if name in PAGES:
        source[0] = page_text(name)


def page_text(name: str) -> str:
    """Make a page's text."""
    return wrap(PAGES[name]())
