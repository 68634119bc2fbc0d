"""Choices between two states per layer at the least cost, as cuts of a network of flows."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

_SOURCE, _SINK = "source", "sink"


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a choice if any of some layers is chosen and any of others is not."""

    weight: int
    # `chosen` and `other`: an empty one stands for something that is always so.
    chosen: tuple[Hashable, ...]
    other: tuple[Hashable, ...]

    def applies(self, chosen: frozenset[Hashable]) -> bool:
        """Return whether a choice has to pay."""
        pays = not self.chosen or not chosen.isdisjoint(self.chosen)
        return pays and (not self.other or not chosen.issuperset(self.other))


def cheapest(costs: Sequence[Cost]) -> frozenset[Hashable]:
    """The layers to choose so that the sum of all costs is the least that is possible.

    References
    ----------
    Kolmogorov and Zabih, "What Energy Functions Can Be Minimized via Graph Cuts?", 2004; Edmonds
    and Karp, "Theoretical Improvements in Algorithmic Efficiency for Network Flow Problems", 1972.
    """
    room: defaultdict[Hashable, dict[Hashable, float]] = defaultdict(dict)

    def join(start: Hashable, end: Hashable, capacity: float) -> None:
        room[start][end] = room[start].get(end, 0) + capacity
        # The way back is there from the beginning, so that later paths can undo flow.
        room[end].setdefault(start, 0)

    for index, cost in enumerate(costs):
        start: Hashable = ("any", index) if cost.chosen else _SOURCE
        end: Hashable = ("all", index) if cost.other else _SINK
        for layer in cost.chosen:
            # Uncuttable edges tie a group to its node: one chosen layer is enough to pay, once.
            join(layer, start, float("inf"))
        join(start, end, cost.weight)
        for layer in cost.other:
            join(end, layer, float("inf"))
    while (path := _shortest_path(room)) is not None:
        flow = min(room[start][end] for start, end in path)
        for start, end in path:
            room[start][end] -= flow
            room[end][start] += flow
    layers = frozenset(layer for cost in costs for layer in (*cost.chosen, *cost.other))
    # With no path left, the nodes within reach of the source are one side of a cheapest cut.
    return layers.intersection(_reached(room))


def _reached(room: dict[Hashable, dict[Hashable, float]]) -> dict[Hashable, Hashable]:
    """Return the room that can be reached from the source, with the way to it."""
    reached: dict[Hashable, Hashable] = {_SOURCE: None}
    waiting = deque([_SOURCE])
    while waiting:
        start = waiting.popleft()
        for end, capacity in room.get(start, {}).items():
            if capacity > 0 and end not in reached:
                reached[end] = start
                waiting.append(end)  # type: ignore[arg-type]  # nodes are of any kind
    return reached


def _shortest_path(
    room: dict[Hashable, dict[Hashable, float]],
) -> list[tuple[Hashable, Hashable]] | None:
    """The edges of a shortest way from the source to the sink; None if there is none left."""
    reached = _reached(room)
    if _SINK not in reached:
        return None
    path: list[tuple[Hashable, Hashable]] = []
    end: Hashable = _SINK
    while end != _SOURCE:
        path.append((reached[end], end))
        end = reached[end]
    return path


def total(costs: Iterable[Cost], chosen: frozenset[Hashable]) -> tuple[int, int]:
    """The sum of what a choice pays, and how many costs that are."""
    paid = [cost.weight for cost in costs if cost.applies(chosen)]
    return sum(paid), len(paid)
