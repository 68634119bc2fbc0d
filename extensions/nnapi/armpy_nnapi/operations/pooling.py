"""Operations that summarise windows of an image."""

from __future__ import annotations

from armpy.graph import Value
from armpy.ops.pooling import Pooling2d, PoolingAlgorithm
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, TypeRow, rows
from armpy_nnapi.operations.lowering_context import LoweringContext
from armpy_nnapi.operations.shared import data_layout, fused_activation, quantized_like
from armpy_nnapi.operations.windows import (
    ACTIVATION,
    DEFAULT_NCHW,
    IMAGE,
    IMAGE_ROWS,
    STRIDES,
    require_image,
    stride,
    window_forms,
    window_padding,
)

_C = OperandCode

_FORMS = window_forms(
    (IMAGE,),
    (
        *STRIDES,
        Argument("filter_width", _C.INT32),
        Argument("filter_height", _C.INT32),
        ACTIVATION,
    ),
    (29, (DEFAULT_NCHW,)),
)
# L2_POOL_2D has no quantised kernel.
_FLOAT_ROWS = rows("T", (_C.TENSOR_FLOAT32, 27), (_C.TENSOR_FLOAT16, 29))


def _lower(lower: LoweringContext, algorithm: PoolingAlgorithm) -> Value:
    """The pooling; padding does not count."""
    require_image(lower)
    sizes = lower.integer("filter_height"), lower.integer("filter_width")
    operation = Pooling2d(
        algorithm,
        sizes,
        stride(lower),
        window_padding(lower, sizes),
        fused_activation(lower),
        data_layout(lower),
    )
    return lower.add(operation, lower["input"], output=quantized_like(lower))


def _pooling(
    code: OperationCode, algorithm: PoolingAlgorithm, summary: str, type_rows: tuple[TypeRow, ...]
) -> OperationDefinition:
    return OperationDefinition(
        code,
        summary,
        _FORMS,
        type_rows,
        lambda lower: _lower(lower, algorithm),
        allows_zero_sized=True,
    )


DEFINITIONS: tuple[OperationDefinition, ...] = (
    _pooling(
        OperationCode.AVERAGE_POOL_2D,
        PoolingAlgorithm.AVERAGE,
        "Mean of each window's elements inside the image.",
        IMAGE_ROWS,
    ),
    _pooling(
        OperationCode.L2_POOL_2D,
        PoolingAlgorithm.L2,
        "Root of the mean square of each window's elements inside the image.",
        _FLOAT_ROWS,
    ),
    _pooling(
        OperationCode.MAX_POOL_2D,
        PoolingAlgorithm.MAX,
        "Largest of each window's elements inside the image.",
        IMAGE_ROWS,
    ),
)
