"""Debugging: every value that an execution computes is handed to a callback."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from armpy.backend import Cancellation
from armpy.errors import InvalidArgumentError
from armpy.execution.arrays.slots import InputSlot
from armpy.execution.memory.imported_tensor import ImportedTensor
from armpy.execution.memory.imports import import_given, imports_in
from armpy.execution.programs.bound_program import BoundProgram, Run
from armpy.execution.programs.control_flow import Targets
from armpy.graph import Graph, Layer
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo

if TYPE_CHECKING:
    from armpy.execution.loaded_network import LoadedNetwork


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


class DebuggedNetwork:
    """A loaded network as calls see it that a callback is told of.

    Parameters
    ----------
    network : LoadedNetwork
    callback : callable

    Raises
    ------
    InvalidArgumentError
        If the callback cannot be called.
    """

    latest: BoundProgram | None = None
    """Each execution is prepared with its own callback."""

    def __init__(self, network: LoadedNetwork, callback: DebugCallback) -> None:
        if not callable(callback):
            raise InvalidArgumentError(
                "the callback cannot be called",
                where="debug",
                expected="a function of a DebugValue",
                actual=type(callback).__name__,
            )
        self.graph = network.graph
        self.inputs: tuple[InputSlot, ...] = network.inputs
        self._network = network
        self._callback = callback

    @property
    def imported(self) -> Collection[ImportedTensor]:
        """The network's imported tensors."""
        return self._network.imported

    def prepared_for(
        self, inputs: Sequence[Array], targets: Sequence[Array | None] = ()
    ) -> BoundProgram:
        """The network prepared for the shapes of some inputs, and with the callback.

        Raises
        ------
        InvalidArgumentError
            If there are tensors that are not in memory of the host.
        """
        shapes = tuple([array.shape for array in inputs])
        prepared = self._network.prepared_to_debug(shapes, self._callback)
        import_given(self._network, prepared, inputs, targets)
        if imports_in(self._network, prepared, inputs, targets):
            raise InvalidArgumentError(
                "values are told of executions with arrays",
                actual="an imported tensor",
                fix="Give arrays to a network that does not import in every call",
            )
        return prepared

    def describe_shapes(self) -> str:
        """Names and shapes of the inputs, for messages."""
        return self._network.describe_shapes()
