"""Errors of each layer against another backend's numbers: alone, and with all before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.compiler import Placement
from armpy.core.dataclass import dataclass
from armpy.graph import Graph, Layer, Value
from armpy.ops.operation import Array
from armpy.ops.tolerance import compare
from armpy.types import BackendId
from armpy_tools.comparison.errors import ErrorStats, errors
from armpy_tools.comparison.layer_values import backend_of, made_by_layers, values_alone
from armpy_tools.comparison.sides import Sides
from armpy_tools.comparison.trace import trace


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
    graph, arrays = sides.shaped(graph, arrays, name)
    values = made_by_layers(graph)
    right, _ = trace(graph, sides.against, arrays, [*graph.inputs, *values])
    alone, placement = values_alone(graph, sides.backend, right)
    together, _ = trace(graph, sides.backend, arrays, values)
    return [_error(layer, right, alone, together, placement) for layer in graph.layers]


def _error(
    layer: Layer,
    right: dict[Value, Array],
    alone: dict[Value, Array],
    together: dict[Value, Array],
    placement: Placement | None,
) -> LayerError:
    """Return how exact a layer is: the worst of its outputs."""
    outputs = layer.outputs
    own = [_errors(value, right[value], alone[value]) for value in outputs]
    totals = [_errors(value, right[value], together[value]) for value in outputs]
    return LayerError(
        layer.name,
        layer.operation.name,
        backend_of(layer, placement),
        max((error.relative for error in own), default=0.0),
        max((error.relative for error in totals), default=0.0),
        max((error.largest for error in own), default=0.0),
        all(compare(right[v], alone[v], v.info) is None for v in outputs),
    )


def _errors(value: Value, right: Array, answer: Array) -> ErrorStats:
    """Errors in stored units, relative to how far the right numbers are from the zero point."""
    quantization = value.info.quantization
    if quantization is not None and len(quantization.zero_points) == 1:
        # Where channels have a zero point each, it is 0 as a rule.
        zero = quantization.zero_points[0]
        right, answer = (array.astype(np.float64) - zero for array in (right, answer))
    return errors([right], [answer])
