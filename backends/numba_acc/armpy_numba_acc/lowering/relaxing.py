"""Which layers relaxed float32 computes less exactly."""

from __future__ import annotations

from armpy.graph import Layer
from armpy.ops import BatchMatMul

_LEAST_PRODUCTS, _LEAST_WEIGHTS = 1 << 17, 1 << 13
"""Of a layer, either of them, for its products to be worth a less exact way: a microsecond."""


def are_many(layer: Layer) -> bool:
    """Whether a layer's products with its second operand take long."""
    weights, output = layer.inputs[1], layer.outputs[0].info
    assert weights is not None
    if isinstance(layer.operation, BatchMatMul):
        *_, rows, columns = weights.info.known_shape
        depth = rows * columns // output.known_shape[-1]
    else:
        depth = weights.info.num_elements // weights.info.known_shape[0]
    num_products = output.num_elements * depth
    return num_products >= _LEAST_PRODUCTS or weights.info.num_elements >= _LEAST_WEIGHTS
