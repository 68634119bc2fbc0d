"""Convolution against the stride: each input element spreads over a window of the output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from armpy.ops.activations import FusedActivation
from armpy.ops.convolution import (
    BIAS,
    WEIGHTED_RULES,
    check_bias,
    check_sums,
    check_weight_quantization,
)
from armpy.ops.operation import Operand, Operation, TypeRule, require
from armpy.ops.shapes import (
    Padding,
    PaddingSpec,
    check_padding,
    check_step,
    image_shape,
    spatial,
)
from armpy.tensor import Dimension, Shape, TensorInfo
from armpy.types import DataLayout, DataType

__all__ = ["TransposeConvolution2d"]


@dataclass(frozen=True, slots=True)
class TransposeConvolution2d(Operation):
    """Spread every input element over a window of the output, weighted by filters.

    Notes
    -----
    input (n, h, w, i); weights (o, kh, kw, i); bias (o); output_shape int32 (4); output
    (n, oh, ow, o). Input element (y, x) meets output element (y * stride - top + ky, ...).
    Output elements that no window reaches are the bias. A given size that the windows overreach
    cuts them off.

    References
    ----------
    Arm NN TransposeConvolution2d; NNAPI TRANSPOSE_CONV_2D; TFLite TRANSPOSE_CONV.
    """

    stride: tuple[int, int] = (1, 1)
    """Vertical, horizontal; of the windows over the output."""
    padding: PaddingSpec = Padding.VALID
    """What is cut off the output: ((top, bottom), (left, right)), or as `Padding` says of a
    convolution from the output's size to the input's.
    """
    activation: FusedActivation = FusedActivation.NONE
    data_layout: DataLayout = DataLayout.NHWC
    """NHWC or NCHW, of input and output."""
    output_shape: tuple[int, ...] | None = None
    """Shape of the output in the data layout; only its spatial sizes are used. Without it and
    without the operand, the output is as large as the windows reach less the padding (``input *
    stride`` with SAME).
    """

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input", ranks=(4,)),
        Operand("weights", ranks=(4,)),
        BIAS,
        Operand("output_shape", ranks=(1,), becomes="output_shape"),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = tuple(
        TypeRule((*weighted.inputs, frozenset((DataType.SIGNED32,))), weighted.outputs)
        for weighted in WEIGHTED_RULES
    )

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
        sizes = self._sizes(inputs, image, weights)
        return (image_shape(self.data_layout, image[0], sizes, weights[0]),)

    def _sizes(
        self, inputs: Sequence[TensorInfo | None], image: Shape, weights: Shape
    ) -> tuple[Dimension, ...]:
        """Spatial sizes of the output; None where not known yet."""
        if self.output_shape is not None:
            require(
                len(self.output_shape) == 4 and min(self.output_shape) >= 0,
                "the output shape cannot be used",
                expected="4 sizes of 0 or more",
                actual=self.output_shape,
            )
            sizes = spatial(self.output_shape, self.data_layout)
        elif len(inputs) > 3 and inputs[3] is not None:
            return (None, None)
        else:
            pairs = zip(spatial(image, self.data_layout), weights[1:3], strict=True)
            sizes = tuple(self._size(size, k, axis) for axis, (size, k) in enumerate(pairs))
        require(
            all(size is None or size > 0 for size in sizes),
            "nothing is left of the output",
            expected="spatial sizes of 1 or more",
            actual=sizes,
        )
        return sizes

    def _size(self, size: Dimension, kernel: Dimension, axis: int) -> Dimension:
        """One spatial size of the output from the input's; None if not known."""
        if size is None or kernel is None:
            return None
        if self.padding is Padding.SAME:
            return size * self.stride[axis]
        reach = (size - 1) * self.stride[axis] + kernel
        if self.padding is Padding.VALID:
            return reach
        return reach - sum(self.padding[axis])

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Bias length, axis of the weights' scales."""
        check_sums(self.activation, outputs[0])
        check_bias(inputs, (inputs[1].shape or ())[0])
        check_weight_quantization(inputs, axes=(0,))
