"""A backend that declares patterns for the kit."""

from __future__ import annotations

from armpy.backend import OptimizationViews, PreparationRequest
from armpy.graph import SubgraphView
from armpy.graph.network import Network
from armpy.ops import ElementwiseUnary, UnaryOperation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_conformance import Pattern
from armpy_testing.backends.fake_backends import CompilingBackend
from armpy_testing.backends.lying_backends import given_back


class Declaring(CompilingBackend):
    """Takes the logarithm of an exponential and nothing else, which it declares."""

    def __init__(self, backend_id: str = "Declaring", patterns: object = None) -> None:
        super().__init__(backend_id, (ElementwiseUnary,))
        self._patterns = patterns

    def conformance_patterns(self) -> object:
        return [exponential_pattern()] if self._patterns is None else self._patterns

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        operations = [getattr(layer.operation, "operation", None) for layer in view.layers]
        if operations == [UnaryOperation.EXP, UnaryOperation.LOG]:
            return super().optimize_subgraph_view(view, request)
        return given_back(view)


def exponential_pattern(num_layers: int = 2) -> Pattern:
    """The logarithm of an exponential, or of its logarithm."""
    net = Network("logarithm of an exponential")
    value = net.input("x", TensorInfo((5,), DataType.FLOAT32))
    value = net.add(ElementwiseUnary(UnaryOperation.EXP), value)
    for _ in range(num_layers - 1):
        value = net.add(ElementwiseUnary(UnaryOperation.LOG), value)
    net.output("y", value)
    return Pattern("logarithm", net)
