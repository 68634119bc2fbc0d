"""A graph on a page: places, facts and colours of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy_tools.pages.colours import NUM_COLOURS


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A box.

    Parameters
    ----------
    title, subtitle : str
        Its two lines; both can be searched.
    x, y : float
        Its centre.
    width, height : float
    facts : sequence of (str, str)
        Facts shown when it is selected.
    """

    title: str
    subtitle: str
    x: float
    y: float
    width: float
    height: float
    facts: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An arrow from one node to another.

    Parameters
    ----------
    source, target : int
        Numbers of nodes.
    points : sequence of (float, float)
        Corners of its way, both ends included; a straight line if there are none.
    """

    source: int
    target: int
    points: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True)
class NodeColours:
    """A way to colour nodes: by what class they are of, or by how much they have of something.

    Parameters
    ----------
    name : str
    classes : sequence of str
        Of each node; empty if it is coloured by amount.
    amounts : sequence of (float or None)
        Of each node, not negative; None where it is not known.
    texts : sequence of str
        The amounts for people.
    """

    name: str
    classes: Sequence[str] = ()
    amounts: Sequence[float | None] = ()
    texts: Sequence[str] = ()

    def data(self) -> dict[str, object]:
        """Return the data of the page's program."""
        if self.classes:
            names = list(dict.fromkeys(self.classes))
            order = {name: number for number, name in enumerate(names)}
            return {
                "name": self.name,
                "names": names,
                "colours": [number % NUM_COLOURS for number in range(len(names))],
                "of": [order[name] for name in self.classes],
            }
        known = [amount for amount in self.amounts if amount is not None]
        return {
            "name": self.name,
            "most": max(known, default=0.0),
            "of": [None if a is None else float(f"{a:.6g}") for a in self.amounts],
            "texts": list(self.texts),
        }


@dataclass(frozen=True)
class GraphView:
    """A graph that can be zoomed, moved, searched and coloured.

    Parameters
    ----------
    caption : str
    nodes : sequence of GraphNode
    edges : sequence of GraphEdge
    colourings : sequence of NodeColours
        At least one; the first is shown at first.
    """

    template: ClassVar[str] = "graph"
    caption: str
    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge]
    colourings: Sequence[NodeColours]

    @cached_property
    def data(self) -> dict[str, object]:
        """Return the data of the page's program: lists by node, and names of facts once."""
        names = list(dict.fromkeys(name for node in self.nodes for name, _ in node.facts))
        order = {name: number for number, name in enumerate(names)}
        return {
            "titles": [node.title for node in self.nodes],
            "subtitles": [node.subtitle for node in self.nodes],
            "boxes": [
                [round(number, 1) for number in (node.x, node.y, node.width, node.height)]
                for node in self.nodes
            ],
            "factNames": names,
            "facts": [[[order[name], text] for name, text in node.facts] for node in self.nodes],
            "edges": [
                [edge.source, edge.target, [round(c, 1) for point in edge.points for c in point]]
                for edge in self.edges
            ],
            "colourings": [colouring.data() for colouring in self.colourings],
        }
