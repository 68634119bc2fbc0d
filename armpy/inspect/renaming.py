"""Reports of armpy's network in the words of the file that it is from."""

from __future__ import annotations

from dataclasses import replace

from armpy.compiler import Placement, Refusal
from armpy.inspect.facts import ModelFacts
from armpy.inspect.name_resolution import Linker


def linker_of(facts: ModelFacts) -> Linker:
    """What finds a file's layer by the name of a layer, program or step of armpy's."""
    return Linker([(one.inside, one.name, (one.name, *one.layer_names)) for one in facts.layers])


def with_file_names(placement: Placement, facts: ModelFacts) -> Placement:
    """A placement whose refusals are of the file's operators: ``ADD``, not ``ElementwiseBinary``.

    Notes
    -----
    A layer that belongs to no operator of the file keeps the name of its operation.
    """
    linker = linker_of(facts)

    def renamed(refusal: Refusal) -> Refusal:
        place = linker.find(refusal.layer)
        if place is None:
            return refusal
        return replace(refusal, operation=facts.layers[place].operator)

    return replace(placement, refusals=tuple(map(renamed, placement.refusals)))
