"""Outcome of each operator of a file: where it runs, or why it need not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from armpy.compiler import LayerPlacement, Placement
from armpy.inspect.facts import LayerStatus, ProgramFacts
from armpy.inspect.flat_outline import Flat, FlatOperator
from armpy.plugins.hooks.outline import LEFT_OUT

_STATE = frozenset({"VAR_HANDLE", "ASSIGN_VARIABLE", "READ_VARIABLE", "CALL_ONCE"})
"""Operators that armpy replaces by work around the layers."""

_SHAPES = frozenset({"SHAPE", "RANK", "ZEROS_LIKE", "Shape", "Size"})
"""Operators whose outputs follow from shapes."""

_CONVERSIONS = frozenset({"QuantizeLinear", "DequantizeLinear", "QUANTIZE", "DEQUANTIZE"})

Origins = Mapping[str, tuple[str, tuple[str, ...]]]
"""By a layer's name, its operation and the names of the layers that passes have made it of."""


def find_outcomes(flat: Flat, placement: Placement, origins: Origins) -> None:
    """Find the outcomes of operators, whose layers are linked already."""
    for index, layer in enumerate(placement.layers):
        flat.programs.append(_placed(flat, index, layer, origins))
    for refusal in placement.refusals:
        place = flat.linker.find(refusal.layer)
        if place is not None:
            operator = flat.operators[place]
            # As in the report: the file's name of what was refused.
            named = replace(refusal, operation=operator.operator.kind)
            operator.refusals.setdefault((refusal.backend, refusal.support), named)
    _inherit(flat)
    _explain(flat)


def _placed(flat: Flat, index: int, layer: LayerPlacement, origins: Origins) -> ProgramFacts:
    """Note the backend that runs a layer's operators."""
    inside = flat.insides.get(layer.inside, layer.inside)
    members: dict[int, None] = {}
    for name, operation, parts in _parts(layer, origins):
        main = flat.linker.find(name, inside)
        places = flat.linker.find_all((name, *parts), inside)
        alike = [
            place
            for place in places
            if any(member.operation.name == operation for member in flat.operators[place].layers)
        ]
        if operation and alike and main not in alike:
            main = alike[0]
        members.update(dict.fromkeys(places))
        for place in places:
            entry = flat.operators[place]
            entry.backends.setdefault(layer.backend)
            entry.programs.setdefault(index)
            if place == main or main is None:
                entry.status, entry.into = LayerStatus.RUNS, None
                entry.names.setdefault(name)
            elif entry.status is not LayerStatus.RUNS:  # a part of another one's layer
                entry.status, entry.into = LayerStatus.FUSED, main
    title = f"{layer.inside}/{layer.layer}" if layer.inside else layer.layer
    layers = tuple(sorted(members))
    return ProgramFacts(index, layer.operation, title, layer.backend, layer.partition, layers)


def _parts(layer: LayerPlacement, origins: Origins) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Names, operations and origins of the layers that one was compiled of, or its own."""
    if layer.partition < 0:
        return
    if layer.operation != "PreCompiled" or not layer.origins:
        yield layer.layer, layer.operation, layer.origins
        return
    for name in layer.origins:
        yield name, *origins.get(name, ("", ()))


def _inherit(flat: Flat) -> None:
    """Operators of a graph that a backend runs with the layer around it run there, too."""
    for entry in flat.operators:
        if entry.parent is None or entry.status is not LayerStatus.UNPLACED:
            continue
        outer = flat.operators[entry.parent]
        if outer.operator.kind == "CALL_ONCE":
            entry.status = LayerStatus.CONSTANT
        elif outer.status is LayerStatus.RUNS and not any(
            # Layers of the graph are placed one by one.
            member.programs and member.names and member.inside == entry.inside
            for member in flat.operators
        ):
            entry.status = LayerStatus.RUNS
            entry.backends, entry.programs = dict(outer.backends), dict(outer.programs)


def _explain(flat: Flat) -> None:
    """Say of those that run nowhere why they need not."""
    constants = _constants(flat)
    for index, entry in enumerate(flat.operators):
        if entry.status is not LayerStatus.UNPLACED:
            continue
        if entry.operator.kind in _STATE:
            entry.status = LayerStatus.STATE
        elif index in constants:
            entry.status = LayerStatus.CONSTANT
        elif (other := _converted_with(flat, entry)) is not None:
            entry.status, entry.into = LayerStatus.FUSED, other
        else:
            entry.status = LayerStatus.DROPPED


def _constants(flat: Flat) -> set[int]:
    """The unplaced operators that read only values known when the model is loaded."""
    known = {i for i, (tensor, _) in enumerate(flat.tensors) if tensor.is_constant}
    known_places = set()
    for index, entry in enumerate(flat.operators):
        if entry.operator.kind in _STATE or entry.status is not LayerStatus.UNPLACED:
            continue
        reads = [tensor for tensor in entry.inputs if tensor != LEFT_OUT]
        if entry.operator.kind in _SHAPES or all(tensor in known for tensor in reads):
            known_places.add(index)
            known.update(entry.outputs)
    return known_places


def _converted_with(flat: Flat, entry: FlatOperator) -> int | None:
    """The operator that one was joined with for quantisation: the nearest that runs."""
    readers = [r for tensor in entry.outputs for r in flat.consumers.get(tensor, ())]
    ends = [end for r in readers if (end := flat.operators[r]).operator.kind in _CONVERSIONS]
    if entry.operator.kind not in _CONVERSIONS and not any(
        end.status is LayerStatus.UNPLACED or end.into is not None for end in ends
    ):
        return None
    writers = [flat.producers[t] for t in entry.inputs if t in flat.producers]
    reads_first = entry.operator.kind in ("DequantizeLinear", "DEQUANTIZE")
    near = [*readers, *writers] if reads_first else [*writers, *readers]
    nearest = _first_running(flat, near)
    return _first_running(flat, _beyond(flat, near)) if nearest is None else nearest


def _first_running(flat: Flat, places: Iterable[int]) -> int | None:
    """The first of some operators that has layers of its own, or what one of them is in."""
    for place in places:
        entry = flat.operators[place]
        if entry.status is LayerStatus.RUNS:
            return place
        if entry.into is not None:
            return entry.into
    return None


def _beyond(flat: Flat, places: Collection[int]) -> list[int]:
    """Return the operators that write some operators' inputs, and that read their outputs."""
    beyond = dict.fromkeys(places)
    for place in places:
        entry = flat.operators[place]
        written = (flat.producers[tensor] for tensor in entry.inputs if tensor in flat.producers)
        beyond.update(dict.fromkeys(written))
        for tensor in entry.outputs:
            beyond.update(dict.fromkeys(flat.consumers.get(tensor, ())))
    return list(beyond)
