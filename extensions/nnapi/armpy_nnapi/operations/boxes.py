"""Quantisation of boxes and of results from them, shared by the operations on boxes."""

from __future__ import annotations

from armpy.ops.operation import require
from armpy.tensor import TensorInfo
from armpy_nnapi.codes import OperandCode
from armpy_nnapi.operations.form import Argument
from armpy_nnapi.operations.lowering_context import LoweringContext

# Eighths of a pixel, of which 16 bits count up to 8191 pixels.
BOX_SCALE = 0.125
"""Scale of quantised boxes and image sizes."""

BATCH_INDICES = Argument(
    "batch_indices", OperandCode.TENSOR_INT32, "The image that each box belongs to.", ranks=(1,)
)


def require_box_scale(lower: LoweringContext, *names: str) -> None:
    """Check the quantisation of boxes and image sizes, if they are quantised.

    Raises
    ------
    LayerValidationError
        If the scale is not `BOX_SCALE` or the zero point is not 0.
    """
    for name in names:
        info = lower[name].info
        require(
            # NNAPI's header has -128 beside signed scores; its kernels and tests have 0.
            not info.data_type.is_quantized or (info.scale == BOX_SCALE and info.zero_point == 0),
            f"{name} has the wrong quantisation",
            expected=f"scale {BOX_SCALE} and zero point 0",
            actual=f"{info.scale:g} and {info.zero_point}",
        )


def box_output(lower: LoweringContext, index: int = 0) -> TensorInfo:
    """Info of an output that holds boxes.

    Raises
    ------
    LayerValidationError
        If an output of the model is declared with another quantisation.
    """
    return lower.fixed_output(BOX_SCALE, 0, index)


def output_like(lower: LoweringContext, name: str, index: int = 0) -> TensorInfo:
    """Info of an output that is quantised like an input.

    Raises
    ------
    LayerValidationError
        If an output of the model is declared with another quantisation.
    """
    source = lower[name].info
    return lower.fixed_output(source.scale, source.zero_point, index)
