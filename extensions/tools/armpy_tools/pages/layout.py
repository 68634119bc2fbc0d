"""Layered layout of a graph: rows by longest paths, few crossings, straight edges.

References
----------
Sugiyama, Tagawa and Toda, "Methods for Visual Understanding of Hierarchical System Structures",
1981: rows, bends of long edges as nodes, orders by barycentres. Positions within a row are those of
least squares that keep order and gaps, by pooling adjacent violators.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from armpy.core.dataclass import dataclass

ROW = 84.0
"""From one row to the next."""
GAP = 28.0
"""Between neighbours."""
BEND_WIDTH = 8.0
NUM_SWEEPS = 8
MOST_BENDS_EACH = 10
"""Bends, for each node on average, up to which long edges have them; the longest go without."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Layout:
    """Places of nodes and edges.

    Parameters
    ----------
    centres : list of (float, float)
        Of each node.
    ways : list of list of (float, float)
        Of each edge, the bends between its ends.
    """

    centres: list[Point]
    ways: list[list[Point]]


def lay_out(sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]]) -> Layout:
    """Lay out a graph from top to bottom.

    Parameters
    ----------
    sizes : sequence of (float, float)
        Width and height of each node, in an order in which they can run.
    edges : sequence of (int, int)
        From and to; those that go backwards in that order are drawn, but do not decide on rows.

    Returns
    -------
    Layout

    Notes
    -----
    Time in proportion to nodes and edges, but for sorting of rows.
    """
    forward = [(source, target) for source, target in edges if source < target]
    rows = _rows_of(len(sizes), forward)
    grid = _Grid([width for width, _ in sizes], rows)
    allowed = MOST_BENDS_EACH * len(sizes) + 100
    bends: dict[int, list[int]] = {}
    order = sorted(range(len(edges)), key=lambda n: abs(rows[edges[n][1]] - rows[edges[n][0]]))
    for number in order:
        source, target = edges[number]
        length = rows[target] - rows[source] - 1
        if length < 0:
            continue
        allowed -= length
        bends[number] = grid.join(source, target, with_bends=allowed >= 0)
    grid.arrange()
    heights = _row_heights(sizes, rows)
    centres = [(grid.x[node], heights[rows[node]]) for node in range(len(sizes))]
    ways = [
        [(grid.x[bend], heights[grid.rows[bend]]) for bend in bends.get(number, ())]
        for number in range(len(edges))
    ]
    return Layout(centres, ways)


def _rows_of(num_nodes: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Row of each node: after all that it reads; what reads nothing, just before its reader."""
    rows = [0] * num_nodes
    inputs: list[list[int]] = [[] for _ in range(num_nodes)]
    outputs: list[list[int]] = [[] for _ in range(num_nodes)]
    for source, target in edges:
        inputs[target].append(source)
        outputs[source].append(target)
    for node in range(num_nodes):
        rows[node] = max((rows[source] + 1 for source in inputs[node]), default=0)
    for node in range(num_nodes):
        if not inputs[node] and outputs[node]:
            rows[node] = max(0, min(rows[target] for target in outputs[node]) - 1)
    return rows


def _row_heights(sizes: Sequence[tuple[float, float]], rows: Sequence[int]) -> list[float]:
    """The middle of each row; a row is as high as its highest node asks for."""
    highest = [0.0] * (max(rows, default=0) + 1)
    for (_, height), row in zip(sizes, rows, strict=True):
        highest[row] = max(highest[row], height)
    middles, y = [], 0.0
    for height in highest:
        step = max(ROW, height + ROW / 2)
        middles.append(y + step / 2)
        y += step
    return middles


@dataclass(slots=True)
class _Grid:
    """Rows of nodes and bends, and where these lie across."""

    widths: list[float]
    rows: list[int]
    above: list[list[int]] = field(init=False)
    below: list[list[int]] = field(init=False)
    x: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.widths, self.rows = list(self.widths), list(self.rows)
        self.above = [[] for _ in self.widths]
        self.below = [[] for _ in self.widths]
        self.x = []

    def join(self, source: int, target: int, *, with_bends: bool) -> list[int]:
        """Add an edge; the numbers of its bends."""
        bends = []
        last = source
        for row in range(self.rows[source] + 1, self.rows[target]) if with_bends else ():
            bend = len(self.widths)
            self.widths.append(BEND_WIDTH)
            self.rows.append(row)
            self.above.append([])
            self.below.append([])
            self._link(last, bend)
            bends.append(bend)
            last = bend
        self._link(last, target)
        return bends

    def _link(self, upper: int, lower: int) -> None:
        """Note that one is above the other."""
        self.below[upper].append(lower)
        self.above[lower].append(upper)

    def arrange(self) -> None:
        """Put rows into an order, and their members to their places."""
        members: list[list[int]] = [[] for _ in range(max(self.rows, default=0) + 1)]
        for node, number in enumerate(self.rows):
            members[number].append(node)
        place = [0.0] * len(self.rows)
        for row in members:
            _number(row, place)
        for sweep in range(NUM_SWEEPS):
            is_down = sweep % 2 == 0
            near = self.above if is_down else self.below
            for row in members if is_down else reversed(members):
                means = {node: _mean([place[n] for n in near[node]], place[node]) for node in row}
                row.sort(key=means.__getitem__)
                _number(row, place)
        self.x = [0.0] * len(self.rows)
        for row in members:
            self._settle(row, [0.0] * len(row))
        for sweep in range(NUM_SWEEPS):
            is_down = sweep % 2 == 0
            near = self.above if is_down else self.below
            for row in members if is_down else reversed(members):
                # The last sweeps look both ways, so that nodes lie between their neighbours.
                wanted = [self._wanted(node, near, both=sweep >= NUM_SWEEPS - 2) for node in row]
                self._settle(row, wanted)

    def _wanted(self, node: int, near: Sequence[Sequence[int]], *, both: bool) -> float:
        """Return where a node would lie if it were alone in its row."""
        around = [*self.above[node], *self.below[node]] if both else near[node]
        return _mean([self.x[n] for n in around], self.x[node])

    def _settle(self, row: Sequence[int], wanted: Sequence[float]) -> None:
        """Place a row as near as possible to where its members want to lie."""
        offsets, offset = [], 0.0
        for number, node in enumerate(row):
            if number:
                before = row[number - 1]
                offset += (self.widths[before] + self.widths[node]) / 2 + GAP
            offsets.append(offset)
        moved = _pooled([at - offset for at, offset in zip(wanted, offsets, strict=True)])
        for node, offset, at in zip(row, offsets, moved, strict=True):
            self.x[node] = at + offset


def _number(row: Sequence[int], place: list[float]) -> None:
    """Number the members of a row around its middle."""
    for number, node in enumerate(row):
        place[node] = number - (len(row) - 1) / 2


def _pooled(numbers: Sequence[float]) -> list[float]:
    """The numbers of least squares to some others that do not fall."""
    blocks: list[tuple[float, int]] = []
    for number in numbers:
        total, count = number, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            before, num_before = blocks.pop()
            total, count = total + before, count + num_before
        blocks.append((total, count))
    return [total / count for total, count in blocks for _ in range(count)]


def _mean(numbers: Sequence[float], default: float) -> float:
    """The mean; the default if there is nothing."""
    return sum(numbers) / len(numbers) if numbers else default
