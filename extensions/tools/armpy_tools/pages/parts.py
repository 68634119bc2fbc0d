"""Parts of a page: texts, facts, tables and charts, as data.

Notes
-----
The parts of a page are its content; the templates decide on its appearance. All texts are plain:
what a model's file calls its layers cannot become markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from itertools import cycle
from typing import TYPE_CHECKING, ClassVar, TypeAlias, Union

from armpy.core.dataclass import dataclass
from armpy_tools.pages.colours import NUM_COLOURS

if TYPE_CHECKING:
    from armpy_tools.pages.graph import GraphView
    from armpy_tools.pages.line_chart import Lines


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph.

    Parameters
    ----------
    text : str
    kind : {"", "lead", "note", "good", "bad"}
        Whether it stands out, and how; a lead is the page in a sentence. Also several of them.
    """

    template: ClassVar[str] = "text"
    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Cautions:
    """A box that lists everything that makes the figures of a page less certain.

    Parameters
    ----------
    lines : sequence of str
        Whole sentences, the most important first; there is no box without them.
    """

    template: ClassVar[str] = "cautions"
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and their values.

    Parameters
    ----------
    facts : sequence of (str, str)
    """

    template: ClassVar[str] = "facts"
    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Mark:
    """Cell of a table that stands out.

    Parameters
    ----------
    text : object
    kind : {"good", "bad", "dim"}
    """

    text: object
    kind: str

    def __str__(self) -> str:
        return str(self.text)


@dataclass(frozen=True, slots=True)
class TwoLines:
    """Cell of a table with a second, smaller line.

    Parameters
    ----------
    text, below : str
    """

    text: str
    below: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Table:
    """A table, which the reader can sort by any column.

    Parameters
    ----------
    caption : str
        What it shows.
    columns : sequence of str
        Headings; those that end in ``>`` have their cells, which are numbers, at the right.
    rows : sequence of sequence
        Cells become text by `str`.
    """

    template: ClassVar[str] = "table"
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]

    @property
    def headings(self) -> list[tuple[str, bool]]:
        """Each column's heading, and whether it holds numbers."""
        return [(column.rstrip(">"), column.endswith(">")) for column in self.columns]

    @property
    def cells(self) -> list[list[tuple[str, str, str]]]:
        """Text, second line and classes of each cell; the class ``n`` is that of numbers."""
        sides = ["n" if is_number else "" for _, is_number in self.headings]
        return [
            [
                (
                    str(cell),
                    cell.below if isinstance(cell, TwoLines) else "",
                    f"{side} {cell.kind}".strip() if isinstance(cell, Mark) else side,
                )
                for cell, side in zip(row, sides, strict=True)
            ]
            for row in self.rows
        ]


@dataclass(frozen=True, slots=True)
class Bar:
    """One line of a bar chart.

    Parameters
    ----------
    name : str
    value : float
        Not negative; how long the bar is.
    text : str
        The value for people; `value` itself if it is empty.
    group : str
        Bars of one group have one colour; the legend names the groups.
    interval : (float, float), optional
        Between which values the true one is likely to be.
    is_grey : bool
        In a `Stack`, whether it is grey.
    inside : sequence of Bar
        In `Bars`, the bars that make it up, which can be folded out below it.
    """

    name: str
    value: float
    text: str = ""
    group: str = ""
    interval: tuple[float, float] | None = None
    is_grey: bool = False
    inside: Sequence[Bar] = ()


@dataclass(frozen=True)
class Bars:
    """A bar chart, which is a table as well.

    Parameters
    ----------
    caption : str
    bars : sequence of Bar
    label, value_label : str
        Headings of the names and of the values.
    shown : int
        How many are seen at first; the others can be folded out.
    """

    template: ClassVar[str] = "bars"
    caption: str
    bars: Sequence[Bar]
    label: str = "name"
    value_label: str = "value"
    shown: int = 30

    @cached_property
    def groups(self) -> list[str]:
        """The groups that there are, in order of appearance."""
        bars = [inner for bar in self.bars for inner in (bar, *bar.inside)]
        return list(dict.fromkeys(bar.group for bar in bars if bar.group))

    @property
    def data(self) -> dict[str, object]:
        """Return the data of the page's program: the bars that can be folded out.

        Notes
        -----
        A bar is its name, text, number of its group (-1 without one), place of its end in percent,
        ends of its interval, and the bars inside it; empty ends of this list are left out.
        """
        return {
            "groups": self.groups,
            "inside": [self._rows(bar.inside) for bar in self.bars[: self.shown] if bar.inside],
            "more": self._rows(self.bars[self.shown :]),
        }

    def _rows(self, bars: Sequence[Bar]) -> list[list[object]]:
        """Bars as `data` has them."""
        rows: list[list[object]] = []
        for bar in bars:
            group = self.groups.index(bar.group) if bar.group else -1
            ends = [self.percent(end) for end in bar.interval or ()]
            row: list[object] = [bar.name, self.text(bar), group, self.percent(bar.value)]
            optional = [ends, self._rows(bar.inside)]
            while optional and not optional[-1]:
                optional.pop()
            rows.append([*row, *optional])
        return rows

    def text(self, bar: Bar) -> str:
        """Return the value of a bar for people."""
        return bar.text or f"{bar.value:.4g}"

    def colour(self, bar: Bar) -> int:
        """Number of a bar's colour."""
        return self.groups.index(bar.group) % NUM_COLOURS if bar.group else 0

    def percent(self, value: float) -> float:
        """Return how far a value is along the longest bar, in percent."""
        longest = self._longest
        return round(100 * min(max(value / longest, 0.0), 1.0), 3) if longest > 0 else 0.0

    @cached_property
    def _longest(self) -> float:
        """The largest value, intervals included."""
        return max((max(bar.value, *(bar.interval or (0.0,))) for bar in self.bars), default=0.0)


