from armpy.optimizer.evaluate import Evaluator as Evaluator
from armpy.optimizer.optimize import (
    optimize_graph as optimize_graph,
    place_layers as place_layers,
)
from armpy.optimizer.optimized import OptimizedNetwork as OptimizedNetwork
from armpy.optimizer.options import OptimizerOptions as OptimizerOptions
from armpy.optimizer.passes.context import (
    OptimizerPass as OptimizerPass,
    PassContext as PassContext,
)
from armpy.optimizer.passes.pipeline import BUILT_IN_PASSES as BUILT_IN_PASSES
from armpy.optimizer.passes.rebuild import Rebuild as Rebuild
from armpy.optimizer.placement import (
    Alternative as Alternative,
    LayerPlacement as LayerPlacement,
    Placement as Placement,
    Refusal as Refusal,
)
from armpy.optimizer.specialization import specialize as specialize

__all__: list[str]
