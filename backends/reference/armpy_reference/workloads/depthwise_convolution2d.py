"""CpuRef's DepthwiseConvolution2d."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armpy.ops import DepthwiseConvolution2d
from armpy.ops.operation import Array
from armpy_reference.quantized.requantize import OutputStage
from armpy_reference.weighted import PreparedWeights, WeightedWorkload, operand, pack_weights
from armpy_reference.windows import PaddedRows, Windows, run_channels_last

_BLOCK_ELEMENTS = 1 << 15
_LEAST_RUN = 512


class DepthwiseConvolution2dWorkload(WeightedWorkload[DepthwiseConvolution2d]):
    """Add up the image, shifted and multiplied by one filter element after the other.

    Accumulation and rounding as for `Convolution2dWorkload`; float inputs of quantised weights
    always get a zero point.
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
        """Arrange the filters as rows of one element per channel, shape (kh * kw, o)."""
        packed = pack_weights(
            self.info,
            self.operation.activation,
            weights,
            bias,
            channel_axis=3,
            rounds_once=self.operation.rounds_once,
            has_asymmetric_range=True,
        )
        return replace(
            packed, values=packed.values.reshape(math.prod(weights.shape[:3]), weights.shape[3])
        )

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Convolve image by image."""
        packed = self.packed_weights(inputs)

        def convolve(images: Array, out: Array) -> None:
            for (image, stage), result in zip(packed.per_image(images), out, strict=True):
                self._convolve(image, packed, stage, result)

        run_channels_last(convolve, inputs[0], outputs[0], self.operation.data_layout)

    def _convolve(
        self, image: Array, packed: PreparedWeights, stage: OutputStage, out: Array
    ) -> None:
        """Convolve one image, shape (h, w, i)."""
        height, width, channels = out.shape
        dtype = packed.values.dtype
        block = min(max(_BLOCK_ELEMENTS // (width * channels), 1), height)
        rows = PaddedRows(self._windows, block, channels, dtype, packed.pad_value, is_split=True)
        repeats = _repeats(width, channels)
        shape = (block, width // repeats, repeats * channels)
        filters = np.tile(packed.values, repeats)
        scratch = None if out.dtype == dtype else np.empty(shape, dtype)
        products = np.empty(shape, dtype)
        for first in range(0, height, block):
            count = min(block, height - first)
            rows.load(image, first, count)
            target = out[first : first + count]
            sums = target.reshape(count, *shape[1:]) if scratch is None else scratch[:count]
            self._accumulate(rows, filters, sums, products[:count])
            flat = target.reshape(-1, channels)
            stage.finish(flat if scratch is None else sums.reshape(flat.shape), flat)

    def _accumulate(self, rows: PaddedRows, filters: Array, sums: Array, products: Array) -> None:
        """Sum over the filter elements for a block of rows."""
        num_columns = self._windows.columns.kernel
        for index, factors in enumerate(filters):
            elements = rows.tap(*divmod(index, num_columns), len(sums)).reshape(sums.shape)
            if index == 0:
                np.multiply(elements, factors, out=sums)
            else:
                np.multiply(elements, factors, out=products)
                np.add(sums, products, out=sums)


def _repeats(width: int, channels: int) -> int:
    """Return the number of repeats of filters that makes NumPy's inner loops long enough."""
    wanted = min(-(-_LEAST_RUN // channels), width)
    return next(n for n in range(wanted, width + 1) if width % n == 0)
