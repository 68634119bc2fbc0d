"""BatchMatMul."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from armpy.graph import Layer
from armpy.ops import BatchMatMul
from armpy.ops.operands import Operands
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc import lowering
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.lowering.weighted_checks import LARGEST_FACTOR, WIDE
from armpy_numba_acc.packing.quantized import QUANTIZED_TYPES, product_factor
from armpy_numba_acc.program.registry import LoweringRule

if TYPE_CHECKING:
    from armpy_numba_acc.program.emitter import Emitter

_MOST_PRODUCTS = (1 << 31) // (255 * 255)
"""Of bytes less their zero points, whose sum fits int32."""

_MOST_WIDE_PRODUCTS = 1 << 16
"""Of 16-bit elements, whose sum times a multiplier of 15 bits fits int64."""


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32, or 8 or 16 bits in, and out; or sums of products of 8 bits."""
    operation, data_type = expect(operation, BatchMatMul), outputs[0].data_type
    if data_type is DataType.FLOAT32:
        return ""
    operands = Operands(operation, inputs)
    x, y = operands["x"], operands["y"]
    is_sums = data_type is DataType.SIGNED32 and x.data_type in QUANTIZED_TYPES
    if data_type not in (*QUANTIZED_TYPES, WIDE) and not is_sums:
        return f"{data_type.name} is not supported"
    if any(info.has_per_axis_quantization for info in (x, y, outputs[0])):
        return "scales that run along an axis are not supported"
    depth = x.known_shape[-2 if operation.transpose_x else -1]
    if depth > (_MOST_WIDE_PRODUCTS if data_type is WIDE else _MOST_PRODUCTS):
        return f"sums of {depth} products may not fit {64 if data_type is WIDE else 32} bits"
    if data_type is WIDE and (x.zero_point or y.zero_point or outputs[0].zero_point):
        return f"zero points of {WIDE.name} are not supported"
    if not is_sums and not product_factor(x, y, outputs[0]) < LARGEST_FACTOR:
        return f"scales that make sums {LARGEST_FACTOR:.0f} times as large are not supported"
    return ""


def _lower(emit: Emitter, layer: Layer) -> None:
    """See `lower_matrices`, which is imported when it is first needed."""
    lowering.lower_matrices(emit, layer)


LOWERINGS = {BatchMatMul: LoweringRule(check, _lower)}
