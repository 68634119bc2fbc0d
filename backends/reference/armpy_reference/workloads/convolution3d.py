"""CpuRef's Convolution3d."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armpy.ops import Convolution3d
from armpy.ops.convolution import count_groups
from armpy.ops.operation import Array
from armpy.ops.shapes import resolve_padding
from armpy_reference.quantized.accumulate import block_length
from armpy_reference.quantized.requantize import OutputStage
from armpy_reference.volumes import run_channels_last_3d, volume_shape
from armpy_reference.weighted import (
    PreparedWeights,
    WeightedWorkload,
    operand,
    pack_weights,
)


class Convolution3dWorkload(WeightedWorkload[Convolution3d]):
    """Multiply patches of the volume by the filters, one matrix product per block of rows.

    Accumulation and rounding as for `Convolution2dWorkload`.
    """

    def prepare(self) -> None:
        """Pack constant weights; see how much padding there is."""
        super().prepare()
        operation = self.operation
        self._kernel = operand(self.info, 1).known_shape[1:4]
        sizes = volume_shape(operand(self.info, 0).known_shape, operation.data_layout)[1:4]
        self._padding = [
            resolve_padding(
                operation.padding, size, k, operation.stride[axis], operation.dilation[axis], axis
            )
            for axis, (size, k) in enumerate(zip(sizes, self._kernel, strict=True))
        ]

    def pack(self, weights: Array, bias: Array | None) -> PreparedWeights:
        """Arrange the filters as one matrix per group, shape (groups, kd * kh * kw * i, o)."""
        channels = operand(self.info, 0).known_shape[self.operation.data_layout.channel_axis]
        groups = count_groups(channels, weights.shape[4])
        packed = pack_weights(self.info, self.operation.activation, weights, bias, channel_axis=0)
        depth = math.prod(weights.shape[1:])
        filters = packed.values.reshape(groups, weights.shape[0] // groups, depth)
        return replace(packed, values=np.ascontiguousarray(filters.transpose(0, 2, 1)))

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Convolve volume by volume."""
        packed = self.packed_weights(inputs)

        def convolve(volumes: Array, out: Array) -> None:
            for (volume, stage), result in zip(packed.per_image(volumes), out, strict=True):
                self._convolve(volume, packed, stage, result)

        run_channels_last_3d(convolve, inputs[0], outputs[0], self.operation.data_layout)

    def _convolve(
        self, volume: Array, packed: PreparedWeights, stage: OutputStage, out: Array
    ) -> None:
        """Convolve one volume, shape (d, h, w, i), through its patches."""
        _, height, width, filters = out.shape
        groups, depth, group_filters = packed.values.shape
        dtype = packed.values.dtype
        windows = self._windows(volume, packed.pad_value, out.shape)
        block = min(block_length(width * (depth + filters)), height)
        patches = np.empty((block * width, depth), dtype)
        sums = np.empty((block * width, filters), dtype)
        group_depth = volume.shape[3] // groups
        for plane, plane_windows in zip(out, windows, strict=True):
            for first in range(0, height, block or 1):
                part = plane_windows[first : first + block]
                target = plane[first : first + block].reshape(-1, filters)
                rows, part_sums = patches[: len(target)], sums[: len(target)]
                for group in range(groups):
                    channels = part[..., group * group_depth : (group + 1) * group_depth]
                    np.copyto(rows.reshape(channels.shape), channels, casting="unsafe")
                    where = slice(group * group_filters, (group + 1) * group_filters)
                    np.matmul(rows, packed.values[group], out=part_sums[:, where])
                stage.finish(part_sums, target)

    def _windows(self, volume: Array, pad_value: float, shape: Sequence[int]) -> Array:
        """View of the windows' elements, shape (od, oh, ow, kd, kh, kw, i)."""
        operation = self.operation
        padded = volume
        if any(map(any, self._padding)):
            padded = np.pad(volume, (*self._padding, (0, 0)), constant_values=pad_value)
        steps = padded.strides[:3]
        return np.lib.stride_tricks.as_strided(
            padded,
            (*shape[:3], *self._kernel, padded.shape[3]),
            (
                *(step * by for step, by in zip(steps, operation.stride, strict=True)),
                *(step * by for step, by in zip(steps, operation.dilation, strict=True)),
                padded.strides[3],
            ),
            writeable=False,
        )
