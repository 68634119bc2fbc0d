"""Descriptions of pages, for search engines and for the previews of links to them.

The description is a page's first paragraph. The picture of a preview, which has to be one of
pixels, is drawn when the site is built.
"""

from __future__ import annotations

from html import escape
from importlib.metadata import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from PIL import Image, ImageDraw, ImageFont

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PICTURE = "_static/preview.png"
_SIZE = (1200, 630)  # pixels, as services that show previews ask for
_BLUE, _WHITE, _PALE = "#0a4bff", "#ffffff", "#c5d5ff"
_LONGEST = 200  # characters of a description


def connect(app: Sphinx) -> None:
    """Connect with Sphinx."""
    app.connect("html-page-context", add_description)
    app.connect("build-finished", draw_picture)


def add_description(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Add a description and a preview to a page that was written by people."""
    if doctree is None:
        return
    text = description(doctree)
    title = doctree.next_node(nodes.title)
    address = site_address()
    tags = {
        "og:title": title.astext() if title else "armpy",
        "og:description": text,
        "og:type": "website",
        "og:url": f"{address}/{page}.html",
        "og:image": f"{address}/{PICTURE}",
    }
    lines = [f'<meta name="description" content="{escape(text)}">']
    lines += (
        f'<meta property="{name}" content="{escape(content)}">' for name, content in tags.items()
    )
    context["metatags"] = "\n".join([context.get("metatags", ""), *lines])


def description(document: nodes.document) -> str:
    """The first paragraph of a page that is no part of a list or table, cut after a word."""
    paragraphs = (node for node in document.findall(nodes.paragraph))
    text = next(
        (node.astext() for node in paragraphs if isinstance(node.parent, nodes.section)), ""
    )
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rpartition(' ')[0]} ..."


def site_address() -> str:
    """Address of the site, from the project's metadata."""
    urls = dict(line.split(", ", 1) for line in metadata("armpy").get_all("Project-URL", []))
    return str(urls["Documentation"]).rstrip("/")


def draw_picture(app: Sphinx, exception: Exception | None) -> None:
    """Draw the picture of previews: the name, and what armpy does."""
    if exception is not None:
        return
    picture = Image.new("RGB", _SIZE, _BLUE)
    drawing = ImageDraw.Draw(picture)
    drawing.text((80, 130), "armpy", _WHITE, ImageFont.load_default(140))
    text = "Run .tflite and .onnx models from Python,\non the CPU and on any accelerator"
    drawing.multiline_text((84, 330), text, _PALE, ImageFont.load_default(44), spacing=16)
    picture.save(Path(app.outdir, PICTURE))
