"""CpuRef's TransposeConvolution2d."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armpy.ops import TransposeConvolution2d
from armpy.ops.operation import Array
from armpy.ops.shapes import resolve_padding
from armpy_reference.quantized.accumulate import block_length
from armpy_reference.weighted import PreparedWeights, WeightedWorkload, operand, pack_weights
from armpy_reference.windows import channels_last_shape, run_channels_last


class TransposeConvolution2dWorkload(WeightedWorkload[TransposeConvolution2d]):
    """Multiply every element by all filters, then add up where the windows overlap.

    Accumulation and rounding as for `Convolution2dWorkload`.
    """

    def prepare(self) -> None:
        """Pack constant weights; see how much of the windows' reach is cut off."""
        super().prepare()
        operation = self.operation
        shape = self.info.outputs[0].known_shape
        sizes = channels_last_shape(shape, operation.data_layout)[1:3]
        self._kernel = operand(self.info, 1).known_shape[1:3]
        self._top, self._left = (
            resolve_padding(operation.padding, size, k, operation.stride[axis], 1, axis)[0]
            for axis, (size, k) in enumerate(zip(sizes, self._kernel, strict=True))
        )

    def pack(self, weights: Array, bias: Array | None) -> PreparedWeights:
        """Arrange the filters as a matrix of shape (i, kh * kw * o)."""
        packed = pack_weights(
            self.info, self.operation.activation, weights, bias, 0, is_centred=True
        )
        filters, height, width, depth = weights.shape
        matrix = packed.values.transpose(3, 1, 2, 0).reshape(depth, height * width * filters)
        return replace(packed, values=np.ascontiguousarray(matrix))

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Convolve image by image."""
        packed = self.packed_weights(inputs)

        def convolve(images: Array, out: Array) -> None:
            for (image, stage), result in zip(packed.per_image(images), out, strict=True):
                sums = self._sums(image, packed, result.shape)
                stage.finish(sums, result.reshape(sums.shape))

        run_channels_last(convolve, inputs[0], outputs[0], self.operation.data_layout)

    def _sums(self, image: Array, packed: PreparedWeights, shape: tuple[int, ...]) -> Array:
        """Sums for an output of the given shape (oh, ow, o), as rows of channels."""
        height, width, depth = image.shape
        (down, right), (kernel_height, kernel_width) = self.operation.stride, self._kernel
        sums: Array = np.zeros(shape, packed.values.dtype)
        block = block_length(max(width * packed.values.shape[1], 1))
        for first in range(0, height, block):
            part = image[first : first + block].astype(packed.values.dtype)
            part -= packed.pad_value
            spread = np.matmul(part.reshape(len(part) * width, depth), packed.values)
            spread = spread.reshape(len(part), width, kernel_height, kernel_width, shape[2])
            for ky in range(kernel_height):
                y, to_y = meeting(len(part), first * down + ky - self._top, down, shape[0])
                for kx in range(kernel_width):
                    x, to_x = meeting(width, kx - self._left, right, shape[1])
                    sums[to_y, to_x] += spread[y, x, ky, kx]
        return sums.reshape(-1, shape[2])


def meeting(count: int, offset: int, stride: int, size: int) -> tuple[slice, slice]:
    """Elements that meet the output, and their places: element i is at offset + i * stride."""
    first = max(0, -(offset // stride))
    end = min(count, (size - 1 - offset) // stride + 1)
    if first >= end:
        return slice(0), slice(0)
    begin = offset + first * stride
    return slice(first, end), slice(begin, offset + (end - 1) * stride + 1, stride)
