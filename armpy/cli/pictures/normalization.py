"""Conversion of pixels to the elements of an input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.cli.pictures.options import PictureOptions
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.execution.arrays.conversion import quantize_array
from armpy.tensor import TensorInfo

Pixels: TypeAlias = npt.NDArray[np.uint8]

Array: TypeAlias = npt.NDArray[np.generic]

RANGE_TOLERANCE = 0.05
"""How far two real ranges may be apart to count as one, relative to their length."""


@dataclass(frozen=True, slots=True)
class Normalization:
    """Real numbers of pixels: ``pixel * factor + offset``, by channel or for all."""

    factors: tuple[float, ...]
    offsets: tuple[float, ...]

    @classmethod
    def from_range(cls, low: float, high: float) -> Normalization:
        """Pixel 0 becomes `low`, pixel 255 becomes `high`."""
        return cls(((high - low) / 255,), (low,))

    @classmethod
    def from_mean(cls, mean: Sequence[float], std: Sequence[float]) -> Normalization:
        """``(pixel - mean) / std``, one number each for all channels or one per channel."""
        if 0 in std:
            fix = "Pass other numbers than 0"
            raise InvalidArgumentError("a standard deviation is 0", where="--std", fix=fix)
        try:
            means, deviations = np.broadcast_arrays(np.array(mean), np.array(std))
        except ValueError as error:
            raise InvalidArgumentError(
                "the numbers of channels differ",
                where="--mean and --std",
                actual=f"{len(mean)} and {len(std)} numbers",
            ) from error
        return cls(tuple(1 / deviations), tuple(-means / deviations))

    @property
    def real_range(self) -> tuple[float, float]:
        """The lowest and highest real number that any pixel becomes."""
        ends = [
            f * pixel + o
            for f, o in zip(self.factors, self.offsets, strict=True)
            for pixel in (0, 255)
        ]
        return min(ends), max(ends)

    def apply(self, pixels: Pixels) -> npt.NDArray[np.float64]:
        """Real numbers of pixels of shape (H, W, C)."""
        channels = pixels.shape[-1]
        if len(self.factors) not in (1, channels):
            raise InvalidArgumentError(
                "the number of channels is wrong",
                where="--mean and --std",
                expected="1 number" if channels == 1 else f"1 or {channels} numbers",
                actual=str(len(self.factors)),
            )
        real: npt.NDArray[np.float64] = pixels * np.array(self.factors) + np.array(self.offsets)
        return real


def normalization_of(options: PictureOptions) -> Normalization | None:
    """Return how pixels become real numbers; None if the options say nothing about it."""
    if options.value_range is not None:
        return Normalization.from_range(*options.value_range)
    if options.mean or options.std:
        return Normalization.from_mean(options.mean or (0.0,), options.std or (1.0,))
    return None


def normalized(
    pixels: Pixels, info: TensorInfo, normalization: Normalization | None
) -> tuple[Array, str]:
    """Pixels, uint8 of shape (H, W, C), as stored elements of an input, and a hint.

    The hint names an assumption, empty if there was none: without a `normalization`
    that the user wants, the type and quantisation suggest one.

    For 8-bit types the whole stored range is the whole range of pixels: uint8 holds the
    pixel itself, int8 the pixel less 128. That is right for every real range that an image
    input usually has. Other integers hold the pixel. Float inputs, and quantised ones of
    more bits, get numbers from 0 to 1 for lack of a better guess.
    """
    data_type = info.data_type
    if normalization is not None:
        return _stored(normalization.apply(pixels), info), ""
    if data_type.size_bytes == 1:
        least = data_type.integer_range[0]
        # Added as bytes, which wrap around: a wider type would be read and written twice more.
        shifted = (pixels + np.uint8(least % 256)).view(np.int8) if least else pixels
        return shifted.astype(data_type.dtype, copy=False), ""
    if data_type.is_float or data_type.is_quantized:
        return _stored(Normalization.from_range(0, 1).apply(pixels), info), (
            "pixels are given as numbers from 0 to 1; --range gives others"
        )
    return pixels.astype(data_type.dtype), ""


def _stored(real: npt.NDArray[np.float64], info: TensorInfo) -> Array:
    data_type = info.data_type
    if data_type.is_float:
        return real.astype(data_type.dtype)
    if data_type.is_quantized:
        return quantize_array(real, info)
    return np.clip(np.rint(real), *data_type.integer_range).astype(data_type.dtype)


def held_range(info: TensorInfo) -> tuple[float, float]:
    """The real numbers that a quantised input can hold."""
    low, high = (info.scale * (end - info.zero_point) for end in info.data_type.integer_range)
    return low, high
