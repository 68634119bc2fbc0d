"""Operations that change the resolution of images."""

from __future__ import annotations

from armpy.graph import Value
from armpy.ops.operation import require
from armpy.ops.quantizing import Quantize
from armpy.ops.resizing import Resize, ResizeMethod
from armpy.ops.shapes import spatial
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, forms, rows
from armpy_nnapi.operations.lowering_context import LoweringContext
from armpy_nnapi.operations.shared import data_layout, float32_product, quantized_like
from armpy_nnapi.operations.windows import DEFAULT_NCHW, IMAGE, NCHW, require_image

_C = OperandCode

_SIZES = tuple(
    Argument(side, "size", f"The output's {side}; a floating-point number multiplies the input's.")
    for side in ("width", "height")
)
_OUTPUTS = (Argument("output", "T"),)
# Two groups: a call may have the first switch alone.
_SWITCHES = (
    (30, (Argument("align_corners", _C.BOOL, default=False),)),
    (30, (Argument("half_pixel_centers", _C.BOOL, default=False),)),
)
_ROWS = rows(
    "T size",
    (_C.TENSOR_FLOAT32, _C.INT32, 27),
    (_C.TENSOR_FLOAT32, _C.FLOAT32, 29),
    (_C.TENSOR_FLOAT16, _C.INT32, 29),
    (_C.TENSOR_FLOAT16, _C.FLOAT16, 29),
    (_C.TENSOR_QUANT8_ASYMM, _C.INT32, 29),
    (_C.TENSOR_QUANT8_ASYMM, _C.FLOAT32, 29),
    (_C.TENSOR_QUANT8_ASYMM_SIGNED, _C.INT32, 30),
    (_C.TENSOR_QUANT8_ASYMM_SIGNED, _C.FLOAT32, 30),
)
# NNAPI's sizes are of type INT32.
_LARGEST_SIZE = 2**31 - 1


def _lower(lower: LoweringContext, method: ResizeMethod) -> Value:
    require_image(lower)
    layout = data_layout(lower)
    align = bool(lower.number("align_corners"))
    shift = bool(lower.number("half_pixel_centers"))
    require(not (align and shift), "align_corners and half_pixel_centers exclude each other")
    height, width = spatial(lower.shape("input"), layout)
    size = _size(lower, "height", height or 0), _size(lower, "width", width or 0)
    operation = Resize(size, method, align, shift, layout)
    source = lower["input"]
    if method is ResizeMethod.BILINEAR and source.info.data_type is DataType.QASYMM_S8:
        return _interpolate_signed(lower, operation)
    return lower.add(operation, source, output=quantized_like(lower))


def _interpolate_signed(lower: LoweringContext, operation: Resize) -> Value:
    """Interpolate int8 elements as the same numbers in uint8.

    Notes
    -----
    NNAPI interpolates either type in float32. The core's operation has TFLite's fixed-point
    weights for int8, which are off by more than a step where an image grows a lot.
    """
    signed = lower["input"].info
    shifted = Quantization.per_tensor(signed.scale, signed.zero_point + 128)
    unsigned = TensorInfo(None, DataType.QASYMM_U8, shifted)
    resized = lower.add(
        operation, lower.add(Quantize(), lower["input"], output=unsigned), output=unsigned
    )
    return lower.add(Quantize(), resized, output=quantized_like(lower))


def _size(lower: LoweringContext, name: str, size: int) -> int:
    """One size of the output, given as it is or as a factor."""
    number = lower.number(name)
    # Products are rounded to float32 before they are rounded down, whatever the factor's type.
    wanted = float32_product(size, number) if isinstance(number, float) else number
    require(
        1 <= wanted <= _LARGEST_SIZE,
        f"the output's {name} is out of range",
        expected=f"1 to {_LARGEST_SIZE}",
        actual=wanted,
    )
    return int(wanted)


DEFINITIONS: tuple[OperationDefinition, ...] = (
    OperationDefinition(
        OperationCode.RESIZE_BILINEAR,
        "Resize an image by interpolating between its elements.",
        forms((IMAGE, *_SIZES), (29, (DEFAULT_NCHW,)), *_SWITCHES, outputs=_OUTPUTS),
        _ROWS,
        lambda lower: _lower(lower, ResizeMethod.BILINEAR),
        allows_zero_sized=True,
    ),
    OperationDefinition(
        OperationCode.RESIZE_NEAREST_NEIGHBOR,
        "Resize an image by repeating or leaving out elements.",
        forms((IMAGE, *_SIZES, NCHW), *_SWITCHES, outputs=_OUTPUTS, feature_level=29),
        _ROWS,
        lambda lower: _lower(lower, ResizeMethod.NEAREST_NEIGHBOR),
        allows_zero_sized=True,
    ),
)
