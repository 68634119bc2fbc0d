"""Draws pictures of graphs: as SVG by a layout of armpy's own, and as text for Graphviz."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from armpy_tools.pages.layout import lay_out
from armpy_tools.report.picture import Box, Picture

_COLOURS = ("#cfe2ff", "#d1f2d9", "#ffe5b4", "#f3d1f0", "#c9f0ef", "#e4dcc8")
"""Of backends, in the order in which they come."""

_FIXED = {
    "input": "#ffffff",
    "output": "#ffffff",
    "constant": "#eeeeee",
    "dropped": "#eeeeee",
    "state": "#fff7c2",
    "unplaced": "#f5f5f5",
    "unsupported": "#ffb3ab",
}
"""Of what no backend runs."""

_EDGES = ("input", "output")

_CHARACTER, _LINE, _PADDING, _MARGIN, _TITLE = 6.6, 16.0, 10.0, 24.0, 28.0
_MOST_CHARACTERS = 40


def colours_of(drawn: Iterable[Picture]) -> dict[str, str]:
    """A colour for each kind of box."""
    kinds = dict.fromkeys(box.kind for picture in drawn for box in picture.boxes)
    backends = [kind for kind in kinds if kind not in _FIXED]
    chosen = {kind: _COLOURS[i % len(_COLOURS)] for i, kind in enumerate(backends)}
    return {kind: chosen.get(kind) or _FIXED[kind] for kind in kinds}


def to_svg(drawn: Sequence[Picture], title: str) -> str:
    """A picture of graphs, from top to bottom, one beside the other; a file of its own.

    Parameters
    ----------
    drawn : sequence of Picture
    title : str
        A description, for people who do not see it.
    """
    colours = colours_of(drawn)
    parts: list[str] = []
    left, bottom = _MARGIN, 0.0
    for picture in drawn:
        sizes = [_size(box) for box in picture.boxes]
        layout = lay_out(sizes, [(arrow.source, arrow.target) for arrow in picture.arrows])
        boxes = list(zip(layout.centres, sizes, strict=True))
        least = min((x - w / 2 for (x, _), (w, _) in boxes), default=0.0)
        most = max((x + w / 2 for (x, _), (w, _) in boxes), default=0.0)
        x, y = left - least, _MARGIN + (_TITLE if picture.title else 0.0)
        if picture.title:
            parts.append(
                f'<text class="t" x="{left:.0f}" y="{_MARGIN:.0f}">{_text(picture.title)}</text>'
            )
        parts.append(f'<g transform="translate({x:.1f} {y:.1f})">')
        parts += [
            _arrow(picture, number, layout.centres, layout.ways[number], sizes)
            for number in range(len(picture.arrows))
        ]
        parts += [
            _box(box, *place, colours[box.kind])
            for box, place in zip(picture.boxes, boxes, strict=True)
        ]
        parts.append("</g>")
        left += max(most - least, len(picture.title) * _CHARACTER * 1.2) + 2 * _MARGIN
        bottom = max(bottom, y + max((c[1] + s[1] / 2 for c, s in boxes), default=0.0))
    legend, legend_width = _legend(colours, bottom + _MARGIN)
    width, height = max(left, legend_width), bottom + 3 * _MARGIN
    return "\n".join([*_head(title, width, height), *parts, *legend, "</svg>", ""])


def _head(title: str, width: float, height: float) -> list[str]:
    """Return the head of a file."""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{_text(title)}</title>",
        "<style>text{font:12px sans-serif;text-anchor:middle;fill:#1c1c1c}.o{font-weight:bold}"
        ".t,.l{text-anchor:start}.t{font-weight:bold}.s{font-size:10px;fill:#444}"
        "rect{stroke:#555}path{fill:none;stroke:#777}</style>",
        '<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" style="fill:#777"/>'
        "</marker></defs>",
        f'<rect width="{width:.0f}" height="{height:.0f}" style="fill:#fff;stroke:none"/>',
    ]


def _size(box: Box) -> tuple[float, float]:
    """Width and height of a box."""
    longest = max(len(_shown(line)) for line in box.lines)
    return longest * _CHARACTER + 2 * _PADDING, len(box.lines) * _LINE + _PADDING


def _shown(line: str) -> str:
    """A line without its middle, if it is long."""
    if len(line) <= _MOST_CHARACTERS:
        return line
    return f"{line[: _MOST_CHARACTERS // 3]}...{line[-2 * _MOST_CHARACTERS // 3 + 3 :]}"


def _box(box: Box, centre: tuple[float, float], size: tuple[float, float], colour: str) -> str:
    """A box with its lines."""
    (x, y), (width, height) = centre, size
    first = y - (len(box.lines) - 1) * _LINE / 2 + 4
    styles = ['class="o" ', *[""] * len(box.lines)]
    lines = "".join(
        f'<text {style}x="{x:.1f}" y="{first + number * _LINE:.1f}">{_text(_shown(line))}</text>'
        for number, (style, line) in enumerate(zip(styles, box.lines, strict=False))
    )
    return (
        f'<g><title>{_text(box.tip)}</title><rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" '
        f'width="{width:.1f}" height="{height:.1f}" rx="5" fill="{colour}"/>{lines}</g>'
    )


def _arrow(
    picture: Picture,
    number: int,
    centres: Sequence[tuple[float, float]],
    way: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
) -> str:
    """An arrow from the bottom of a box to the top of another one, with its shape."""
    arrow = picture.arrows[number]
    (x0, y0), (x1, y1) = centres[arrow.source], centres[arrow.target]
    start, end = (x0, y0 + sizes[arrow.source][1] / 2), (x1, y1 - sizes[arrow.target][1] / 2)
    points = "L".join(f"{x:.1f} {y:.1f}" for x, y in (start, *way, end))
    before = way[-1] if way else start
    middle = (before[0] + end[0]) / 2 + 3, (before[1] + end[1]) / 2 + 4
    label = f'<text class="l s" x="{middle[0]:.1f}" y="{middle[1]:.1f}">{_text(arrow.label)}</text>'
    return f'<path marker-end="url(#a)" d="M{points}"/>{label}'


def _legend(colours: dict[str, str], y: float) -> tuple[list[str], float]:
    """Return the legend of colours and widths."""
    parts, x = [], _MARGIN
    for kind, colour in colours.items():
        if kind in _EDGES:
            continue
        parts.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="14" height="14" fill="{colour}"/>')
        parts.append(f'<text class="l" x="{x + 20:.0f}" y="{y + 11:.0f}">{_text(kind)}</text>')
        x += 20 + len(kind) * _CHARACTER + _MARGIN
    return parts, x


def _text(text: str) -> str:
    """Text that is not markup, without characters that XML does not have."""
    printable = "".join(
        c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
    return escape(printable)


def to_dot(drawn: Sequence[Picture]) -> str:
    """The same for Graphviz."""
    colours = colours_of(drawn)
    lines = [
        "digraph armpy {",
        '    node [shape=box style="rounded,filled" fontname="sans-serif" fontsize=11];',
        '    edge [fontname="sans-serif" fontsize=9 color="#777777"];',
    ]
    for place, picture in enumerate(drawn):
        inner = [
            f"    n{place}_{number} [label={_quoted(chr(10).join(map(_shown, box.lines)))} "
            f"fillcolor={_quoted(colours[box.kind])} tooltip={_quoted(box.tip)}];"
            for number, box in enumerate(picture.boxes)
        ]
        inner += [
            f"    n{place}_{arrow.source} -> n{place}_{arrow.target} "
            f"[label={_quoted(arrow.label)}];"
            for arrow in picture.arrows
        ]
        if picture.title:
            title = f'    label={_quoted(picture.title)}; fontname="sans-serif";'
            inner = [f"    subgraph cluster_{place} {{", title, *inner, "    }"]
        lines += inner
    lines += ["    subgraph cluster_legend {", '    label="colours"; fontname="sans-serif";']
    lines += [
        f"    l{number} [label={_quoted(kind)} fillcolor={_quoted(colour)}];"
        for number, (kind, colour) in enumerate(colours.items())
        if kind not in _EDGES
    ]
    return "\n".join([*lines, "    }", "}", ""])


def _quoted(text: str) -> str:
    """Text between quotes, as Graphviz reads it."""
    printable = "".join(
        c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
    return '"' + printable.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
