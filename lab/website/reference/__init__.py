"""Pages of the reference that follow from definitions, made whenever the site is built."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from . import contract, load_options, onnx, operations, tflite
from .markdown import wrap

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGES = {
    "backend_contract.md": contract.page,
    "load_options.md": load_options.page,
    "onnx.md": onnx.page,
    "operations.md": operations.page,
    "tflite_operators.md": tflite.page,
}
"""Functions that make the pages' texts, by file name."""


def connect(app: Sphinx) -> None:
    """Connect with Sphinx."""
    app.connect("builder-inited", write_beside_others)


def write_beside_others(app: Sphinx) -> None:
    """Write the pages into the folder of the reference, where version control ignores them."""
    write(app.confdir / "reference")


def write(folder: Path) -> None:
    """Write the pages that are new or differ."""
    for name, text in texts():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def texts() -> Iterator[tuple[str, str]]:
    """The pages' names and texts."""
    for name, page in PAGES.items():
        yield name, wrap(page())
