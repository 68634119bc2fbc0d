"""From a graph to an optimised network with a backend for every layer."""

from armpy.optimizer.evaluate import Evaluator
from armpy.optimizer.optimize import (
    OptimizedNetwork,
    OptimizerOptions,
    optimize_graph,
    place_layers,
)
from armpy.optimizer.placement import LayerPlacement, Placement, Refusal
from armpy.optimizer.specialize import specialize

__all__ = [
    "Evaluator",
    "LayerPlacement",
    "OptimizedNetwork",
    "OptimizerOptions",
    "Placement",
    "Refusal",
    "optimize_graph",
    "place_layers",
    "specialize",
]
