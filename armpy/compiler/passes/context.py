"""Context of an optimiser pass: all that it can ask while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from armpy.backend import IBackendInternal
from armpy.compiler.assign import SupportOracle
from armpy.compiler.options import OptimizerOptions
from armpy.errors import LayerValidationError
from armpy.graph import Graph, Layer, Value
from armpy.ops.operation import Operation
from armpy.tensor import TensorInfo


class PassContext:
    """The options and backends that a graph is optimised for.

    Parameters
    ----------
    backends : sequence of IBackendInternal
        Most preferred first.
    """

    def __init__(self, options: OptimizerOptions, backends: Sequence[IBackendInternal]) -> None:
        self.options = options
        self.backends = tuple(backends)
        # One for all passes, which ask about the same layers again and again.
        self._oracle = SupportOracle(backends, options)

    def takes(self, backend: IBackendInternal, layer: Layer) -> bool:
        """Return whether a backend supports a layer."""
        return bool(self._oracle.ask(backend, layer))

    def stays(
        self,
        layer: Layer,
        operation: Operation,
        inputs: Sequence[Value | None],
        # Of the changed layer; those of `layer` if left out
        outputs: Sequence[TensorInfo] | None = None,
    ) -> bool:
        """Return whether a changed layer is assigned to the same or a more preferred backend.

        A pass that only removes layers must not move one to a less preferred backend.
        """
        infos = layer.output_infos if outputs is None else outputs
        return self.prefers(layer_like(layer, operation, inputs, infos), layer)

    def prefers(self, changed: Layer | None, layer: Layer) -> bool:
        """Return whether the first backend that supports either layer supports `changed`."""
        if changed is None:
            return False
        for backend in self.backends:
            # In this order: a backend that takes both keeps the change.
            if self.takes(backend, changed):
                return True
            if self.takes(backend, layer):
                return False
        return False


def layer_like(
    layer: Layer,  # the one in whose place it would be
    operation: Operation,
    inputs: Sequence[Value | None],
    outputs: Sequence[TensorInfo],
) -> Layer | None:
    """A layer that is in no graph, to ask about; None if its operands break the rules."""
    try:
        infos = operation.infer([v.info if v is not None else None for v in inputs], outputs)
    except LayerValidationError:
        return None
    # Below 0 are ids of no graph.
    values = tuple(Value(-1 - i, info, layer.name) for i, info in enumerate(infos))
    return Layer(layer.id, layer.name, operation, tuple(inputs), values)


OptimizerPass: TypeAlias = Callable[[Graph, PassContext], Graph]
"""Makes a graph of the same inputs, outputs and variables; the given one if there is nothing to do.
"""
