"""Convolutions over the windows of volumes, along the stride and against it."""

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
    count_groups,
    splits_into_groups,
)
from armpy.ops.operation import Operand, Operation, TypeRule, require
from armpy.ops.shapes import (
    Padding,
    PaddingSpec,
    check_padding,
    check_step,
    image_shape,
    padded_bytes,
    spatial,
    window_output,
)
from armpy.tensor import Dimension, Shape, TensorInfo
from armpy.types import DataLayout, DataType

__all__ = ["Convolution3d", "TransposeConvolution3d"]

_NUM_AXES = 3
_LAYOUTS = (DataLayout.NDHWC, DataLayout.NCDHW)
_VOLUME = Operand("input", ranks=(5,))
_WEIGHTS = Operand("weights", ranks=(5,))


@dataclass(frozen=True, slots=True)
class Convolution3d(Operation):
    """Convolve a volume with filters.

    Notes
    -----
    input (n, d, h, w, i); weights (o, kd, kh, kw, i / groups); bias (o); output
    (n, od, oh, ow, o). Fewer channels in the weights than in the input make a grouped
    convolution. A quantised bias is int32 (int64 with 16-bit inputs) of scale
    ``input scale * weight scale``.

    References
    ----------
    Arm NN Convolution3d; TFLite CONV_3D, whose weights are (kd, kh, kw, i, o).
    """

    stride: tuple[int, int, int] = (1, 1, 1)
    dilation: tuple[int, int, int] = (1, 1, 1)
    """`stride` and `dilation`: depth, vertical, horizontal."""
    padding: PaddingSpec = Padding.VALID
    """SAME, VALID, or ((front, back), (top, bottom), (left, right)). Padding elements are real 0.
    """
    activation: FusedActivation = FusedActivation.NONE
    data_layout: DataLayout = DataLayout.NDHWC
    """NDHWC or NCDHW, of input and output. The weights' layout does not depend on it."""

    inputs: ClassVar[tuple[Operand, ...]] = (_VOLUME, _WEIGHTS, BIAS)
    type_rules: ClassVar[tuple[TypeRule, ...]] = WEIGHTED_RULES

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(n, od, oh, ow, o); sizes as in `window_output`."""
        volume, weights = inputs[0].shape or (), inputs[1].shape or ()
        _check_axes(self)
        _check_groups(volume[self.data_layout.channel_axis], weights)
        pairs = zip(spatial(volume, self.data_layout), weights[1:4], strict=True)
        sizes = [
            None
            if kernel is None
            else window_output(
                self.padding, size, kernel, self.stride[axis], self.dilation[axis], axis
            )
            for axis, (size, kernel) in enumerate(pairs)
        ]
        return (image_shape(self.data_layout, volume[0], sizes, weights[0]),)

    def scratch_bytes(
        self, inputs: Sequence[TensorInfo | None], outputs: Sequence[TensorInfo]
    ) -> int:
        """One volume with its padding."""
        volume, weights = inputs[0], inputs[1]
        assert volume is not None
        assert weights is not None
        kernel = weights.known_shape[1:4]
        return padded_bytes(
            volume, kernel, self.stride, self.dilation, self.padding, self.data_layout
        )

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Bias length, axis of the weights' scales."""
        check_sums(self.activation, outputs[0])
        check_bias(inputs, (inputs[1].shape or ())[0])
        check_weight_quantization(inputs, axes=(0,))


