"""Convolution against the stride: each input element spreads over a window of the output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.activations import FusedActivation
from armpy.ops.convolution import (
    WEIGHTED_RULES,
    WindowedConvolution,
    check_groups,
    check_volume,
    check_weighted,
    operands_of_rank,
)
from armpy.ops.operation import Operand, Operation, TypeRule, require
from armpy.ops.shapes import Padding, PaddingSpec, check_padding, check_step, image_shape, spatial
from armpy.tensor import Dimension, Shape, TensorInfo
from armpy.types import DataLayout, DataType

__all__ = ["TransposeConvolution2d", "TransposeConvolution3d"]

_OUTPUT_SHAPE = Operand("output_shape", ranks=(1,), becomes="output_shape")
_RULES = tuple(
    TypeRule((*weighted.inputs, frozenset((DataType.SIGNED32,))), weighted.outputs)
    for weighted in WEIGHTED_RULES
)


@dataclass(frozen=True, slots=True)
class TransposeConvolution2d(Operation):
    """Spread input elements over windows of the output, weighted by filters.

    Notes
    -----
    input (n, h, w, i); weights (o, kh, kw, i); bias (o); output_shape int32 (4); output (n, oh, ow,
    o). Input element (y, x) meets output element (y * stride - top + ky, ...). Output elements that
    no window reaches are the bias; windows are cut off at a given size.

    References
    ----------
    Arm NN TransposeConvolution2d; NNAPI TRANSPOSE_CONV_2D; TFLite TRANSPOSE_CONV.
    """

    stride: tuple[int, int] = (1, 1)
    """Vertical, horizontal; of the windows over the output."""
    padding: PaddingSpec = Padding.VALID
    """The cropped edges of the output: ((top, bottom), (left, right)), or as `Padding` says of a
    convolution from the output's size to the input's.
    """
    activation: FusedActivation = FusedActivation.NONE
    data_layout: DataLayout = DataLayout.NHWC
    """NHWC or NCHW, of input and output."""
    output_shape: tuple[int, ...] | None = None
    """Shape of the output in the data layout, of which spatial sizes are used. If neither it nor
    the operand is given, the output is as large as the windows reach less the padding (``input *
    stride`` with SAME).
    """

    inputs: ClassVar[tuple[Operand, ...]] = (
        *operands_of_rank(4),
        _OUTPUT_SHAPE,
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = _RULES

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(n, oh, ow, o), the sizes as given or from the windows."""
        image, weights = inputs[0].shape or (), inputs[1].shape or ()
        channels = image[self.data_layout.channel_axis]
        require(
            channels is None or weights[3] is None or channels == weights[3],
            "the weights' depth is not the input's number of channels",
            expected=f"{channels} at the last axis of the weights",
            actual=weights[3],
        )
        check_padding(self.padding, 2)
        for step in self.stride:
            check_step("stride", step)
        sizes = _sizes(self, (1, 1), inputs, image, weights)
        return (image_shape(self.data_layout, image[0], sizes, weights[0]),)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Bias length, axis of the weights' scales."""
        check_weighted(self.activation, inputs, outputs)


@dataclass(frozen=True, slots=True)
class TransposeConvolution3d(WindowedConvolution):
    """Transposed convolution: spread elements over windows of the output volume.

    Notes
    -----
    input (n, d, h, w, i); weights (o, kd, kh, kw, i / groups); bias (o); output_shape int32 (5);
    output (n, od, oh, ow, o). In a grouped convolution, output channels c of equal ``c // (o /
    groups)`` read the same input channels. Input element (z, y, x) meets output element (z * stride
    - front + kz * dilation, ...). Output elements that no window reaches are the bias; windows are
    cut off at a given size.

    References
    ----------
    TFLite CONV_3D_TRANSPOSE, whose weights are (kd, kh, kw, o, i); ONNX ConvTranspose.
    """

    stride: tuple[int, int, int] = (1, 1, 1)
    dilation: tuple[int, int, int] = (1, 1, 1)
    """`stride` and `dilation`: depth, vertical, horizontal; of the windows over the output."""
    padding: PaddingSpec = Padding.VALID
    """The output's cropped edges: ((front, back), (top, bottom), (left, right)), or as `Padding`
    says of a convolution from the output's size to the input's.
    """
    data_layout: DataLayout = DataLayout.NDHWC
    """NDHWC or NCDHW, of input and output."""
    output_shape: tuple[int, ...] | None = None
    """Shape of the output in the data layout, of which spatial sizes are used. If neither it nor
    the operand is given, the output is as large as the windows reach less the padding (``input *
    stride`` with SAME).
    """

    inputs: ClassVar[tuple[Operand, ...]] = (
        *operands_of_rank(5),
        _OUTPUT_SHAPE,
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = _RULES

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(n, od, oh, ow, o), the sizes as given or from the windows."""
        volume, weights = inputs[0].shape or (), inputs[1].shape or ()
        check_volume(self)
        check_groups(volume[self.data_layout.channel_axis], weights)
        sizes = _sizes(self, self.dilation, inputs, volume, weights)
        return (image_shape(self.data_layout, volume[0], sizes, weights[0]),)

    def scratch_bytes(
        self, inputs: Sequence[TensorInfo | None], outputs: Sequence[TensorInfo]
    ) -> int:
        """The sums of one volume of the output, as float32 at least."""
        shape = outputs[0].known_shape
        elements = outputs[0].num_elements // max(shape[0], 1)
        return elements * max(4, outputs[0].data_type.size_bytes)


def _sizes(
    operation: TransposeConvolution2d | TransposeConvolution3d,
    dilation: Sequence[int],
    inputs: Sequence[TensorInfo | None],
    image: Shape,
    weights: Shape,
) -> tuple[Dimension, ...]:
    """Spatial sizes of the output; None where not known yet."""
    layout, rank = operation.data_layout, len(image)
    if operation.output_shape is not None:
        require(
            len(operation.output_shape) == rank,
            "the output shape has the wrong rank",
            expected=str(rank),
            actual=operation.output_shape,
        )
        require(
            min(operation.output_shape) >= 0,
            "a size of the output shape is negative",
            expected="0 or more",
            actual=operation.output_shape,
        )
        sizes = spatial(operation.output_shape, layout)
    elif len(inputs) > 3 and inputs[3] is not None:
        return (None,) * (rank - 2)
    else:
        padding, stride = operation.padding, operation.stride
        axes = enumerate(zip(spatial(image, layout), weights[1:-1], strict=True))
        sizes = tuple(_size(padding, size, k, stride[i], dilation[i], i) for i, (size, k) in axes)
    require(
        all(size is None or size > 0 for size in sizes),
        "nothing is left of the output",
        expected="spatial sizes of 1 or more",
        actual=sizes,
    )
    return sizes


def _size(
    padding: PaddingSpec, size: Dimension, kernel: Dimension, stride: int, dilation: int, axis: int
) -> Dimension:
    """One spatial size of the output from the input's; None if not known."""
    if size is None or kernel is None:
        return None
    if padding is Padding.SAME:
        return size * stride
    reach = (size - 1) * stride + (kernel - 1) * dilation + 1
    return reach if padding is Padding.VALID else reach - sum(padding[axis])
