"""Layers that relaxed float32 computes less exactly."""

from __future__ import annotations

from armpy.graph import Layer
from armpy.ops import BatchMatMul
from armpy.types import DataType
from armpy_numba_acc.lowering.matrix_unit import least_unit_ns
from armpy_numba_acc.lowering.patches import Patches
from armpy_numba_acc.lowering.tiles import BF16, BF16_MATRIX, F32, fastest_ns
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.machine.space import Space
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.program.fusion import CONVOLUTIONS, is_fusing

_LEAST_PRODUCTS, _LEAST_WEIGHTS = 1 << 17, 1 << 13
"""Of a layer, either of them, for its products to be worth a less exact way: a microsecond."""

_WINOGRAD_SHARE = 0.7


def is_large_product(layer: Layer) -> bool:
    """Return whether a layer's products with its second operand take long."""
    weights, output = layer.inputs[1], layer.outputs[0].info
    assert weights is not None
    if isinstance(layer.operation, BatchMatMul):
        *_, rows, columns = weights.info.known_shape
        depth = rows * columns // output.known_shape[-1]
    else:
        depth = weights.info.num_elements // weights.info.known_shape[0]
    num_products = output.num_elements * depth
    return num_products >= _LEAST_PRODUCTS or weights.info.num_elements >= _LEAST_WEIGHTS


def is_faster_relaxed(choices: Choices, layer: Layer) -> bool:
    """Return whether a layer's large products take less time of operands rounded to bfloat16.

    A single row waits for its weights, of which bfloat16 has half the bytes. Winograd's way takes
    exact products of windows of three by three about half as many multiplications.
    """
    if not choices.isa.is_relaxed or not is_large_product(layer):
        return False
    weights, output = layer.inputs[1], layer.outputs[0].info
    assert weights is not None
    columns, depth = output.known_shape[-1], weights.info.num_elements
    if isinstance(layer.operation, BatchMatMul):
        *_, rows, width = weights.info.known_shape
        depth = rows * width
    depth = max(depth // columns, 1)
    num_pixels = output.num_elements // columns
    if num_pixels < 2:
        return True
    exact, rounded = (_in_line(num_pixels, depth, size) for size in (4, 2))
    exact_ns = fastest_ns(choices, F32, exact, columns)
    operation = layer.operation
    if isinstance(operation, CONVOLUTIONS) and operation.stride[-2:] == (1, 1):
        *_, height, width, _ = weights.info.known_shape
        exact_ns *= _WINOGRAD_SHARE if (height, width) == (3, 3) else 1
    return exact_ns > min(
        fastest_ns(choices, BF16, rounded, columns),
        least_unit_ns(choices, BF16_MATRIX, rounded, columns),
    )


def _in_line(num_pixels: int, depth: int, element_bytes: int) -> Patches:
    """Patches of so many pixels that lie one after the other."""
    nowhere = Buffer(Space.ARENA, 0)
    return Patches(nowhere, 1, 1, num_pixels, 0, 0, depth * element_bytes, (0,), depth)


def is_bfloat16_product(choices: Choices, layer: Layer) -> bool:
    """Return whether a layer's products are computed of bfloat16.

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
    is_line = isinstance(operation, CONVOLUTIONS) and operation.dilation[-1] == 1
    return depth * (width if is_line else 1) > 1 and is_faster_relaxed(choices, layer)
