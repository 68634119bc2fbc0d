"""Grey pictures and bars as characters, for terminals."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.text import Text

from armpy.cli.printer import printable

Piece: TypeAlias = tuple[str, str]
"""Text, and its style as rich understands it; empty for none."""

Line: TypeAlias = Sequence[Piece]

_INK = 96
"""Of 255: what is at least so bright is ink where there are no colours."""

_BLOCKS = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}


def has_colours() -> bool:
    """Whether stdout shows colours: a terminal does, unless ``NO_COLOR`` is set."""
    if os.environ.get("NO_COLOR"):
        return False
    forced = bool(os.environ.get("FORCE_COLOR"))
    is_dumb = os.environ.get("TERM") == "dumb"
    return sys.stdout is not None and (forced or (sys.stdout.isatty() and not is_dumb))


def has_blocks() -> bool:
    """Whether stdout's encoding has the characters of pictures and bars."""
    try:
        "▀▄█▏".encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def half_blocks(pixels: npt.NDArray[np.uint8], *, coloured: bool, blocks: bool) -> list[Line]:
    """A picture whose characters are two pixels each, one above the other.

    Parameters
    ----------
    pixels : ndarray, uint8, shape (2 N, W)
        0 is black.
    coloured : bool
        Whether shades of grey can be shown; else there is ink, or none.
    blocks : bool
        Whether there are characters for halves; else a ``#`` is ink in either of them.

    Returns
    -------
    list of N lines, W characters wide
    """
    rows = zip(pixels[::2], pixels[1::2], strict=True)
    if coloured and blocks:
        return [[("▀", f"{_grey(a)} on {_grey(b)}") for a, b in zip(*r, strict=True)] for r in rows]
    lines: list[Line] = []
    for upper, lower in rows:
        marks = [(bool(a >= _INK), bool(b >= _INK)) for a, b in zip(upper, lower, strict=True)]
        text = "".join(_BLOCKS[m] if blocks else "#" if any(m) else "." for m in marks)
        lines.append([(text, "")])
    return lines


def bar(share: float, width: int, *, blocks: bool) -> str:
    """A bar of so many characters at most for a share of 0 to 1, rounded to the nearest."""
    count = round(min(max(share, 0.0), 1.0) * width)
    return ("█" if blocks else "#") * count


def beside(left: Sequence[Line], right: Sequence[Line], gap: int = 4) -> list[Line]:
    """Lines next to others; those at the left are all as wide as the first."""
    width = sum(len(text) for text, _ in left[0]) if left else 0
    height = max(len(left), len(right))
    top = (height - len(right)) // 2
    lines: list[Line] = []
    for number in range(height):
        one = [*left[number]] if number < len(left) else [(" " * width, "")]
        other = number - top
        more = [(" " * gap, ""), *right[other]] if 0 <= other < len(right) else []
        lines.append([*one, *more])
    return lines


def print_lines(lines: Sequence[Line], *, coloured: bool) -> None:
    """Print lines, styled where there are colours."""
    if not coloured:
        for line in lines:
            sys.stdout.write(printable("".join(text for text, _ in line)).rstrip() + "\n")
        return
    console = Console(highlight=False, markup=False, emoji=False)
    for line in lines:
        joined = Text.assemble(*[(printable(text), style) for text, style in line])
        console.print(joined, soft_wrap=True)


def _grey(value: np.uint8) -> str:
    """A shade, for rich."""
    return f"#{int(value):02x}{int(value):02x}{int(value):02x}"
