"""Operations that summarise windows of an image."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar

from armpy.ops.activations import FusedActivation
from armpy.ops.data_movement import require_same_elements
from armpy.ops.operation import Operand, Operation, TypeRule, require, same
from armpy.ops.shapes import (
    Padding,
    PaddingSpec,
    check_padding,
    image_shape,
    spatial,
    window_output,
)
from armpy.records import dataclass
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataLayout, DataType

__all__ = ["Pooling2d", "PoolingAlgorithm"]


class PoolingAlgorithm(enum.Enum):
    """What a window's elements become; numbers are Arm NN's.

    L2 is the square root of the mean of the squares.
    """

    MAX = 0
    AVERAGE = 1
    L2 = 2


@dataclass(frozen=True, slots=True)
class Pooling2d(Operation):
    """Summarise the windows over each channel of an image.

    Attributes
    ----------
    algorithm : PoolingAlgorithm
    pool_size, stride : tuple of int
        Vertical, horizontal.
    padding : Padding or pairs of int
        SAME, VALID, or ((top, bottom), (left, right)), each smaller than the window. Padding
        elements do not count: neither for the largest element nor for the mean.
    activation : FusedActivation
    data_layout : DataLayout
        NHWC or NCHW.

    Notes
    -----
    input (n, h, w, c); output (n, oh, ow, c), quantised as the input.

    References
    ----------
    Arm NN Pooling2d with ``PaddingMethod::Exclude`` and rounding down; NNAPI and TFLite
    MAX_POOL_2D, AVERAGE_POOL_2D, L2_POOL_2D.
    """

    algorithm: PoolingAlgorithm = PoolingAlgorithm.MAX
    pool_size: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    padding: PaddingSpec = Padding.VALID
    activation: FusedActivation = FusedActivation.NONE
    data_layout: DataLayout = DataLayout.NHWC

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input", ranks=(4,)),)
    type_rules: ClassVar[tuple[TypeRule, ...]] = same(
        DataType.FLOAT32,
        DataType.FLOAT16,
        DataType.QASYMM_U8,
        DataType.QASYMM_S8,
        DataType.QSYMM_S16,
    )
    requantizes: ClassVar[bool] = False

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(n, oh, ow, c); sizes as in `window_output`."""
        image, layout = inputs[0].shape or (), self.data_layout
        check_padding(self.padding, 2)
        if not isinstance(self.padding, Padding):
            for axis, pair in enumerate(self.padding):
                require(
                    max(pair) < self.pool_size[axis],
                    "the padding holds whole windows",
                    expected=f"less than {self.pool_size[axis]} along spatial axis {axis}",
                    actual=pair,
                )
        sizes = tuple(
            window_output(self.padding, size, self.pool_size[axis], self.stride[axis], 1, axis)
            for axis, size in enumerate(spatial(image, layout))
        )
        return (image_shape(layout, image[0], sizes, image[layout.channel_axis]),)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Quantisation stays; squares are for floats."""
        data_type = inputs[0].data_type
        require(
            self.algorithm is not PoolingAlgorithm.L2 or data_type.is_float,
            "L2 pooling is for floats",
            expected="FLOAT32 or FLOAT16",
            actual=data_type.name,
        )
        require_same_elements(inputs[0], outputs[0], "output")

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if every element is a window of its own and is not clamped."""
        single = self.pool_size == self.stride == (1, 1)
        plain = self.activation is FusedActivation.NONE
        keeps_sign = self.algorithm is not PoolingAlgorithm.L2
        return 0 if single and plain and keeps_sign else None
