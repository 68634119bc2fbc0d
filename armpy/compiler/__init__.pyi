from armpy.compiler.folding.constants import Evaluator as Evaluator
from armpy.compiler.folding.sizes import fold_sizes as fold_sizes
from armpy.compiler.optimize import (
    optimize_graph as optimize_graph,
    place_layers as place_layers,
)
from armpy.compiler.optimized import OptimizedNetwork as OptimizedNetwork
from armpy.compiler.options import (
    BUILT_IN_PASSES as BUILT_IN_PASSES,
    OptimizerOptions as OptimizerOptions,
)
from armpy.compiler.passes.context import OptimizerPass as OptimizerPass, PassContext as PassContext
from armpy.compiler.placement import (
    LayerPlacement as LayerPlacement,
    Placement as Placement,
    Refusal as Refusal,
)
from armpy.plugins.placement import Alternative as Alternative
from armpy.compiler.validation import default_shapes as default_shapes
from armpy.compiler.specialization import specialize as specialize

__all__: list[str]
