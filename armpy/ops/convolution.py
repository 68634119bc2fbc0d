"""Operations that multiply and accumulate with weights over windows of images and volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.activations import FusedActivation
from armpy.ops.operation import Operand, Operation, TypeRule, require, rule
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

__all__ = ["Convolution2d", "Convolution3d", "DepthwiseConvolution2d"]

_BYTES = (DataType.QASYMM_U8, DataType.QASYMM_S8)
_S8_WEIGHTS = (DataType.QASYMM_S8, DataType.QSYMM_S8)

WEIGHTED_RULES: tuple[TypeRule, ...] = (
    rule((DataType.FLOAT32,) * 3, (DataType.FLOAT32,)),
    rule((DataType.FLOAT16,) * 3, (DataType.FLOAT16,)),
    rule(
        (DataType.QASYMM_U8, (DataType.QASYMM_U8, *_S8_WEIGHTS), DataType.SIGNED32),
        (DataType.QASYMM_U8,),
    ),
    rule((DataType.QASYMM_S8, _S8_WEIGHTS, DataType.SIGNED32), (DataType.QASYMM_S8,)),
    rule(
        (DataType.QSYMM_S16, _S8_WEIGHTS, (DataType.SIGNED64, DataType.SIGNED32)),
        (DataType.QSYMM_S16,),
    ),
    rule((DataType.FLOAT32, _S8_WEIGHTS, DataType.FLOAT32), (DataType.FLOAT32,)),
    rule((_BYTES, (*_BYTES, DataType.QSYMM_S8), DataType.SIGNED32), (DataType.SIGNED32,)),
)
"""Type rules of operations with (input, weights, bias).

The last one but one is TFLite's hybrid form; in the last one the output is the sums themselves.
"""

BIAS = Operand("bias", optional=True, ranks=(1,))
_VOLUME_LAYOUTS = (DataLayout.NDHWC, DataLayout.NCDHW)


def check_bias(inputs: Sequence[TensorInfo], channels: Dimension) -> None:
    """Check that a bias has one element per output channel."""
    bias = inputs[2] if len(inputs) > 2 else None
    if bias is not None and bias.shape is not None:
        require(
            channels is None or bias.shape[0] is None or bias.shape[0] == channels,
            "the bias has the wrong length",
            expected=f"{channels} elements, one per output channel",
            actual=bias.shape[0],
        )


def check_sums(activation: FusedActivation, output: TensorInfo) -> None:
    """Check that nothing is done to sums that are the output themselves."""
    require(
        output.data_type is not DataType.SIGNED32 or activation is FusedActivation.NONE,
        "an output of sums has no activation function",
        expected=FusedActivation.NONE.name,
        actual=activation.name,
    )


def check_rounding(rounds_once: bool, source: TensorInfo) -> None:
    """Check that only 8-bit sums are said to be rounded once."""
    require(
        not rounds_once or source.data_type in _BYTES,
        "only sums of 8-bit elements can be rounded once",
        expected=" or ".join(data_type.name for data_type in _BYTES),
        actual=source.data_type.name,
    )


def check_weight_quantization(inputs: Sequence[TensorInfo], axes: tuple[int, ...]) -> None:
    """Check that per-axis scales of the weights run along an allowed axis."""
    weights = inputs[1]
    quantization = weights.quantization
    if quantization is None or quantization.axis is None or weights.shape is None:
        return
    require(
        quantization.axis in axes,
        "the weights' scales run along the wrong axis",
        expected=" or ".join(f"axis {axis}" for axis in axes),
        actual=quantization.axis,
    )
    size = weights.shape[quantization.axis]
    require(
        size is None or size == len(quantization.scales),
        "the number of the weights' scales is wrong",
        expected=f"{size}, one per output channel",
        actual=len(quantization.scales),
    )


def count_groups(channels: int, depth: int) -> int:
    """Groups of channels, each as deep as the filters; one if there are no channels."""
    return channels // depth if depth else 1


def splits_into_groups(channels: int, depth: int) -> bool:
    """Return whether filters of a depth split channels into groups; none of both are one group."""
    return channels == depth or (channels > 0 and depth > 0 and channels % depth == 0)


def operands_of_rank(rank: int) -> tuple[Operand, ...]:
    """Input and weights of a rank, and the bias."""
    return Operand("input", ranks=(rank,)), Operand("weights", ranks=(rank,)), BIAS


def check_weighted(
    activation: FusedActivation,
    inputs: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
    axis: int = 0,
) -> None:
    """Check plain sums, the bias and the scales of weights with the output channels at `axis`."""
    check_sums(activation, outputs[0])
    check_bias(inputs, (inputs[1].shape or ())[axis])
    check_weight_quantization(inputs, axes=(axis,))


def check_groups(channels: Dimension, weights: Shape) -> None:
    """Check that the weights' depth splits the channels, and the groups the filters."""
    filters, depth = weights[0], weights[-1]
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


