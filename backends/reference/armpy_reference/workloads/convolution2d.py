"""CpuRef's Convolution2d."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armpy.ops import Convolution2d
from armpy.ops.convolution import count_groups
from armpy.ops.operation import Array
from armpy_reference.quantized.accumulate import block_length, product_into
from armpy_reference.quantized.requantize import OutputStage
from armpy_reference.weighted import (
    PreparedWeights,
    WeightedWorkload,
    has_several_scales,
    operand,
    pack_weights,
)
from armpy_reference.windows import PaddedRows, Windows, run_channels_last


class Convolution2dWorkload(WeightedWorkload[Convolution2d]):
    """Multiply patches of the image by the filters, one matrix product per block of rows.

    Floats accumulate in float32. Quantised sums are exact integers, rescaled as by TFLite's
    reference kernels: rounded twice (once, with a multiplier of 16 bits, for 16-bit inputs
    without a 32-bit bias), then clamped. Float inputs of quantised weights are quantised by
    their range, image by image: with a zero point if the weights have several scales or groups.
    """

    def prepare(self) -> None:
        """Pack constant weights; lay the windows over the image."""
        super().prepare()
        operation = self.operation
        self._windows = Windows.over(
            operand(self.info, 0),
            operation.data_layout,
            operand(self.info, 1).known_shape[1:3],
            operation.stride,
            operation.padding,
            operation.dilation,
        )

    def pack(self, weights: Array, bias: Array | None) -> PreparedWeights:
        """Arrange the filters as one matrix per group, shape (groups, kh * kw * i, o)."""
        channels = operand(self.info, 0).known_shape[self.operation.data_layout.channel_axis]
        groups = count_groups(channels, weights.shape[3])
        packed = pack_weights(
            self.info,
            self.operation.activation,
            weights,
            bias,
            channel_axis=0,
            rounds_once=self.operation.rounds_once,
            has_asymmetric_range=groups != 1 or has_several_scales(operand(self.info, 1)),
        )
        depth = math.prod(weights.shape[1:])
        filters = packed.values.reshape(groups, weights.shape[0] // groups, depth)
        matrices = filters.transpose(0, 2, 1)
        if not np.may_share_memory(filters, weights):
            matrices = np.ascontiguousarray(matrices)
        return replace(packed, values=matrices)

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Convolve; a pointwise filter needs no patches."""
        packed = self.packed_weights(inputs)

        def convolve(images: Array, out: Array) -> None:
            for (image, stage), result in zip(packed.per_image(images), out, strict=True):
                if self._windows.are_single_elements and len(packed.values) == 1:
                    rows, sums = (
                        array.reshape(array.shape[0] * array.shape[1], array.shape[2])
                        for array in (image, result)
                    )
                    product_into(rows, packed.values[0], stage, sums)
                else:
                    self._convolve(image, packed, stage, result)

        run_channels_last(convolve, inputs[0], outputs[0], self.operation.data_layout)

    def _convolve(
        self, image: Array, packed: PreparedWeights, stage: OutputStage, out: Array
    ) -> None:
        """Convolve one image, shape (h, w, i), through its patches."""
        height, width, filters = out.shape
        groups, depth, group_filters = packed.values.shape
        dtype = packed.values.dtype
        block = min(block_length(width * (depth + filters)), height)
        rows = PaddedRows(self._windows, block, image.shape[2], dtype, packed.pad_value)
        patches = np.empty((block * width, depth), dtype)
        scratch = None if out.dtype == dtype else np.empty((block * width, filters), dtype)
        group_depth = image.shape[2] // groups
        for first in range(0, height, block):
            count = min(block, height - first)
            rows.load(image, first, count)
            target = out[first : first + count].reshape(-1, filters)
            sums = target if scratch is None else scratch[: len(target)]
            part, windows = patches[: len(target)], rows.patches(count)
            for group in range(groups):
                channels = windows[..., group * group_depth : (group + 1) * group_depth]
                np.copyto(part.reshape(channels.shape), channels)
                where = slice(group * group_filters, (group + 1) * group_filters)
                np.matmul(part, packed.values[group], out=sums[:, where])
            stage.finish(sums, target)
