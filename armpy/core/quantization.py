"""Stored elements: real numbers as integers and back, as TensorFlow Lite does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from armpy.errors import InvalidArgumentError


class Scaling(NamedTuple):
    """Scales and zero points: one of each, or one per channel along an axis."""

    scales: Sequence[float]
    zero_points: Sequence[int]
    axis: int | None

    def quantize(
        self, real: npt.ArrayLike, integer_range: tuple[int, int], dtype: np.dtype[Any]
    ) -> npt.NDArray[np.integer[Any]]:
        """Integers for real numbers; see `armpy.tensor.Quantization.quantize`."""
        numbers = _numbers(real, "iuf", "real numbers")
        if not np.isfinite(numbers).all():
            raise InvalidArgumentError(
                "a number cannot be quantised", expected="finite numbers", actual="NaN or infinity"
            )
        scales, zero_points = _along_axis(self, numbers.shape)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # Divided in float32 as by TFLite; wider afterwards, where a half is added exactly.
            scaled = (numbers.astype(np.float32) / scales).astype(np.float64)
        scaled = np.where(scales == 0, 0.0, scaled)
        # Half away from zero, where NumPy would round to even.
        rounded = np.trunc(scaled + np.copysign(0.5, scaled)) + zero_points
        stored: npt.NDArray[np.integer[Any]] = np.clip(rounded, *integer_range).astype(dtype)
        return stored

    def dequantize(self, stored: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Real numbers that integers stand for; see `armpy.tensor.Quantization.dequantize`."""
        integers = _numbers(stored, "iu", "integers")
        scales, zero_points = _along_axis(self, integers.shape)
        real = (integers.astype(np.float64) - zero_points) * scales
        return np.asarray(real, np.float32)


def _numbers(numbers: npt.ArrayLike, kinds: str, expected: str) -> npt.NDArray[Any]:
    try:
        array = np.asarray(numbers)
    except ValueError as error:
        raise InvalidArgumentError(
            f"the value cannot be made an array: {error}", where="Quantization", expected=expected
        ) from error
    if array.dtype.kind not in kinds:
        raise InvalidArgumentError(
            "the numbers are of another kind",
            where="Quantization",
            expected=expected,
            actual=str(array.dtype),
        )
    return array


def _along_axis(
    how: Scaling, shape: tuple[int, ...]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """Scales and zero points, to be broadcast to elements of a shape."""
    scales: npt.NDArray[np.float32] = np.array(how.scales, np.float32)
    zero_points: npt.NDArray[np.float64] = np.array(how.zero_points, np.float64)
    if how.axis is None:
        return scales.reshape(()), zero_points.reshape(())
    if not -len(shape) <= how.axis < len(shape) or shape[how.axis] != len(how.scales):
        raise InvalidArgumentError(
            "there are not as many channels as scales",
            where="Quantization",
            expected=f"{len(how.scales)} along axis {how.axis}",
            actual=str(shape),
        )
    outer = [1] * len(shape)
    outer[how.axis] = len(how.scales)
    return scales.reshape(outer), zero_points.reshape(outer)
