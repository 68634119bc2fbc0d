"""CpuRef's Resize."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.ops import Resize, ResizeMethod
from armpy.ops.operation import Array
from armpy.records import dataclass
from armpy.types import DataLayout, DataType
from armpy_reference.quantization import round_half_away
from armpy_reference.workload import ReferenceWorkload

Indices = npt.NDArray[np.int64]
_INTEGER_TYPES = (DataType.QASYMM_S8, DataType.QSYMM_S16)
_FRACTION_BITS = 10


@dataclass(frozen=True, slots=True)
class Samples:
    """Where the samples along one axis come from.

    Parameters
    ----------
    lower, upper : ndarray, int64, shape (out,)
        Positions of the two neighbours in the input.
    lower_weights, upper_weights : ndarray, float32 or int64, shape (out,)
        Their shares; integers have 10 fraction bits.
    """

    lower: Indices
    upper: Indices
    lower_weights: npt.NDArray[Any]  # Any: either of the two types above
    upper_weights: npt.NDArray[Any]  # Any: as above


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
        if self.bilinear:
            find = integer_samples if output.data_type in _INTEGER_TYPES else real_samples
            self.rows, self.columns = (find(self.operation, *pair) for pair in sizes)
        else:
            self.nearest = [nearest_positions(self.operation, *pair) for pair in sizes]

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
            half = 1 << (2 * _FRACTION_BITS - 1)
            return np.asarray(np.sign(total) * ((np.abs(total) + half) >> 2 * _FRACTION_BITS))
        return total + np.float32(0.5) if data_type is DataType.QASYMM_U8 else total


def real_samples(operation: Resize, size: int, out_size: int) -> Samples:
    """Samples of bilinear interpolation in float32.

    Parameters
    ----------
    operation : Resize
    size, out_size : int
        Along the axis, before and after.
    """
    positions = np.arange(out_size, dtype=np.float32)
    scale = _scale(operation, size, out_size)
    if operation.half_pixel_centers:
        positions = (positions + np.float32(0.5)) * scale - np.float32(0.5)
    else:
        positions = positions * scale
    lower = np.maximum(np.floor(positions), 0)
    upper = np.minimum(np.ceil(positions), size - 1).astype(np.int64)
    share = positions - lower
    return Samples(lower.astype(np.int64), upper, np.float32(1) - share, share)


def integer_samples(operation: Resize, size: int, out_size: int) -> Samples:
    """Samples of bilinear interpolation with weights of 10 fraction bits.

    Parameters
    ----------
    operation : Resize
    size, out_size : int
        Along the axis, before and after.
    """
    one = 1 << _FRACTION_BITS
    if operation.align_corners and out_size > 1:
        scale = (one * (size - 1) + (out_size - 1) // 2) // (out_size - 1)
    else:
        scale = (one * size + out_size // 2) // out_size
    positions = np.arange(out_size, dtype=np.int64) * scale
    if operation.half_pixel_centers:
        positions += scale // 2 - one // 2
    lower = np.maximum(positions >> _FRACTION_BITS, 0)
    upper = np.minimum((positions + one - 1) >> _FRACTION_BITS, size - 1)
    share = positions - lower * one
    return Samples(lower, upper, one - share, share)


def nearest_positions(operation: Resize, size: int, out_size: int) -> Indices:
    """Position of the input element that each output element is.

    Parameters
    ----------
    operation : Resize
    size, out_size : int
        Along the axis, before and after.
    """
    offset = np.float32(0.5 if operation.half_pixel_centers else 0)
    positions = (np.arange(out_size, dtype=np.float32) + offset) * _scale(operation, size, out_size)
    whole = round_half_away(positions) if operation.align_corners else np.floor(positions)
    return np.asarray(np.clip(whole, 0, size - 1), np.int64)


def _scale(operation: Resize, size: int, out_size: int) -> np.float32:
    """Input elements per output element, in float32."""
    if operation.align_corners and out_size > 1:
        return np.float32(size - 1) / np.float32(out_size - 1)
    return np.float32(size) / np.float32(out_size)
