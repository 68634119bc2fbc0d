"""Outcome of each operator of a file: where it runs, or why it need not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from armpy.compiler import LayerPlacement, Placement
from armpy.inspect.facts import LayerRefusal, LayerStatus, ProgramFacts
from armpy.inspect.flat_outline import Flat
from armpy.inspect.inferred_shapes import InferredShapes
from armpy.plugins.hooks.outline import LEFT_OUT

_STATE = frozenset({"VAR_HANDLE", "ASSIGN_VARIABLE", "READ_VARIABLE", "CALL_ONCE"})
"""Operators that armpy replaces by what it does around the layers."""

_SHAPES = frozenset({"SHAPE", "RANK", "ZEROS_LIKE", "Shape", "Size"})
"""Operators whose outputs follow from shapes."""

_CONVERSIONS = frozenset({"QuantizeLinear", "DequantizeLinear", "QUANTIZE", "DEQUANTIZE"})


Origins: TypeAlias = "tuple[str, tuple[str, ...]]"
"""A layer's operation, and the names of the layers that passes have made it of."""


@dataclass(eq=False, slots=True)
class LayerOutcome:
    """Outcome of one operator.

    Parameters
    ----------
    status : LayerStatus
    backends : dict of str to None
        In order.
    programs : dict of int to None
        In order.
    into : int or None
        The operator that it is a part of.
    names : dict of str to None
        Layers that it became.
    refusals : dict of LayerRefusal to None
    """

    status: LayerStatus = LayerStatus.UNPLACED
    backends: dict[str, None] = field(default_factory=dict)
    programs: dict[int, None] = field(default_factory=dict)
    into: int | None = None
    names: dict[str, None] = field(default_factory=dict)
    refusals: dict[LayerRefusal, None] = field(default_factory=dict)


