"""Debugging: every value that an execution computes is handed to a callback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from armpy.backend import Cancellation
from armpy.core.dataclass import dataclass
from armpy.execution.steps.control_flow import Targets
from armpy.execution.wrappers.runs import Runs
from armpy.graph import Graph
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo


@dataclass(frozen=True, eq=False, slots=True)
class DebugValue:
    """Value that a layer has computed.

    Parameters
    ----------
    layer : str
        The layer's name.
    index : int
        Index of the output, for layers that have several.
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
"""Called for every output of every layer; its errors end the execution.

References
----------
Arm NN DebugCallbackFunction.
"""

DebugWrapper: TypeAlias = Callable[[Runs, Graph], Runs]
"""`debugged` with a callback."""


def debugged(
    runs: Runs,
    graph: Graph,  # the one whose values are reported
    callback: DebugCallback,
) -> Runs:
    """Execute the program of `with_every_value`, report to a callback, and give the outputs only.

    The callback is called when all has been computed: a backend may run many layers as one
    program. State is not written yet then.
    """
    run = runs.run
    shown = [(layer, index) for layer in graph.layers for index in range(len(layer.outputs))]
    first = len(graph.outputs)
    last = first + len(shown)

    def run_debugged(
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        targets: list[Array | None] | None = None
        if results is not None:
            targets = [*results[:first], *([None] * len(shown)), *results[first:]]
        arrays = run(sources, targets, cancellation)
        for (layer, index), values in zip(shown, arrays[first:last], strict=True):
            own = values.copy()
            own.flags.writeable = False
            tensor = layer.outputs[index]
            named = layer.name, layer.operation.name, index, tensor.name, tensor.info
            callback(DebugValue(*named, own))
        return [*arrays[:first], *arrays[last:]]

    return Runs(run_debugged)