@dataclass(frozen=True, slots=True)
class WindowedConvolution(Operation):
    """Base of convolutions over windows along two or three spatial axes."""

    stride: tuple[int, ...] = (1, 1)
    dilation: tuple[int, ...] = (1, 1)
    """`stride` and `dilation`: along each spatial axis, the outermost first."""
    padding: PaddingSpec = Padding.VALID
    """SAME, VALID, or (before, after) per spatial axis, of real 0."""
    activation: FusedActivation = FusedActivation.NONE
    data_layout: DataLayout = DataLayout.NHWC
    """Layout of input and output. The weights' layout does not depend on it."""

    inputs: ClassVar[tuple[Operand, ...]] = operands_of_rank(4)
    type_rules: ClassVar[tuple[TypeRule, ...]] = WEIGHTED_RULES

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(n, ..., o); sizes as in `window_output`."""
        image, weights = inputs[0].shape or (), inputs[1].shape or ()
        check_groups(image[self.data_layout.channel_axis], weights)
        return (self._shape(image, weights[1:-1], weights[0]),)

    def _shape(self, image: Shape, kernel: Shape, channels: Dimension) -> Shape:
        """Shape of the output for the spatial sizes of the filters."""
        check_padding(self.padding, len(kernel))
        axes = enumerate(zip(spatial(image, self.data_layout), kernel, strict=True))
        sizes = [
            None
            if k is None
            else window_output(self.padding, size, k, self.stride[i], self.dilation[i], i)
            for i, (size, k) in axes
        ]
        return image_shape(self.data_layout, image[0], sizes, channels)

    def scratch_bytes(
        self, inputs: Sequence[TensorInfo | None], outputs: Sequence[TensorInfo]
    ) -> int:
        """One image or volume with its padding."""
        image, weights = inputs[0], inputs[1]
        assert image is not None
        assert weights is not None
        kernel = weights.known_shape[1:-1]
        return padded_bytes(
            image, kernel, self.stride, self.dilation, self.padding, self.data_layout
        )

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Bias length, axis of the weights' scales, no activation of plain sums."""
        check_weighted(self.activation, inputs, outputs)


@dataclass(frozen=True, slots=True)
class Convolution2d(WindowedConvolution):
    """Convolve an image with filters.

    Notes
    -----
    input (n, h, w, i); weights (o, kh, kw, i / groups); bias (o); output (n, oh, ow, o). Weights
    with fewer channels than the input make a grouped convolution. A quantised bias is int32 (int64
    with 16-bit inputs) of scale ``input scale * weight scale``. An int32 output of 8-bit inputs is
    the sums, of that scale, without an activation.

    References
    ----------
    Arm NN Convolution2d; NNAPI CONV_2D, GROUPED_CONV_2D; TFLite CONV_2D; ONNX ConvInteger.
    """

    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    rounds_once: bool = False
    """Whether 8-bit sums are multiplied by the real factor and rounded once, half away from zero,
    as in `FullyConnected`, not twice in fixed point, as in TFLite's convolutions.
    """

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Bias length, axis of the weights' scales, no activation of plain sums, rounding."""
        check_rounding(self.rounds_once, inputs[0])
        check_weighted(self.activation, inputs, outputs)


@dataclass(frozen=True, slots=True)
class DepthwiseConvolution2d(WindowedConvolution):
    """Convolve each channel of an image with filters of its own.

    Notes
    -----
    input (n, h, w, i); weights (1, kh, kw, o) with o a multiple of i; bias (o); output (n, oh, ow,
    o). Output channel c reads input channel ``c // (o / i)``.

    References
    ----------
    Arm NN DepthwiseConvolution2d; NNAPI and TFLite DEPTHWISE_CONV_2D, whose depth
    multiplier is o / i here.
    """

    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    rounds_once: bool = False
    """Whether 8-bit sums are rounded once, as for `Convolution2d`."""

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(n, oh, ow, o); sizes as in `window_output`."""
        image, weights = inputs[0].shape or (), inputs[1].shape or ()
        channels, filters = image[self.data_layout.channel_axis], weights[3]
        require(
            weights[0] in (1, None),
            "the weights' first dimension is wrong",
            expected="1",
            actual=weights[0],
        )
        require(
            channels is None or filters is None or splits_into_groups(filters, channels),
            "the filters are not a multiple of the input's channels",
            expected=f"a multiple of {channels}",
            actual=filters,
        )
        return (self._shape(image, weights[1:3], filters),)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Bias length, axis of the weights' scales, no activation of plain sums, rounding."""
        check_rounding(self.rounds_once, inputs[0])
        check_weighted(self.activation, inputs, outputs, axis=3)


@dataclass(frozen=True, slots=True)
class Convolution3d(WindowedConvolution):
    """Convolve a volume with filters.

    Notes
    -----
    input (n, d, h, w, i); weights (o, kd, kh, kw, i / groups); bias (o); output (n, od, oh, ow, o).
    Groups and bias as of ``Convolution2d``.

    References
    ----------
    Arm NN Convolution3d; TFLite CONV_3D, whose weights are (kd, kh, kw, i, o).
    """

    stride: tuple[int, int, int] = (1, 1, 1)
    dilation: tuple[int, int, int] = (1, 1, 1)
    data_layout: DataLayout = DataLayout.NDHWC
    """NDHWC or NCDHW, of input and output. The weights' layout does not depend on it."""

    inputs: ClassVar[tuple[Operand, ...]] = operands_of_rank(5)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(n, od, oh, ow, o); sizes as in `window_output`."""
        check_volume(self)
        return WindowedConvolution.infer_shapes(self, inputs)


def check_volume(operation: WindowedConvolution) -> None:
    """Check that layout, padding, strides and dilations are those of volumes."""
    require(
        operation.data_layout in _VOLUME_LAYOUTS,
        "the data layout is not a volume's",
        expected=" or ".join(layout.name for layout in _VOLUME_LAYOUTS),
        actual=operation.data_layout.name,
    )
    check_padding(operation.padding, 3)
    for name in ("stride", "dilation"):
        steps: tuple[int, ...] = getattr(operation, name)
        require(
            len(steps) == 3,
            f"the {name} does not have one number per axis",
            expected="3 numbers",
            actual=steps,
        )
        require(min(steps) >= 1, f"the {name} is not positive", expected="1 or more", actual=steps)
        for step in steps:
            check_step(name, step)
