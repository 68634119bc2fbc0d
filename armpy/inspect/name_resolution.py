"""Resolution of layers to the operators of a file that they were made from, by their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from armpy.compiler import Placement, Refusal
from armpy.inspect.facts import ModelFacts

_ENDS = "/:"
"""What stands between a layer's own name and what a front-end has added to it."""


class Linker:
    """Finds the layers of a file that names of layers, programs or steps stand for.

    Parameters
    ----------
    names : sequence of (str, str, sequence of str)
        Per layer of the file: the graph that it is in, its name, and what its layers may be called.

    Notes
    -----
    Front-ends name a layer after the operator that it is made of, and additions follow
    a ``/``: ``conv_3``, ``conv_3/Pad``. Names survive every pass, and what a backend compiles has
    the names of its sources, joined by ``+``. Of two operators with one name the first is
    found.
    """

    def __init__(self, names: Sequence[tuple[str, str, Sequence[str]]]) -> None:
        self._places: dict[tuple[str, str], int] = {}
        self._anywhere: dict[str, int] = {}
        for place, (inside, name, others) in enumerate(names):
            for alias in others or (name,):
                self._places.setdefault((inside, alias), place)
                self._anywhere.setdefault(alias, place)

    def find(self, name: str, inside: str = "") -> int | None:
        """The file's layer that a layer of the network belongs to; None if there is none.

        Parameters
        ----------
        inside : str
            The graph that it is in; graphs that were written out are in others than the file says.
        """
        for start in _beginnings(name):
            place = self._places.get((inside, start))
            if place is not None:
                return place
        for start in _beginnings(name):
            place = self._anywhere.get(start)
            if place is not None:
                return place
        return None

    def find_all(self, names: Iterable[str], inside: str = "") -> tuple[int, ...]:
        """The file's layers that some names stand for, each once, in the file's order."""
        places = {self.find(name, inside) for name in names}
        return tuple(sorted(place for place in places if place is not None))


def _beginnings(name: str) -> Iterator[str]:
    """A name, and what stands before each of its separators, the longest first."""
    yield name
    for end in range(len(name) - 1, 0, -1):
        if name[end] in _ENDS:
            yield name[:end]


def linker_of(facts: ModelFacts) -> Linker:
    """The linker of a file's layers, for names of layers, programs and steps."""
    return Linker(
        [(layer.inside, layer.name, (layer.name, *layer.layer_names)) for layer in facts.layers]
    )


def with_file_names(placement: Placement, facts: ModelFacts) -> Placement:
    """A placement whose refusals are of the file's operators: ``ADD``, not ``ElementwiseBinary``.

    A layer that belongs to no operator of the file keeps the name of its operation.
    """
    linker = linker_of(facts)

    def renamed(refusal: Refusal) -> Refusal:
        place = linker.find(refusal.layer)
        if place is None:
            return refusal
        return replace(refusal, operation=facts.layers[place].operator)

    return replace(placement, refusals=tuple(map(renamed, placement.refusals)))
