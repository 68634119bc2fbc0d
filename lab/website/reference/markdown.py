"""Markdown from docstrings and tables of names."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence

WIDTH = 100
MOST_LINES = 5
_HEADING = re.compile(r"^(\w+(?: \w+)*)\n-+$\n?", re.M)


def summary(docstring: str | None) -> str:
    """The first paragraph of a docstring, as one line."""
    first = inspect.cleandoc(docstring or "").replace("``", "`").partition("\n\n")[0]
    return " ".join(first.split())


def prose(docstring: str | None) -> str:
    """A numpydoc docstring as Markdown without headings: the text, its notes, its references.

    Sections of parameters, results and errors are left out: the API pages of the site have them.
    """
    text = inspect.cleandoc(docstring or "").replace("``", "`")
    opening, *rest = _HEADING.split(text)
    parts = [opening.strip()]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        if title == "Notes":
            parts.append(body.strip())
        elif title == "References":
            parts.append(f"References: {body.strip()}")
    return "\n\n".join(" ".join(part.split()) for text in parts for part in text.split("\n\n"))


def field_texts(kind: type) -> dict[str, str]:
    """Texts of a class's fields by name: the strings that stand below them in its source."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    base = kind.__base__
    texts = field_texts(base) if dataclasses.is_dataclass(base) and isinstance(base, type) else {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(ast.Constant(str() as words)):
                texts[name] = " ".join(words.replace("``", "`").split())
    return texts


def wrap(page: str) -> str:
    """Break the long lines of a page's prose; tables, headings and comments keep theirs.

    Paragraphs of more than five lines are divided between sentences.
    """
    lines: list[str] = []
    for line in "\n".join(map(_divided, page.splitlines())).splitlines():
        if len(line) <= WIDTH or line.startswith(("|", "#", "<")):
            lines.append(line)
            continue
        indent = "  " if line.startswith("- ") else ""
        lines += textwrap.wrap(
            line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    return "\n".join(lines) + "\n"


def _divided(paragraph: str) -> str:
    """A paragraph, or two or more of similar length where it has too many lines."""
    count = -(-len(textwrap.wrap(paragraph, WIDTH, break_on_hyphens=False)) // MOST_LINES)
    if count < 2 or paragraph.startswith(("|", "#", "<", "- ")):
        return paragraph
    parts = [""]
    for sentence in re.split(r"(?<=[.]) (?=[A-Z`])", paragraph):
        if parts[-1] and len(parts[-1]) + len(sentence) / 2 > len(paragraph) / count:
            parts.append("")
        parts[-1] = f"{parts[-1]} {sentence}".strip()
    return "\n\n".join(parts)


def in_groups(
    names: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> tuple[list[str], list[str]]:
    """Words for groups of names, and the names that are in none of these groups.

    A group counts if at most a quarter of it is absent; the word says which.
    """
    words, rest = list[str](), list(names)
    for word, group in groups.items():
        absent = [name for name in group if name not in rest]
        if len(absent) <= len(group) // 4:
            words.append(word + f" but {', '.join(absent)}" * bool(absent))
            rest = [name for name in rest if name not in group]
    return words, rest
