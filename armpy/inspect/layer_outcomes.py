"""Outcome of each operator of a file: where it runs, or why it need not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from armpy.compiler import LayerPlacement, Placement
from armpy.inspect.facts import LayerRefusal, LayerStatus, ProgramFacts
from armpy.inspect.flat_outline import Flat, FlatOperator
from armpy.plugins.hooks.outline import LEFT_OUT

_STATE = frozenset({"VAR_HANDLE", "ASSIGN_VARIABLE", "READ_VARIABLE", "CALL_ONCE"})
"""Operators that armpy replaces by what it does around the layers."""

_SHAPES = frozenset({"SHAPE", "RANK", "ZEROS_LIKE", "Shape", "Size"})
"""Operators whose outputs follow from shapes."""

_CONVERSIONS = frozenset({"QuantizeLinear", "DequantizeLinear", "QUANTIZE", "DEQUANTIZE"})

Origins = Mapping[str, tuple[str, tuple[str, ...]]]
"""By a layer's name, its operation and the names of the layers that passes have made it of."""


def find_outcomes(flat: Flat, placement: Placement, origins: Origins) -> None:
    """Find what has become of operators, whose layers are linked already."""
    for index, layer in enumerate(placement.layers):
        flat.programs.append(_placed(flat, index, layer, origins))
    for refusal in placement.refusals:
        place = flat.linker.find(refusal.layer)
        if place is not None:
            reason = LayerRefusal(refusal.backend, refusal.code, refusal.text)
            flat.operators[place].refusals.setdefault(reason)
    _inherit(flat)
    _explain(flat)


def _placed(flat: Flat, index: int, layer: LayerPlacement, origins: Origins) -> ProgramFacts:
    """Note who runs a layer's operators."""
    inside = flat.insides.get(layer.inside, layer.inside)
    members: dict[int, None] = {}
    for name, operation, parts in _parts(layer, origins):
        main = flat.linker.find(name, inside)
        places = flat.linker.find_all((name, *parts), inside)
        alike = [
            place
            for place in places
            if any(each.operation.name == operation for each in flat.operators[place].layers)
        ]
        if operation and alike and main not in alike:
            main = alike[0]
        members.update(dict.fromkeys(places))
        for place in places:
            one = flat.operators[place]
            one.backends.setdefault(layer.backend)
            one.programs.setdefault(index)
            if place == main or main is None:
                one.status, one.into = LayerStatus.RUNS, None
                one.names.setdefault(name)
            elif one.status is not LayerStatus.RUNS:  # a part of another one's layer
                one.status, one.into = LayerStatus.FUSED, main
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
    for one in flat.operators:
        if one.parent is None or one.status is not LayerStatus.UNPLACED:
            continue
        outer = flat.operators[one.parent]
        if outer.operator.kind == "CALL_ONCE":
            one.status = LayerStatus.CONSTANT
        elif outer.status is LayerStatus.RUNS and not any(
            # Layers of the graph are placed one by one.
            each.programs and each.names and each.inside == one.inside
            for each in flat.operators
        ):
            one.status = LayerStatus.RUNS
            one.backends, one.programs = dict(outer.backends), dict(outer.programs)


def _explain(flat: Flat) -> None:
    """Say of those that run nowhere why they need not."""
    constants = _constants(flat)
    for index, one in enumerate(flat.operators):
        if one.status is not LayerStatus.UNPLACED:
            continue
        if one.operator.kind in _STATE:
            one.status = LayerStatus.STATE
        elif index in constants:
            one.status = LayerStatus.CONSTANT
        elif (other := _converted_with(flat, one)) is not None:
            one.status, one.into = LayerStatus.FUSED, other
        else:
            one.status = LayerStatus.DROPPED


def _constants(flat: Flat) -> set[int]:
    """The unplaced operators that read nothing but what is known when the model is loaded."""
    known = {i for i, (tensor, _) in enumerate(flat.tensors) if tensor.is_constant}
    found = set()
    for index, one in enumerate(flat.operators):
        if one.operator.kind in _STATE or one.status is not LayerStatus.UNPLACED:
            continue
        reads = [tensor for tensor in one.inputs if tensor != LEFT_OUT]
        if one.operator.kind in _SHAPES or all(tensor in known for tensor in reads):
            found.add(index)
            known.update(one.outputs)
    return found


def _converted_with(flat: Flat, one: FlatOperator) -> int | None:
    """The operator that one was joined with for quantisation: the nearest that runs."""
    readers = [r for tensor in one.outputs for r in flat.consumers.get(tensor, ())]
    ends = [each for r in readers if (each := flat.operators[r]).operator.kind in _CONVERSIONS]
    if one.operator.kind not in _CONVERSIONS and not any(
        each.status is LayerStatus.UNPLACED or each.into is not None for each in ends
    ):
        return None
    writers = [flat.producers[t] for t in one.inputs if t in flat.producers]
    reads_first = one.operator.kind in ("DequantizeLinear", "DEQUANTIZE")
    near = [*readers, *writers] if reads_first else [*writers, *readers]
    found = _first_running(flat, near)
    return _first_running(flat, _beyond(flat, near)) if found is None else found


def _first_running(flat: Flat, places: Iterable[int]) -> int | None:
    """The first of some operators that has layers of its own, or what one of them is in."""
    for place in places:
        one = flat.operators[place]
        if one.status is LayerStatus.RUNS:
            return place
        if one.into is not None:
            return one.into
    return None


def _beyond(flat: Flat, places: Collection[int]) -> list[int]:
    """Return the operators that write what some operators read, and that read what they write."""
    found = dict.fromkeys(places)
    for place in places:
        one = flat.operators[place]
        written = (flat.producers[tensor] for tensor in one.inputs if tensor in flat.producers)
        found.update(dict.fromkeys(written))
        for tensor in one.outputs:
            found.update(dict.fromkeys(flat.consumers.get(tensor, ())))
    return list(found)