@dataclass(frozen=True)
class Stack:
    """Parts of a whole as one bar, with a legend that gives each part's share.

    Parameters
    ----------
    caption : str
    parts : sequence of Bar
        Their values make up the whole.
    """

    template: ClassVar[str] = "stack"
    caption: str
    parts: Sequence[Bar]

    @cached_property
    def whole(self) -> float:
        """All parts together."""
        return sum(part.value for part in self.parts)

    @property
    def slices(self) -> list[tuple[Bar, str, float, float]]:
        """Each part with its colour's class, where it begins and how long it is, in percent."""
        slices, start = [], 0.0
        colours = (f"c{number}" for number in cycle(range(NUM_COLOURS)))
        greys = cycle(("g0", "g1"))
        for part in self.parts:
            percent = 100 * part.value / self.whole if self.whole else 0.0
            colour = next(greys if part.is_grey else colours)
            slices.append((part, colour, round(start, 4), round(percent, 4)))
            start += percent
        return slices


@dataclass(frozen=True)
class Headline:
    """A question with its answer in large figures.

    Parameters
    ----------
    question : str
    figures : sequence of (str, str)
        Each figure with its meaning; several stand side by side.
    lines : sequence of str
        Further facts, the most important first.
    parts : sequence of Bar
        Parts of a whole, drawn as one bar below.
    """

    question: str
    figures: Sequence[tuple[str, str]]
    lines: Sequence[str] = ()
    parts: Sequence[Bar] = ()

    @property
    def stack(self) -> Stack:
        """The parts as a bar."""
        return Stack(self.question, self.parts)


@dataclass(frozen=True, slots=True)
class Headlines:
    """The questions that a page answers at first sight.

    Parameters
    ----------
    headlines : sequence of Headline
    """

    template: ClassVar[str] = "headlines"
    headlines: Sequence[Headline]


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """A cell of a `Matrix`.

    Parameters
    ----------
    kind : str
        One of the matrix's kinds; it has that one's colour.
    text : str
        A few characters.
    title : str
        The cell in words.
    lines : sequence of (str, str)
        What a click shows: each line with its subject.
    """

    kind: str
    text: str
    title: str
    lines: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Matrix:
    """A table of coloured cells; a click on a cell shows its lines.

    Parameters
    ----------
    caption : str
    label : str
        Heading of the rows.
    columns : sequence of str
    rows : sequence of (str, sequence of (MatrixCell or None))
        Each row with its cells, None for empty ones.
    kinds : sequence of (str, str)
        Kinds of cells, in the order of the legend, each with its colour's class: ``good``,
        ``part``, ``bad``, ``worse``, ``known``, ``other`` or ``grey``.
    """

    template: ClassVar[str] = "matrix"
    caption: str
    label: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[MatrixCell | None]]]
    kinds: Sequence[tuple[str, str]]

    @cached_property
    def colours(self) -> dict[str, str]:
        """The colour's class by kind."""
        return dict(self.kinds)

    @cached_property
    def legend(self) -> list[tuple[str, str]]:
        """The kinds that there are, with their colours."""
        there = {cell.kind for _, cells in self.rows for cell in cells if cell is not None}
        return [(kind, colour) for kind, colour in self.kinds if kind in there]

    @property
    def data(self) -> list[list[tuple[str, str]]]:
        """The lines of all cells, row by row."""
        return [[*cell.lines] for _, cells in self.rows for cell in cells if cell is not None]


@dataclass(frozen=True)
class Details:
    """Parts that are folded away until they are asked for.

    Parameters
    ----------
    summary : str
    parts : sequence of Part
    """

    template: ClassVar[str] = "details"
    summary: str
    parts: Sequence[Part]


Part: TypeAlias = Union[
    Text, Cautions, Facts, Headlines, Table, Bars, Stack, "Lines", Details, "GraphView", Matrix
]


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading, which the page's contents lead to.

    Parameters
    ----------
    title : str
    parts : sequence of Part
    """

    title: str
    parts: Sequence[Part] = field(default_factory=tuple)
