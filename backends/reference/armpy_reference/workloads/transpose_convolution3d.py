"""CpuRef's TransposeConvolution3d."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armpy.ops import TransposeConvolution3d
from armpy.ops.convolution import count_groups
from armpy.ops.operation import Array
from armpy.ops.shapes import resolve_padding
from armpy_reference.volumes import run_channels_last_3d, volume_shape
from armpy_reference.weighted import (
    PreparedWeights,
    WeightedWorkload,
    operand,
    pack_weights,
)
from armpy_reference.workloads.transpose_convolution2d import meeting


class TransposeConvolution3dWorkload(WeightedWorkload[TransposeConvolution3d]):
    """Multiply every element by all filters, then add up where the windows overlap.

    Accumulation and rounding as for `Convolution2dWorkload`.
    """

    def prepare(self) -> None:
        """Pack constant weights; see how much of the windows' reach is cut off."""
        super().prepare()
        operation = self.operation
        shape = self.info.outputs[0].known_shape
        sizes = volume_shape(shape, operation.data_layout)[1:4]
        self._kernel = operand(self.info, 1).known_shape[1:4]
        self._ahead = [
            resolve_padding(
                operation.padding, size, k, operation.stride[axis], operation.dilation[axis], axis
            )[0]
            for axis, (size, k) in enumerate(zip(sizes, self._kernel, strict=True))
        ]

    def pack(self, weights: Array, bias: Array | None) -> PreparedWeights:
        """Arrange the filters by window element, shape (kd * kh * kw, groups, i, o)."""
        channels = operand(self.info, 0).known_shape[self.operation.data_layout.channel_axis]
        filters, depth = weights.shape[0], weights.shape[4]
        groups = count_groups(channels, depth)
        packed = pack_weights(
            self.info, self.operation.activation, weights, bias, 0, is_centred=True
        )
        taps = math.prod(weights.shape[1:4])
        parts = packed.values.reshape(groups, filters // groups, taps, depth)
        return replace(packed, values=np.ascontiguousarray(parts.transpose(2, 0, 3, 1)))

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Convolve volume by volume."""
        packed = self.packed_weights(inputs)

        def convolve(volumes: Array, out: Array) -> None:
            for (volume, stage), result in zip(packed.per_image(volumes), out, strict=True):
                sums = self._sums(volume, packed, result.shape)
                stage.finish(sums, result.reshape(sums.shape))

        run_channels_last_3d(convolve, inputs[0], outputs[0], self.operation.data_layout)

    def _sums(self, volume: Array, packed: PreparedWeights, shape: tuple[int, ...]) -> Array:
        """Sums for an output of the given shape (od, oh, ow, o), as rows of channels."""
        operation = self.operation
        _, groups, depth, filters = packed.values.shape
        sums: Array = np.zeros(shape, packed.values.dtype)
        for number, tap in enumerate(np.ndindex(*self._kernel)):
            offsets = [
                k * operation.dilation[axis] - self._ahead[axis] for axis, k in enumerate(tap)
            ]
            for index, plane in enumerate(volume):
                z = index * operation.stride[0] + offsets[0]
                if not 0 <= z < shape[0]:
                    continue
                y, to_y = meeting(plane.shape[0], offsets[1], operation.stride[1], shape[1])
                x, to_x = meeting(plane.shape[1], offsets[2], operation.stride[2], shape[2])
                part = plane[y, x].astype(packed.values.dtype)
                part -= packed.pad_value
                by_group = part.reshape(math.prod(part.shape[:2]), groups, depth).transpose(1, 0, 2)
                spread = np.matmul(by_group, packed.values[number]).transpose(1, 0, 2)
                sums[z, to_y, to_x] += spread.reshape(*part.shape[:2], groups * filters)
        return sums.reshape(-1, shape[3])
