"""Errors of each layer against another backend's numbers: alone, and with all before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armpy.compiler import Placement, specialize
from armpy.errors import UnimplementedError
from armpy.graph import Graph, Layer, Value
from armpy.ops.operation import Array
from armpy.tools.compare.accuracy_measures import errors_of
from armpy.tools.compare.diff import (
    Sides,
    backend_of,
    run_graph,
    taken_apart,
    values_of_layers,
    with_outputs,
)
from armpy.tools.compare.tolerance import compare
from armpy.types import BackendId


@dataclass(frozen=True, slots=True)
class LayerError:
    """Error of one layer.

    Parameters
    ----------
    layer, operation : str
    backend : str
        Where it ran.
    alone, together : float
        Root of the mean square of the differences over that of the right numbers: of the layer on
        right inputs, and of the model up to it. The worst of its outputs; infinite where one is no
        number on one side alone.
    largest : float
        Difference of the worst element alone, in stored units, which are steps for quantised types.
    is_within : bool
        Whether it keeps the tolerance of its type alone.
    """

    layer: str
    operation: str
    backend: BackendId
    alone: float
    together: float
    largest: float
    is_within: bool


def layer_errors(
    sides: Sides, graph: Graph, arrays: Sequence[Array], name: str
) -> list[LayerError]:
    """Compare each layer of a model on two backends.

    Parameters
    ----------
    sides : Sides
        The backends.
    graph : Graph
    arrays : sequence of ndarray
        Its inputs, in order.
    name : str
        Of the model, for errors.

    Returns
    -------
    list of LayerError
        In order of execution.

    Raises
    ------
    UnimplementedError
        If shapes in the model depend on values.
    """
    graph = specialize(graph, [array.shape for array in arrays], evaluator=sides.evaluator)
    if not graph.is_fully_shaped:
        raise UnimplementedError(
            "shapes in the model depend on values, so that it cannot be taken apart",
            where=name,
        )
    arrays = [*arrays, *(variable.initial for variable in graph.variables)]
    names = tuple(map(str, range(len(graph.results))))
    graph = Graph(graph.sources, graph.results, names, graph.layers)
    right = values_of_layers(sides, graph, arrays)
    right.update(zip(graph.sources, arrays, strict=True))
    alone, placement = _alone(sides, graph, right)
    made = [value for layer in graph.layers for value in layer.outputs]
    values, _ = run_graph(sides.backend, with_outputs(graph, graph.layers, made), arrays)
    together = dict(zip(made, values, strict=True))
    return [_error(layer, right, alone, together, placement) for layer in graph.layers]


def _alone(
    sides: Sides, graph: Graph, right: dict[Value, Array]
) -> tuple[dict[Value, Array], Placement | None]:
    """What each layer gives on right inputs."""
    apart, sources = taken_apart(graph)
    values, placement = run_graph(sides.backend, apart, [right[value] for value in sources])
    made = (value for layer in graph.layers for value in layer.outputs)
    return dict(zip(made, values, strict=True)), placement


def _error(
    layer: Layer,
    right: dict[Value, Array],
    alone: dict[Value, Array],
    together: dict[Value, Array],
    placement: Placement | None,
) -> LayerError:
    """How exact a layer is: the worst of its outputs."""
    errors = [_relative(value, right[value], alone[value]) for value in layer.outputs]
    totals = [_relative(value, right[value], together[value]) for value in layer.outputs]
    differences = [compare(right[v], alone[v], v.info) for v in layer.outputs]
    return LayerError(
        layer.name,
        layer.operation.name,
        backend_of(layer, placement),
        max((relative for relative, _ in errors), default=0.0),
        max((relative for relative, _ in totals), default=0.0),
        max((largest for _, largest in errors), default=0.0),
        all(difference is None for difference in differences),
    )


def _relative(value: Value, right: Array, answer: Array) -> tuple[float, float]:
    """Difference relative to the right numbers, and of the worst element in stored units."""
    found = errors_of([[right]], [[answer]])
    quantization = value.info.quantization
    if quantization is None or not found.relative or not math.isfinite(found.relative):
        return found.relative, found.largest
    # Stored numbers begin at the zero point; where channels have one each, it is 0 as a rule.
    zero = quantization.zero_points[0] if len(quantization.zero_points) == 1 else 0
    power = float(np.mean((right.astype(np.float64) - zero) ** 2))
    return (math.sqrt(found.mean_square / power) if power else math.inf), found.largest