class LayerOutcomes:
    """Finds what has become of operators.

    Parameters
    ----------
    flat : Flat
    shaped : InferredShapes
    placement : Placement or None
        None as long as shapes are not known.
    origins : mapping of str to (str, tuple of str)
        By a layer's name, its operation and the names of the layers that passes have made it of.
    """

    def __init__(
        self,
        flat: Flat,
        shaped: InferredShapes,
        placement: Placement | None,
        origins: Mapping[str, Origins],
    ) -> None:
        self._flat, self._shaped = flat, shaped
        self.found = [LayerOutcome() for _ in flat.operators]
        self.programs: tuple[ProgramFacts, ...] = ()
        if placement is None:
            return
        self._place(placement, origins)
        self._refuse(placement)
        self._inherit()
        self._explain()

    def _place(self, placement: Placement, origins: Mapping[str, Origins]) -> None:
        """Note who runs what."""
        programs = []
        for index, layer in enumerate(placement.layers):
            inside = self._shaped.insides.get(layer.inside, layer.inside)
            members: dict[int, None] = {}
            for name, operation, parts in _parts(layer, origins):
                main = self._flat.linker.find(name, inside)
                places = self._flat.linker.find_all((name, *parts), inside)
                alike = [place for place in places if self._has(place, operation)]
                if operation and alike and main not in alike:
                    main = alike[0]
                members.update(dict.fromkeys(places))
                for place in places:
                    self._note(place, main, name, layer.backend, index)
            title = f"{layer.inside}/{layer.layer}" if layer.inside else layer.layer
            programs.append(
                ProgramFacts(
                    index,
                    layer.operation,
                    title,
                    layer.backend,
                    layer.partition,
                    tuple(sorted(members)),
                )
            )
        self.programs = tuple(programs)

    def _has(self, place: int, operation: str) -> bool:
        """Whether an operator became a layer of an operation."""
        layers = self._shaped.layers.get(place, ())
        return any(layer.operation.name == operation for layer in layers)

    def _note(self, place: int, main: int | None, name: str, backend: str, index: int) -> None:
        """Note that an operator's layer is in a program, maybe as a part of another one's."""
        outcome = self.found[place]
        outcome.backends.setdefault(backend)
        outcome.programs.setdefault(index)
        if place == main or main is None:
            outcome.status, outcome.into = LayerStatus.RUNS, None
            outcome.names.setdefault(name)
        elif outcome.status is not LayerStatus.RUNS:
            outcome.status, outcome.into = LayerStatus.FUSED, main

    def _refuse(self, placement: Placement) -> None:
        """Note who did not take what."""
        for refusal in placement.refusals:
            place = self._flat.linker.find(refusal.layer)
            if place is not None:
                reason = LayerRefusal(refusal.backend, refusal.code, refusal.text)
                self.found[place].refusals.setdefault(reason)

    def _inherit(self) -> None:
        """Operators of a graph that a backend runs with the layer around it run there, too."""
        for outcome, one in zip(self.found, self._flat.operators, strict=True):
            if one.parent is None or outcome.status is not LayerStatus.UNPLACED:
                continue
            outer, kind = self.found[one.parent], self._flat.operators[one.parent].operator.kind
            if kind == "CALL_ONCE":
                outcome.status = LayerStatus.CONSTANT
            elif outer.status is LayerStatus.RUNS and not self._is_apart(one.inside):
                outcome.status = LayerStatus.RUNS
                outcome.backends, outcome.programs = dict(outer.backends), dict(outer.programs)

    def _is_apart(self, inside: str) -> bool:
        """Whether layers of a graph are placed one by one."""
        return any(
            outcome.programs and outcome.names and one.inside == inside
            for outcome, one in zip(self.found, self._flat.operators, strict=True)
        )

    def _explain(self) -> None:
        """Say of those that run nowhere why they need not."""
        is_constant = self._constants()
        for index, (outcome, one) in enumerate(zip(self.found, self._flat.operators, strict=True)):
            if outcome.status is not LayerStatus.UNPLACED:
                continue
            if one.operator.kind in _STATE:
                outcome.status = LayerStatus.STATE
            elif is_constant[index]:
                outcome.status = LayerStatus.CONSTANT
            elif (other := self._converted_with(index)) is not None:
                outcome.status, outcome.into = LayerStatus.FUSED, other
            else:
                outcome.status = LayerStatus.DROPPED

    def _constants(self) -> list[bool]:
        """Per operator, whether all that it reads is known when the model is loaded."""
        flat = self._flat
        known = {i for i, (tensor, _) in enumerate(flat.tensors) if tensor.is_constant}
        found = []
        for one, outcome in zip(flat.operators, self.found, strict=True):
            reads = [tensor for tensor in one.inputs if tensor != LEFT_OUT]
            follows = one.operator.kind in _SHAPES or all(tensor in known for tensor in reads)
            is_constant = follows and outcome.status is LayerStatus.UNPLACED
            is_constant = is_constant and one.operator.kind not in _STATE
            found.append(is_constant)
            if is_constant:
                known.update(one.outputs)
        return found

    def _converted_with(self, index: int) -> int | None:
        """The operator that one was joined with for quantisation: the nearest that runs."""
        flat = self._flat
        one = flat.operators[index]
        readers = [r for tensor in one.outputs for r in flat.consumers.get(tensor, ())]
        is_conversion = one.operator.kind in _CONVERSIONS
        ends = [r for r in readers if flat.operators[r].operator.kind in _CONVERSIONS]
        if not is_conversion and not any(
            self.found[r].status is LayerStatus.UNPLACED or self.found[r].into is not None
            for r in ends
        ):
            return None
        writers = [flat.producers[t] for t in one.inputs if t in flat.producers]
        reads_first = one.operator.kind in ("DequantizeLinear", "DEQUANTIZE")
        near = [*readers, *writers] if reads_first else [*writers, *readers]
        found = self._first_running(near)
        return self._first_running(self._beyond(near)) if found is None else found

    def _first_running(self, places: Iterable[int]) -> int | None:
        """The first of some operators that has layers of its own, or what one of them is in."""
        for place in places:
            outcome = self.found[place]
            if outcome.status is LayerStatus.RUNS:
                return place
            if outcome.into is not None:
                return outcome.into
        return None

    def _beyond(self, places: Collection[int]) -> list[int]:
        """Who writes what some operators read, and reads what they write."""
        flat, found = self._flat, dict.fromkeys(places)
        for place in places:
            one = flat.operators[place]
            written = (flat.producers[tensor] for tensor in one.inputs if tensor in flat.producers)
            found.update(dict.fromkeys(written))
            for tensor in one.outputs:
                found.update(dict.fromkeys(flat.consumers.get(tensor, ())))
        return list(found)


def _parts(
    layer: LayerPlacement, origins: Mapping[str, Origins]
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Names, operations and origins of the layers that one was compiled of, or its own."""
    if layer.partition < 0:
        return
    if layer.operation != "PreCompiled" or not layer.origins:
        yield layer.layer, layer.operation, layer.origins
        return
    for name in layer.origins:
        yield name, *origins.get(name, ("", ()))