@dataclass(frozen=True, slots=True)
class TransposeConvolution3d(Operation):
    """Transposed convolution: spread every element over a window of the output volume.

    Notes
    -----
    input (n, d, h, w, i); weights (o, kd, kh, kw, i / groups); bias (o); output_shape int32
    (5); output (n, od, oh, ow, o). Fewer channels in the weights than in the input make a
    grouped convolution: output channels c with the same ``c // (o / groups)`` read the same
    part of the input's channels. Input element (z, y, x) meets output element
    (z * stride - front + kz * dilation, ...). Output elements that no window reaches are the
    bias. A given size that the windows overreach cuts them off.

    References
    ----------
    TFLite CONV_3D_TRANSPOSE, whose weights are (kd, kh, kw, o, i); ONNX ConvTranspose.
    """

    stride: tuple[int, int, int] = (1, 1, 1)
    dilation: tuple[int, int, int] = (1, 1, 1)
    """`stride` and `dilation`: depth, vertical, horizontal; of the windows over the output."""
    padding: PaddingSpec = Padding.VALID
    """What is cut off the output: ((front, back), (top, bottom), (left, right)), or as `Padding`
    says of a convolution from the output's size to the input's.
    """
    activation: FusedActivation = FusedActivation.NONE
    data_layout: DataLayout = DataLayout.NDHWC
    """NDHWC or NCDHW, of input and output."""
    output_shape: tuple[int, ...] | None = None
    """Shape of the output in the data layout; only its spatial sizes are used. Without it and
    without the operand, the output is as large as the windows reach less the padding (``input *
    stride`` with SAME).
    """

    inputs: ClassVar[tuple[Operand, ...]] = (
        _VOLUME,
        _WEIGHTS,
        BIAS,
        Operand("output_shape", ranks=(1,), becomes="output_shape"),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = tuple(
        TypeRule((*weighted.inputs, frozenset((DataType.SIGNED32,))), weighted.outputs)
        for weighted in WEIGHTED_RULES
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(n, od, oh, ow, o), the sizes as given or from the windows."""
        volume, weights = inputs[0].shape or (), inputs[1].shape or ()
        _check_axes(self)
        _check_groups(volume[self.data_layout.channel_axis], weights)
        sizes = self._sizes(inputs, volume, weights)
        require(
            all(size is None or size > 0 for size in sizes),
            "nothing is left of the output",
            expected="spatial sizes of 1 or more",
            actual=sizes,
        )
        return (image_shape(self.data_layout, volume[0], sizes, weights[0]),)

    def _sizes(
        self, inputs: Sequence[TensorInfo | None], volume: Shape, weights: Shape
    ) -> tuple[Dimension, ...]:
        """Spatial sizes of the output; None where not known yet."""
        if self.output_shape is not None:
            require(
                len(self.output_shape) == _NUM_AXES + 2 and min(self.output_shape) >= 0,
                "the output shape cannot be used",
                expected=f"{_NUM_AXES + 2} sizes of 0 or more",
                actual=self.output_shape,
            )
            return spatial(self.output_shape, self.data_layout)
        if len(inputs) > 3 and inputs[3] is not None:
            return (None,) * _NUM_AXES
        pairs = zip(spatial(volume, self.data_layout), weights[1:4], strict=True)
        return tuple(self._size(size, k, axis) for axis, (size, k) in enumerate(pairs))

    def _size(self, size: Dimension, kernel: Dimension, axis: int) -> Dimension:
        """One spatial size of the output from the input's; None if not known."""
        if size is None or kernel is None:
            return None
        if self.padding is Padding.SAME:
            return size * self.stride[axis]
        reach = (size - 1) * self.stride[axis] + (kernel - 1) * self.dilation[axis] + 1
        return reach if self.padding is Padding.VALID else reach - sum(self.padding[axis])

    def scratch_bytes(
        self, inputs: Sequence[TensorInfo | None], outputs: Sequence[TensorInfo]
    ) -> int:
        """The sums of one volume of the output, as float32 at least."""
        shape = outputs[0].known_shape
        elements = outputs[0].num_elements // max(shape[0], 1)
        return elements * max(4, outputs[0].data_type.size_bytes)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Bias length, axis of the weights' scales."""
        check_sums(self.activation, outputs[0])
        check_bias(inputs, (inputs[1].shape or ())[0])
        check_weight_quantization(inputs, axes=(0,))


def _check_axes(operation: Convolution3d | TransposeConvolution3d) -> None:
    """Check that layout, padding, strides and dilations are those of volumes."""
    require(
        operation.data_layout in _LAYOUTS,
        "the data layout is not a volume's",
        expected=" or ".join(layout.name for layout in _LAYOUTS),
        actual=operation.data_layout.name,
    )
    check_padding(operation.padding, _NUM_AXES)
    for what in ("stride", "dilation"):
        steps: tuple[int, ...] = getattr(operation, what)
        require(
            len(steps) == _NUM_AXES and min(steps) >= 1,
            f"the {what} cannot be used",
            expected=f"{_NUM_AXES} numbers of 1 or more",
            actual=steps,
        )
        for step in steps:
            check_step(what, step)


def _check_groups(channels: Dimension, weights: Shape) -> None:
    """Check that the weights' depth splits the channels, and the groups the filters."""
    filters, depth = weights[0], weights[4]
    if channels is None or depth is None:
        return
    require(
        splits_into_groups(channels, depth),
        "the weights' depth does not divide the input's channels",
        expected=f"a divisor of {channels} at the last axis of the weights",
        actual=depth,
    )
    groups = count_groups(channels, depth)
    require(
        filters is None or filters % groups == 0,
        "the filters do not split into the groups",
        expected=f"a multiple of {groups} filters",
        actual=filters,
    )
