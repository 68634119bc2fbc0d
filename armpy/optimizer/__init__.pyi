from armpy.optimizer.evaluate import Evaluator as Evaluator
from armpy.optimizer.optimize import (
    OptimizedNetwork as OptimizedNetwork,
    OptimizerOptions as OptimizerOptions,
    optimize_graph as optimize_graph,
    place_layers as place_layers,
)
from armpy.optimizer.placement import (
    LayerPlacement as LayerPlacement,
    Placement as Placement,
    Refusal as Refusal,
)
from armpy.optimizer.specialization import specialize as specialize

__all__: list[str]
