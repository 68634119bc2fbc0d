"""CpuRef's Resize."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.core.numerics.resize import (
    FRACTION_BITS,
    integer_samples,
    nearest_positions,
    real_samples,
)
from armpy.core.numerics.rounding import rounding_shift_right
from armpy.ops import Resize, ResizeMethod
from armpy.ops.operation import Array
from armpy.types import DataLayout, DataType
from armpy_reference.workload import ReferenceWorkload

_INTEGER_TYPES = (DataType.QASYMM_S8, DataType.QSYMM_S16)


class ResizeWorkload(ReferenceWorkload[Resize]):
    """Look up the nearest elements, or interpolate row by row."""

    def prepare(self) -> None:
        """Work out the samples along both axes."""
        output = self.info.outputs[0]
        source = (self.info.inputs[0] or output).known_shape
        sizes = [
            (source[a], output.known_shape[a]) for a in self.operation.data_layout.spatial_axes
        ]
        self.bilinear = self.operation.method is ResizeMethod.BILINEAR
        align = self.operation.align_corners
        half = self.operation.half_pixel_centers
        if self.bilinear:
            find = integer_samples if output.data_type in _INTEGER_TYPES else real_samples
            self.rows, self.columns = (
                find(size, out_size, align_corners=align, half_pixel_centers=half)
                for size, out_size in sizes
            )
        else:
            self.nearest = [
                nearest_positions(size, out_size, align_corners=align, half_pixel_centers=half)
                for size, out_size in sizes
            ]

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Resize in NHWC order, which views give for NCHW."""
        values, out = inputs[0], outputs[0]
        if self.operation.data_layout is DataLayout.NCHW:
            values, out = values.transpose(0, 2, 3, 1), out.transpose(0, 2, 3, 1)
        if not self.bilinear:
            rows, columns = self.nearest
            out[...] = values[:, rows[:, None], columns]
            return
        for image, out_image in zip(values, out, strict=True):
            self._interpolate(image, out_image)

    def _interpolate(self, image: Array, out: Array) -> None:
        """Interpolate one image (h, w, c), holding no more than a few rows at a time."""
        rows, columns = self.rows, self.columns
        left, right = columns.lower_weights[:, None], columns.upper_weights[:, None]
        # Products and sums in the reference's order, so that float32 rounds equally.
        for y in range(out.shape[0]):
            upper = image[rows.lower[y]] * rows.lower_weights[y]
            lower = image[rows.upper[y]] * rows.upper_weights[y]
            total = upper[columns.lower] * left
            total += lower[columns.lower] * left
            total += upper[columns.upper] * right
            total += lower[columns.upper] * right
            out[y] = self._stored(total)

    def _stored(self, total: Array) -> Array:
        """Interpolated elements as they are stored."""
        data_type = self.info.outputs[0].data_type
        if data_type in _INTEGER_TYPES:
            # Half away from zero, of a number with twice the weights' fraction bits.
            return rounding_shift_right(total, 2 * FRACTION_BITS, out=total)
        return total + np.float32(0.5) if data_type is DataType.QASYMM_U8 else total
