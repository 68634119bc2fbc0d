"""Arguments of operations on images, and of those that look at them through windows."""

from __future__ import annotations

from armpy.ops.operation import require
from armpy.ops.shapes import PaddingSpec
from armpy_nnapi.codes import OperandCode
from armpy_nnapi.operations.form import Argument, Form, forms, rows
from armpy_nnapi.operations.lowering_context import LoweringContext
from armpy_nnapi.operations.shared import implicit_padding

_C = OperandCode

IMAGE = Argument("input", "T", ranks=(4,))
ACTIVATION = Argument("activation", _C.INT32, "FuseCode")
NCHW = Argument("nchw", _C.BOOL, "Whether images are (n, c, h, w) instead of (n, h, w, c).")
# Of the operations that are older than layouts, and mean NHWC without it.
DEFAULT_NCHW = Argument("nchw", _C.BOOL, NCHW.text, default=False)
STRIDES = (Argument("stride_width", _C.INT32), Argument("stride_height", _C.INT32))
DILATIONS = (
    Argument("dilation_width", _C.INT32, default=1),
    Argument("dilation_height", _C.INT32, default=1),
)
IMPLICIT_PADDING = (Argument("padding", _C.INT32, "PaddingCode"),)
EXPLICIT_PADDING = tuple(
    Argument(f"padding_{side}", _C.INT32) for side in ("left", "right", "top", "bottom")
)

IMAGE_ROWS = rows(
    "T",
    (_C.TENSOR_FLOAT32, 27),
    (_C.TENSOR_FLOAT16, 29),
    (_C.TENSOR_QUANT8_ASYMM, 27),
    (_C.TENSOR_QUANT8_ASYMM_SIGNED, 30),
)
"""Types of operations whose output is of the input's type."""


def window_forms(
    tensors: tuple[Argument, ...],
    scalars: tuple[Argument, ...],
    *trailing: tuple[int, tuple[Argument, ...]],
    feature_level: int = 27,
) -> tuple[Form, ...]:
    """Forms with implicit and with explicit padding.

    Parameters
    ----------
    tensors, scalars : tuple of Argument
        Arguments before and after the padding.
    *trailing : tuple of (int, tuple of Argument)
        Arguments as for `forms`.
    """
    output = (Argument("output", "T"),)
    return tuple(
        form
        for padding in (IMPLICIT_PADDING, EXPLICIT_PADDING)
        for form in forms(
            (*tensors, *padding, *scalars), *trailing, outputs=output, feature_level=feature_level
        )
    )


def require_image(lower: LoweringContext) -> None:
    """Check that no size of the input but the batch is 0.

    Raises
    ------
    LayerValidationError
        If there are no rows, columns or channels.
    """
    shape = lower.shape("input")
    require(
        all(shape[1:]),
        "the images have no elements",
        expected="only the batch to be 0, if any size is",
        actual=shape,
    )


def require_filter(lower: LoweringContext) -> None:
    """Check that the filter has elements.

    Raises
    ------
    LayerValidationError
        If one of its sizes is 0.
    """
    shape = lower.shape("filter")
    require(all(shape), "the filter has no elements", expected="sizes of 1 or more", actual=shape)


def stride(lower: LoweringContext) -> tuple[int, int]:
    """The stride; vertical, horizontal."""
    return lower.integer("stride_height"), lower.integer("stride_width")


def window_padding(lower: LoweringContext, extents: tuple[int, ...]) -> PaddingSpec:
    """The padding, of either form.

    Parameters
    ----------
    extents : tuple of int
        Sizes of the windows, dilation included; vertical, horizontal.

    Raises
    ------
    LayerValidationError
        If whole windows lie in explicit padding.
    """
    if "padding" in lower:
        return implicit_padding(lower)
    padding = explicit_padding(lower)
    for pair, extent in zip(padding, extents, strict=True):
        # As in NNAPI: some windows would see nothing but padding.
        require(
            max(pair) < extent,
            "the padding holds whole windows",
            expected=f"less than {extent}, the window's size",
            actual=pair,
        )
    return padding


def explicit_padding(lower: LoweringContext) -> tuple[tuple[int, int], tuple[int, int]]:
    """Explicit padding as it is given: ((top, bottom), (left, right))."""
    return (
        (lower.integer("padding_top"), lower.integer("padding_bottom")),
        (lower.integer("padding_left"), lower.integer("padding_right")),
    )
