"""Pages of documentation, their fenced blocks, and the marks of blocks that are not run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*) -->\n+)?"
    r"^(?P<indent> *)```(?P<kind>\{\w+\}|\w*)(?P<settings>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.M | re.S,
)
_MARK = re.compile(r"(?P<verb>not run|run nightly|run where installed): (?P<what>.+)")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    kind: str  # the fence's language; in braces, a directive of the documentation site
    settings: dict[str, str]  # what follows it: ``title=FILE``, ``exit=CODE``, ``output``
    text: str
    line: int  # of the fence, from 1
    not_run: str = ""  # why it is not run, by the comment in front of it; or empty
    nightly: str = ""  # why it is run in nightly tests alone, likewise
    # Modules without which it is left out, as a comment in front of it says
    needs: tuple[str, ...] = ()


def pages() -> list[Path]:
    """All pages of the project."""
    folders = ("docs", "backends", "examples", "extensions")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.md")]
    return sorted(path for path in [*ROOT.glob("*.md"), *paths] if "_build" not in path.parts)


def blocks(page: Path) -> list[Block]:
    """A page's blocks in order."""
    text = page.read_text("utf-8")
    page_blocks = []
    for match in _FENCE.finditer(text):
        words = (word.partition("=") for word in match["settings"].split())
        settings = {name: value for name, _, value in words}
        line = text.count("\n", 0, match.start("kind")) + 1
        body = re.sub(f"^{match['indent']}", "", match["text"], flags=re.M)
        mark = _MARK.fullmatch(match["mark"] or "")
        verb, condition = mark.groups() if mark else ("", "")
        not_run = condition if verb == "not run" else ""
        nightly = condition if verb == "run nightly" else ""
        needs = tuple(condition.split(", ")) if verb == "run where installed" else ()
        page_blocks.append(Block(match["kind"], settings, body, line, not_run, nightly, needs))
    return page_blocks
