"""Lines that give the bytes which fixed-point arithmetic with constants gives.

Notes
-----
Of a sum or a product with a constant, one element is a function of 256 bytes: a line whose values
are rounded and clamped. Fixed point rounds twice, away from zero, which bends products at the
input's zero point. All 256 results being known, a line is looked for that float32 rounds to just
these, and that is nowhere so near to a tie that float32's own roundings matter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.core.numerics import Multiplier, shifted_rescaling
from armpy.ops import BinaryOperation
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_numba_acc.packing.quantized import parameters_of, scale_of, zero_point_of

Floats = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_BYTE_SHIFT = 20
"""Bits that elements are shifted left by before they are added."""

_TILTS = (0.0, 2.0**-19, -(2.0**-19), 2.0**-16, -(2.0**-16), 2.0**-13, -(2.0**-13))
"""What slopes are changed by, relatively, until a line fits."""

_ROUNDING = 2.0**-22
"""How far off float32's product and sum may be, relative to both terms together."""

_LARGEST = 2.0**22
"""Of terms: they fit int32 with room to spare."""


@dataclass(frozen=True, eq=False, slots=True)
class BentLines:
    """A line for each of some constants, bent at one byte."""

    # ``floor(slope * x + lower)`` is the result of a byte x below `zero`, and with `upper` instead
    # that of others, both clamped.
    slopes: Array
    lower: Array
    upper: Array
    zero: int

    @property
    def are_bent(self) -> bool:
        """Return whether bytes on one side of `zero` have other offsets than those on the other."""
        return bool((self.lower != self.upper).any())


def exact_values(
    operation: BinaryOperation, infos: Sequence[TensorInfo], constants: Array, place: int
) -> Int64Array:
    """Elements of a sum or a product of bytes with constants, as fixed point has them.

    Parameters
    ----------
    infos
        Of the inputs and of the output, whose elements are bytes.
    constants : ndarray, uint8, shape (constants,)
        As regions keep them.
    place : {0, 1}
        Which of the inputs they are.

    Returns
    -------
    ndarray, int64, shape (256, constants)
        By the other input's byte; not clamped.
    """
    operands: list[Array] = [np.arange(256).reshape(256, 1), constants.reshape(1, -1)]
    return exact_pairs(operation, infos, *(operands if place == 1 else operands[::-1]))


def exact_pairs(
    operation: BinaryOperation, infos: Sequence[TensorInfo], first: Array, second: Array
) -> Int64Array:
    """The same for bytes that broadcast against each other.

    Reference: TFLite ``add.cc``, ``sub.cc``, ``mul.cc``.
    """
    scales = [scale_of(info) for info in infos]
    zero = zero_point_of(infos[2])
    if operation is BinaryOperation.MUL:
        a, b = (parameters_of(info) for info in infos[:2])
        multiplier = Multiplier.from_real(float(scales[0] * scales[1] / scales[2]))
        return multiplier.apply(a.centred(first) * b.centred(second)) + zero
    common = 2 * float(max(scales[:2]))
    terms = [
        shifted_rescaling(float(scale) / common, parameters_of(info), _BYTE_SHIFT)(operand)
        for operand, info, scale in zip((first, second), infos, scales, strict=False)
    ]
    sign = -1 if operation is BinaryOperation.SUB else 1
    to_output = common / float(np.float32(1 << _BYTE_SHIFT) * scales[2])
    return Multiplier.from_real(to_output).apply(terms[0] + sign * terms[1]) + zero


def fitted_lines(
    values: Int64Array, slopes: Floats, zero: int, bounds: tuple[int, int]
) -> BentLines | None:
    """Lines of given values; None if there are none.

    Parameters
    ----------
    values : ndarray, int64, shape (256, constants)
        By byte; those beyond the bounds may be any beyond them.
    slopes : ndarray, float64, shape (constants,)
        About how values grow with bytes.
    zero
        Byte at which lines may be bent.
    bounds
        Lowest and highest value.
    """
    values = values.clip(*bounds)
    split = min(max(zero, 0), 256)
    fitted = np.zeros((3, len(slopes)), np.float32)
    missing = np.arange(len(slopes))
    for tilt in _TILTS:
        tilted = (slopes[missing] * (1 + tilt)).astype(np.float32)
        rises = np.arange(256.0).reshape(256, 1) * tilted.astype(np.float64)
        limits = _limits(values[:, missing], rises, bounds)
        sides = [_joined(limits, slice(0, split)), _joined(limits, slice(split, 256))]
        both = _joined(limits, slice(0, 256))
        is_straight, offsets = _middle(both, tilted)
        is_right = np.ones(len(missing), np.bool_)
        fitted[0, missing] = tilted
        for number, side in enumerate(sides, 1):
            is_fit, own = _middle(side, tilted)
            fitted[number, missing] = np.where(is_straight, offsets, own)
            is_right &= is_straight | is_fit
        missing = missing[~is_right]
        if not len(missing):
            return BentLines(fitted[0], fitted[1], fitted[2], zero)
    return None


def slopes_of(
    operation: BinaryOperation, infos: Sequence[TensorInfo], constants: Array, place: int
) -> Floats:
    """Return the change of the output's element by a byte of the element; see `exact_values`."""
    scales = [float(scale_of(info)) for info in infos]
    if operation is BinaryOperation.MUL:
        steps = constants.astype(np.float64) - zero_point_of(infos[place])
        return np.asarray(steps * (scales[0] * scales[1] / scales[2]))
    sign = -1 if operation is BinaryOperation.SUB and place == 0 else 1
    return np.full(len(constants), sign * scales[1 - place] / scales[2])


def _limits(values: Int64Array, rises: Floats, bounds: tuple[int, int]) -> tuple[Floats, Floats]:
    """Between which offsets each value is right."""
    low, high = bounds
    least = np.where(values > low, values - rises, -np.inf)
    most = np.where(values < high, values + 1 - rises, np.inf)
    return least, most


def _joined(limits: tuple[Floats, Floats], rows: slice) -> tuple[Floats, Floats]:
    """Between which offsets all values of some bytes are right."""
    least = limits[0][rows].max(0, initial=-np.inf)
    return least, limits[1][rows].min(0, initial=np.inf)


def _middle(limits: tuple[Floats, Floats], slopes: Array) -> tuple[Bools, Array]:
    """Return whether the offsets in the middle are right in float32, and those."""
    least, most = limits
    is_free = np.isinf(least) & np.isinf(most)
    low = np.where(is_free, 0.0, np.where(np.isinf(least), most - 2, least))
    high = np.where(is_free, 0.0, np.where(np.isinf(most), least + 2, most))
    offsets = np.asarray((low + high) / 2, np.float32)
    terms = 255 * np.abs(slopes.astype(np.float64)) + np.abs(offsets)
    room = np.minimum(most - offsets, offsets - least)
    return (room > terms * _ROUNDING) & (terms < _LARGEST), offsets
