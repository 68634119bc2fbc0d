"""Which layers relaxed float32 computes less exactly."""

from __future__ import annotations

from armpy.graph import Layer
from armpy.ops import BatchMatMul, Convolution2d
from armpy.types import DataType
from armpy_numba_acc.program.fusion import is_fusing

_LEAST_PRODUCTS, _LEAST_WEIGHTS = 1 << 17, 1 << 13
"""Of a layer, either of them, for its products to be worth a less exact way: a microsecond."""


def is_large_product(layer: Layer) -> bool:
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


def is_bfloat16_product(layer: Layer) -> bool:
    """Whether a layer's products are computed two at a time by dot products of bfloat16.

    Notes
    -----
    Where there are few of them there is nothing to gain, and sums that cancel out may differ by
    more than what relaxed models allow.
    """
    values = [value for value in (*layer.inputs, *layer.outputs) if value is not None]
    are_floats = all(value.info.data_type is DataType.FLOAT32 for value in values)
    if not are_floats or not is_fusing(layer):
        return False
    if any(value is not None and value.data is None for value in layer.inputs[1:]):
        return False
    weights = values[1]
    *_, width, depth = weights.info.known_shape
    operation = layer.operation
    is_line = isinstance(operation, Convolution2d) and operation.dilation[1] == 1
    return depth * (width if is_line else 1) > 1 and is_large_product(layer)
