"""Makes a page of its parts: one file with its style and programs, which loads nothing."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from armpy.core.units import printable
from armpy_tools.pages.parts import Section

TEMPLATES = Path(__file__).parent / "templates"


def render_page(
    title: str,
    sections: Sequence[Section],
    about: str = "",
) -> str:
    """The text of a page.

    Parameters
    ----------
    title : str
    sections : sequence of Section
        Those without parts are left out.
    about : str
        A line below the title.

    Returns
    -------
    str
        HTML that works in any browser without network: style and programs are in it, and its
        content security policy allows nothing else.
    """
    style, program = _source("page.css"), _source("page.js") + _source("graph.js")
    template = _environment().get_template("page.html")
    text: str = template.render(
        title=title,
        about=about,
        sections=[section for section in sections if section.parts],
        style=style,
        style_hash=_hash(style),
        program=program,
        program_hash=_hash(program),
    )
    return text


def write_page(
    path: str | os.PathLike[str],
    title: str,
    sections: Sequence[Section],
    about: str = "",
) -> None:
    """Write a page to a file; parameters as of `render_page`, errors as of `Path.write_text`."""
    Path(path).write_text(render_page(title, sections, about), "utf-8")


@cache
def _source(name: str) -> str:
    """A style or a program, as it stands in the page."""
    return f"\n{(TEMPLATES / name).read_text('utf-8').strip()}\n"


def _hash(source: str) -> str:
    """Return the hash of a source in a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


@cache
def _environment() -> Environment:
    """The template engine."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}
    environment.filters["visible"] = _visible_data
    environment.filters["breakable"] = _breakable
    return environment


_BREAKS = re.compile(r"(?<=[/;+])|(?<=[_.:])(?=[^\W\d])")
"""Where a long name may go on in the next line."""


_UNIT_GAP = re.compile(r"(?<=\d) (?=(?:[µm]?s|[KMG]iB|[BkMG]|%)(?!\w))")
"""The space between a number and its unit, at which no line ends."""


def _breakable(text: object) -> Any:  # Any: markup, which escapes the parts
    """Markup of a text that breaks between the words of a name rather than within them."""
    return Markup("<wbr>").join(
        _BREAKS.split(_UNIT_GAP.sub("\N{NO-BREAK SPACE}", printable(str(text))))
    )


def _visible(value: Any) -> Any:  # Any: whatever a template writes
    """Text whose control characters are escaped; markup stays as it is."""
    return printable(value) if type(value) is str else value


def _visible_data(value: Any) -> Any:  # Any: what JSON can hold
    """The same for all texts within lists and dictionaries."""
    if isinstance(value, dict):
        return {key: _visible_data(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_visible_data(item) for item in value]
    return _visible(value)
