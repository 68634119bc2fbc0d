"""Operations that summarise windows of an image."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.activations import FusedActivation
from armpy.ops.data_movement import require_same_elements
from armpy.ops.operation import Operand, Operation, TypeRule, require, rule, same
from armpy.ops.shapes import (
    Padding,
    PaddingSpec,
    check_padding,
    image_shape,
    spatial,
    window_output,
)
from armpy.tensor import Dimension, Shape, TensorInfo
from armpy.types import DataLayout, DataType

__all__ = ["MaxPoolWithIndices", "Pooling2d", "Pooling3d", "PoolingAlgorithm"]

_POOLED = same(
    DataType.FLOAT32,
    DataType.FLOAT16,
    DataType.QASYMM_U8,
    DataType.QASYMM_S8,
    DataType.QSYMM_S16,
)
_NUMBERS = (
    DataType.FLOAT32,
    DataType.FLOAT16,
    DataType.FLOAT64,
    DataType.SIGNED8,
    DataType.UNSIGNED8,
)


class PoolingAlgorithm(enum.Enum):
    """Algorithm that reduces a window's elements; numbers are Arm NN's.

    L2 is the square root of the mean of the squares.
    """

    MAX = 0
    AVERAGE = 1
    L2 = 2


@dataclass(frozen=True, slots=True)
class Pooling2d(Operation):
    """Summarise the windows over each channel of an image.

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
    """`pool_size` and `stride`: vertical, horizontal."""
    padding: PaddingSpec = Padding.VALID
    """SAME, VALID, or ((top, bottom), (left, right)), each smaller than the window. Padding
    elements do not count.
    """
    activation: FusedActivation = FusedActivation.NONE
    data_layout: DataLayout = DataLayout.NHWC

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input", ranks=(4,)),)
    type_rules: ClassVar[tuple[TypeRule, ...]] = _POOLED
    requantizes: ClassVar[bool] = False

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(n, oh, ow, c); sizes as in `window_output`."""
        return (_pooled_shape(self, inputs[0], (1, 1)),)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Quantisation stays; squares are for floats."""
        _check_elements(self, inputs, outputs)

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if every element is a window of its own and is not clamped."""
        single = self.pool_size == self.stride == (1, 1)
        plain = self.activation is FusedActivation.NONE
        keeps_sign = self.algorithm is not PoolingAlgorithm.L2
        return 0 if single and plain and keeps_sign else None


@dataclass(frozen=True, slots=True)
class Pooling3d(Operation):
    """Summarise the windows over each channel of a volume.

    Notes
    -----
    input (n, d, h, w, c); output (n, od, oh, ow, c), quantised as the input. A window without
    elements of the volume (gaps) gives the type's least number, or 0 as a mean.

    References
    ----------
    Arm NN Pooling3d with ``PaddingMethod::Exclude`` and rounding down; ONNX MaxPool,
    AveragePool.
    """

    algorithm: PoolingAlgorithm = PoolingAlgorithm.MAX
    pool_size: tuple[int, int, int] = (1, 1, 1)
    stride: tuple[int, int, int] = (1, 1, 1)
    dilation: tuple[int, int, int] = (1, 1, 1)
    """`pool_size`, `stride` and `dilation`: depth, vertical, horizontal."""
    padding: PaddingSpec = Padding.VALID
    """SAME, VALID, or ((front, back), (top, bottom), (left, right)), each smaller than the dilated
    window. Padding elements do not count.
    """
    activation: FusedActivation = FusedActivation.NONE
    data_layout: DataLayout = DataLayout.NDHWC
    """NDHWC or NCDHW."""

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input", ranks=(5,)),)
    type_rules: ClassVar[tuple[TypeRule, ...]] = _POOLED
    requantizes: ClassVar[bool] = False

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(n, od, oh, ow, c); sizes as in `window_output`."""
        require(
            len(self.data_layout.spatial_axes) == 3,
            "the data layout is not a volume's",
            expected="NDHWC or NCDHW",
            actual=self.data_layout.name,
        )
        return (_pooled_shape(self, inputs[0], self.dilation),)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Quantisation stays; squares are for floats."""
        _check_elements(self, inputs, outputs)


@dataclass(frozen=True, slots=True)
class MaxPoolWithIndices(Operation):
    """Find the largest element of each window over an image and its position (argmax pooling).

    Notes
    -----
    input (n, ..., c); output (n, ..., c); indices int64 (n, ..., c): positions within the channel
    of the image, in row-major order. The first of equal elements counts; NaN is above all numbers.
    A window outside the image gives the type's least number and -1.

    References
    ----------
    ONNX MaxPool with two outputs; PyTorch ``max_pool2d_with_indices``; TensorFlow
    ``max_pool_with_argmax``, whose positions count channels, too.
    """

    pool_size: tuple[int, ...] = (1, 1)
    stride: tuple[int, ...] = (1, 1)
    dilation: tuple[int, ...] = (1, 1)
    """`pool_size`, `stride` and `dilation`: a number for each of 1 to 3 spatial axes.
    """
    padding: PaddingSpec = Padding.VALID
    """Padding as of `Pooling3d`."""

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input", ranks=(3, 4, 5)),)
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("output"), Operand("indices"))
    type_rules: ClassVar[tuple[TypeRule, ...]] = tuple(
        rule((t,), (t, DataType.SIGNED64)) for t in _NUMBERS
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(n, ..., c) twice; sizes as in `window_output`."""
        shape = inputs[0].shape or ()
        for name in ("pool_size", "stride", "dilation"):
            numbers: tuple[int, ...] = getattr(self, name)
            require(
                len(numbers) == len(shape) - 2,
                f"the {name} does not have one number per spatial axis",
                expected=f"{len(shape) - 2} numbers",
                actual=numbers,
            )
        sizes = _window_sizes(self, shape[1:-1], self.dilation)
        result = (shape[0], *sizes, shape[-1])
        return result, result

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """The input's, and int64."""
        return inputs[0].data_type, DataType.SIGNED64


def _window_sizes(
    operation: Pooling2d | Pooling3d | MaxPoolWithIndices,
    sizes: Sequence[Dimension],
    dilation: Sequence[int],
) -> tuple[Dimension, ...]:
    """Numbers of windows along the spatial axes, after checks of the padding."""
    padding, kernel = operation.padding, operation.pool_size
    check_padding(padding, len(sizes))
    if not isinstance(padding, Padding):
        for axis, pair in enumerate(padding):
            extent = (kernel[axis] - 1) * dilation[axis] + 1
            require(
                max(pair) < extent,
                "the padding holds whole windows",
                expected=f"less than {extent} along spatial axis {axis}",
                actual=pair,
            )
    return tuple(
        window_output(padding, size, kernel[axis], operation.stride[axis], dilation[axis], axis)
        for axis, size in enumerate(sizes)
    )


def _pooled_shape(
    operation: Pooling2d | Pooling3d, info: TensorInfo, dilation: Sequence[int]
) -> Shape:
    image, layout = info.shape or (), operation.data_layout
    sizes = _window_sizes(operation, spatial(image, layout), dilation)
    return image_shape(layout, image[0], sizes, image[layout.channel_axis])


def _check_elements(
    operation: Pooling2d | Pooling3d, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
) -> None:
    """Check that quantisation stays, and that squares are of floats."""
    data_type = inputs[0].data_type
    require(
        operation.algorithm is not PoolingAlgorithm.L2 or data_type.is_float,
        "L2 pooling is for floats",
        expected="FLOAT32 or FLOAT16",
        actual=data_type.name,
    )
    require_same_elements(inputs[0], outputs[0], "output")
