"""Finds the first layer of a model that a backend computes unlike another one.

Two searches, because a backend may be wrong in two ways:

1. *Alone.* CpuRef's (or another backend's) value of every tensor of the model is found
   first. Then the model is taken apart: one network in which each layer stands for itself and reads
   these values. Its answers show which layers are wrong on their own. No error of one layer reaches
   another, and nothing can be fused, so a layer that is named is wrong
   itself.
2. *Together.* If every layer is right alone and the model still is not, layers are wrong
   in company: fused into a PreCompiled, or by rounding that adds up. Then beginnings of the
   model are run on the backend, with the values at their end as outputs, and bisected: the
   layer that is named is the last one of the shortest beginning that goes wrong.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from armpy import load
from armpy.compiler import Placement
from armpy.core.dataclass import dataclass
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph, Layer, Value
from armpy.ops.operation import Array
from armpy.ops.tolerance import EXACT, Difference, Tolerance, compare
from armpy.types import REFERENCE_BACKEND_ID, BackendId
from armpy_conformance.comparison.exact_layers import after_floats
from armpy_conformance.description import describe
from armpy_tools.comparison.layer_values import backend_of, made_by_layers, values_alone
from armpy_tools.comparison.sides import Sides, chosen_inputs
from armpy_tools.comparison.trace import trace

ALONE = "alone"
TOGETHER = "together"


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """The first layer whose output leaves the tolerance."""

    # Of the layer in order of execution, from 0; and how many there are.
    number: int
    num_layers: int
    # The layer's name, and its operation with attributes.
    layer: str
    operation: str
    inputs: str  # types and shapes
    tensor: str  # name of the output that differs
    how: str  # whether the layer is wrong on the right inputs, or only after the layers before it
    difference: Difference  # worst element, and how many elements leave the tolerance
    # Where the layer ran on either side; what a backend refuses runs elsewhere.
    backend: BackendId
    against: BackendId

    def __str__(self) -> str:
        way = "on its own" if self.how == ALONE else "together with the layers before it"
        return (
            f"layer {self.number} of {self.num_layers}, {self.operation} '{self.layer}' on "
            f"{self.inputs}, is the first to differ, {way}: '{self.tensor}': {self.difference} "
            f"({self.backend} against {self.against})"
        )


@dataclass(frozen=True, slots=True)
class ModelDifference:
    """Difference of two backends on a model."""

    model: str
    backend: BackendId
    against: BackendId
    first: LayerDifference | None  # None if all outputs agree
    num_layers: int
    num_taken: int  # how many of them `backend` runs; with none there is nothing to compare
    # Where the layers of the whole model run on either side.
    backend_placement: str
    against_placement: str

    @property
    def is_same(self) -> bool:
        """Return whether no layer leaves the tolerance."""
        return self.first is None


def first_difference(
    model_path: str | os.PathLike[str],
    backend: BackendId,
    against: BackendId = REFERENCE_BACKEND_ID,
    *,
    inputs: Mapping[str, Array] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    seed: int = 0,
    exact: bool = False,
    runtime_options: RuntimeOptions | None = None,
) -> ModelDifference:
    """Run a model on two backends and find the first layer whose output differs.

    Parameters
    ----------
    model_path : path
        A model file.
    backend, against : str
        Ids; `against` is taken to be right.
    inputs : mapping of str to ndarray, optional
        By name; those missing are filled with numbers made of chance.
    shapes : mapping of str to tuple of int, optional
        Of inputs that the file leaves open, by name; other open sizes are those of dimensions with
        the same name, or 1.
    seed : int
        Of these numbers.
    exact : bool
        Whether elements have to be equal, except those computed in floating point and those
        that follow from such ones (`after_floats`).
    runtime_options : RuntimeOptions, optional
        Where backends are found, and their options.

    Raises
    ------
    InvalidArgumentError
        If an input does not fit.
    BackendUnavailableError
        If a backend cannot be used.
    UnimplementedError
        If shapes in the model depend on values.
    """
    sides = Sides.of(backend, against, runtime_options or RuntimeOptions())
    with load(os.fspath(model_path), runtime=sides.against) as model:
        graph = model.graph
        arrays, chosen = chosen_inputs(model, inputs or {}, seed, shapes or {})
        with chosen.explained():
            return graph_difference(sides, graph, arrays, os.fspath(model_path), exact=exact)


def graph_difference(
    sides: Sides, graph: Graph, arrays: list[Array], name: str, *, exact: bool = False
) -> ModelDifference:
    """`first_difference` of a graph and its inputs in order."""
    graph, arrays = sides.shaped(graph, arrays, name)
    search = _LayerSearch(sides, graph, arrays, exact=exact)
    placed = _placement(sides.backend, graph)
    first = search.alone() or search.together()
    return ModelDifference(
        name,
        sides.backend_id,
        sides.against_id,
        first,
        len(graph.layers),
        0 if placed is None else placed.layers_by_backend.get(sides.backend_id, 0),
        str(placed),
        str(_placement(sides.against, graph)),
    )


class _LayerSearch:
    """The two searches over one model."""

    def __init__(self, sides: Sides, graph: Graph, arrays: Sequence[Array], *, exact: bool) -> None:
        self._sides = sides
        self._exact = exact
        self._graph = graph
        self._arrays = arrays
        wanted = [*graph.inputs, *made_by_layers(graph)]
        self._right, _ = trace(graph, sides.against, arrays, wanted)

    def alone(self) -> LayerDifference | None:
        """The first layer that is wrong on right inputs."""
        outputs_alone, placement = values_alone(self._graph, self._sides.backend, self._right)
        for number, layer in enumerate(self._graph.layers):
            tolerance = self._tolerances([layer])
            for value in layer.outputs:
                expected, actual = self._right[value], outputs_alone[value]
                difference = compare(expected, actual, value.info, tolerance[value])
                if difference is not None:
                    return self._report(number, value, ALONE, difference, placement)
        return None

    def together(self) -> LayerDifference | None:
        """The last layer of the shortest beginning that goes wrong."""
        high = len(self._graph.layers)
        worst = self._beginning(high)
        if worst is None:
            return None
        low = 0
        while high - low > 1:
            middle = (low + high) // 2
            middle_difference = self._beginning(middle)
            if middle_difference is None:
                low = middle
            else:
                high, worst = middle, middle_difference
        value, difference, placement = worst
        return self._report(high - 1, value, TOGETHER, difference, placement)

    def _beginning(self, length: int) -> tuple[Value, Difference, Placement | None] | None:
        """Difference at the end of the first layers on the backend; None if there is none."""
        layers = self._graph.layers[:length]
        ends = _values_needed_after(self._graph, length)
        graph = replace(self._graph, layers=layers)
        outputs_traced, placement = trace(graph, self._sides.backend, self._arrays, ends)
        tolerances = self._tolerances(layers)
        for value in reversed(ends):
            expected, actual = self._right[value], outputs_traced[value]
            difference = compare(expected, actual, value.info, tolerances.get(value))
            if difference is not None:
                return value, difference, placement
        return None

    def _tolerances(self, layers: Sequence[Layer]) -> dict[Value, Tolerance | None]:
        """Return the tolerances of values of some layers; None for their type's tolerance."""
        inexact = after_floats(layers)
        values = (value for layer in layers for value in layer.outputs)
        return {value: EXACT if self._exact and value not in inexact else None for value in values}

    def _report(
        self,
        number: int,
        value: Value,
        how: str,
        difference: Difference,
        placement: Placement | None,
    ) -> LayerDifference:
        """Describe the finding."""
        layer = self._graph.layers[number]
        infos = ", ".join("-" if info is None else str(info) for info in layer.input_infos)
        return LayerDifference(
            number,
            len(self._graph.layers),
            layer.name,
            describe(layer.operation),
            f"({infos})",
            value.name,
            how,
            difference,
            backend_of(layer, placement),
            backend_of(layer, _placement(self._sides.against, self._graph)),
        )


def _values_needed_after(graph: Graph, length: int) -> list[Value]:
    """Values of the first layers that later ones read, or that are outputs."""
    later = set(graph.outputs)
    later.update(v for layer in graph.layers[length:] for v in layer.inputs if v is not None)
    values = (value for layer in graph.layers[:length] for value in layer.outputs)
    return [value for value in values if value in later]


def _placement(runtime: Runtime, graph: Graph) -> Placement | None:
    """Placement of a graph's layers."""
    network_id = runtime.load_network(graph)
    try:
        return runtime.get_network(network_id).placement
    finally:
        runtime.unload_network(network_id)
