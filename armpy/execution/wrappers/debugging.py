"""Debugging: every value that an execution computes is handed to a callback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from armpy.backend import Cancellation
from armpy.execution.programs.protocols import Run
from armpy.execution.steps.control_flow import Targets
from armpy.graph import Graph, Layer
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, eq=False, slots=True)
class DebugValue:
    """Value that a layer has computed.

    Parameters
    ----------
    layer : str
        Its name.
    operation : str
    index : int
        Of the output, for layers that have several.
    tensor : str
        The output's name.
    info : TensorInfo
        Type and quantisation; the shape, as far as it was known before.
    values : ndarray, dtype of `info`
        The stored elements, in an array of the callback's own that cannot be written to.
    """

    layer: str
    operation: str
    index: int
    tensor: str
    info: TensorInfo
    values: Array


DebugCallback: TypeAlias = Callable[[DebugValue], object]
"""Called for every output of every layer; what it raises ends the execution.

References
----------
Arm NN DebugCallbackFunction.
"""


def with_every_value(graph: Graph) -> Graph:
    """A graph whose outputs are followed by those of all its layers, in order."""
    taken, names = set(graph.output_names), []
    for layer in graph.layers:
        for index in range(len(layer.outputs)):
            name = f"{layer.name}:{index}#{layer.id}"
            # A model's outputs may have any names, this one as well.
            while name in taken:
                name += "'"
            taken.add(name)
            names.append(name)
    values = [value for layer in graph.layers for value in layer.outputs]
    return replace(
        graph, outputs=(*graph.outputs, *values), output_names=(*graph.output_names, *names)
    )


class DebugPlan:
    """A plan of a graph of `with_every_value` that tells a callback, and gives the outputs only.

    Parameters
    ----------
    graph : Graph
        The one whose values are told.
    run : callable
        Executes the plan.
    infos : sequence of TensorInfo
        The plan's results.
    callback : callable

    Notes
    -----
    The callback is called when all has been computed: a backend may run many layers as one
    program. State is not written yet then.
    """

    def __init__(
        self, graph: Graph, run: Run, infos: Sequence[TensorInfo], callback: DebugCallback
    ) -> None:
        self._run = run
        self._callback = callback
        self._shown: list[tuple[Layer, int]] = [
            (layer, index) for layer in graph.layers for index in range(len(layer.outputs))
        ]
        self._first = len(graph.outputs)
        self._last = self._first + len(self._shown)
        self.result_infos = (*infos[: self._first], *infos[self._last :])

    def run(
        self,
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        """Execute once; parameters and result as for `StaticPlan.run`."""
        first, last = self._first, self._last
        given: list[Array | None] | None = None
        if results is not None:
            given = [*results[:first], *([None] * (last - first)), *results[first:]]
        made = self._run(sources, given, cancellation)
        for (layer, index), values in zip(self._shown, made[first:last], strict=True):
            own = values.copy()
            own.flags.writeable = False
            tensor = layer.outputs[index]
            named = layer.name, layer.operation.name, index, tensor.name, tensor.info
            self._callback(DebugValue(*named, own))
        return [*made[:first], *made[last:]]
