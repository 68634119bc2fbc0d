"""Integer weights as the 8-bit kernels want them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.factors import Factors
from armpy_numba_acc.packing.origins import Origin, PackedArray
from armpy_numba_acc.packing.panels import by_element, in_groups, in_panels, side_by_side

Array = npt.NDArray[Any]  # Any: integers of any width

GROUP = 4
"""Elements that one instruction multiplies and adds up per lane."""


@dataclass(frozen=True, eq=False, slots=True)
class PackedWeights:
    """Weights, bias and scales, panel by panel."""

    # uint8, shape (panels, bytes): each panel's bias as int32, its scales and nudges as float32,
    # its exact factors of 8 bytes, then its lines.
    packed: PackedArray
    # The factor of the sum of the elements that a row multiplies, which is added to the
    # row's sums: the part of the weights' zero point that no signed byte can hold.
    correction: int


def pack_weights_u8(
    isa: Isa,
    weights: Array,
    zero_point: int,
    bias: Array | None,
    factors: Factors,
    input_zero_point: int,
    width: int,
    arranged: Callable[[Array], Array] = lambda values: values,
    group: int = GROUP,
    lines: npt.NDArray[np.uint8] | None = None,
) -> PackedWeights:
    """Weights for `armpy_numba_acc.tiles.finish.byte_finish`.

    See `without_zero_point`. Each tap's depth is filled up with zeros to whole groups.

    Parameters
    ----------
    weights : ndarray, int8 or uint8, shape (columns, taps, depth)
    zero_point
        Of the weights.
    bias : ndarray, int32, shape (columns,), optional
        Zeros if left out.
    factors
        What sums are multiplied by for the output.
    input_zero_point
        Of the unsigned input.
    width
        Columns of a panel; the last one is filled up with zeros.
    arranged : callable, optional
        Preparation of weights (columns, taps, depth) of a product before they are packed.
    group
        Elements of a step.
    lines : ndarray, uint8, shape (panels, bytes), optional
        Lines of weights in an order in which nothing else is read; see `lines_of_groups`.
    """
    values, start, correction = without_zero_point(isa, weights, zero_point, bias, input_zero_point)
    heads = np.stack([start, factors.scales.view(np.int32), factors.nudges.view(np.int32)], axis=1)
    head = in_panels(heads, width).swapaxes(1, 2)
    if unused := -len(weights) % width:
        head[-1, 2, -unused:] = heads[-1, 2]  # a 0 would look like a result to be checked
    exact = in_panels(factors.exact, width)
    if lines is not None:
        return PackedWeights(PackedArray(side_by_side(head, exact, lines)), correction)
    lines = lines_of_groups(isa, arranged(values), width, group)
    panels = side_by_side(head, exact, lines)
    origins = _origins(isa, weights, bias, zero_point + correction, panels, width, arranged, group)
    return PackedWeights(PackedArray(panels, origins), correction)


def pack_weights_sums(
    isa: Isa,
    weights: Array,
    zero_point: int,
    bias: Array | None,
    input_zero_point: int,
    width: int,
    arranged: Callable[[Array], Array] = lambda values: values,
) -> PackedWeights:
    """Weights for `armpy_numba_acc.tiles.finish.byte_finish.SumsFinish`; parameters as above.

    Returns
    -------
    PackedWeights
        Each panel's bias as int32, then its lines.
    """
    values, start, correction = without_zero_point(isa, weights, zero_point, bias, input_zero_point)
    panels = side_by_side(in_panels(start, width), lines_of_groups(isa, arranged(values), width))
    origins = _origins(isa, weights, bias, zero_point + correction, panels, width, arranged)
    return PackedWeights(PackedArray(panels, origins), correction)


def _origins(
    isa: Isa,
    weights: Array,
    bias: Array | None,
    subtracted: int,
    panels: Array,
    width: int,
    arranged: Callable[[Array], Array],
    group: int = GROUP,
) -> tuple[Origin, ...]:
    """Origins of weights that lie after the heads of panels, and of a bias in front of them."""
    origin = lines_origin(isa, weights, panels, width, arranged, group, subtracted)
    if bias is None:
        return (origin,)
    moved = partial(in_panels, width=width)
    return (origin, Origin.of(bias, moved, 4, 0, panels.shape[1]))


def lines_origin(
    isa: Isa,
    weights: Array,
    panels: Array,
    width: int,
    arranged: Callable[[Array], Array],
    group: int = GROUP,
    subtracted: int = 0,
) -> Origin:
    """Origin of weights (columns, taps, depth) at the ends of panels (panels, bytes)."""

    def moved(values: Array) -> Array:
        return _ordered(isa, arranged(values), width, group)

    pitch = panels.shape[1]
    # As many elements as lines have, whatever they are.
    depth = arranged(weights[:1]).shape[1:]
    size = depth[0] * -(-depth[1] // group) * group * width * word_of(isa).itemsize
    stored_bytes = word_of(isa).itemsize
    return Origin.of(weights, moved, stored_bytes, pitch - size, pitch, subtracted)


def without_zero_point(
    isa: Isa, weights: Array, zero_point: int, bias: Array | None, input_zero_point: int
) -> tuple[Array, Array, int]:
    """Weights as they are multiplied, what sums begin with, and the correction.

    The sum of ``(x - zx) * (w - zw)`` is that of ``x * w'`` plus that of ``x`` times the
    correction, plus the known part, which joins the bias. ``w'`` is ``w - zw`` where that
    fits a signed byte, or where products are of 16-bit integers.

    Parameters
    ----------
    weights : ndarray, int8 or uint8, shape (columns, taps, depth)

    Returns
    -------
    values : ndarray, int16, shape (columns, taps, depth)
    start : ndarray, int32, shape (columns,)
    correction : int
        See `PackedWeights`.
    """
    _, taps, depth = weights.shape
    values = weights.astype(np.int16) - np.int16(zero_point)
    correction = 0
    if isa.dot and not -128 <= values.min() <= values.max() <= 127:
        correction = (128 if weights.dtype == np.uint8 else 0) - zero_point
        values -= np.int16(correction)
    totals = values.sum(axis=(1, 2), dtype=np.int64)
    start = -input_zero_point * (totals + correction * taps * depth)
    if isa.has_signed_dots:  # multiplies x - 128
        start += 128 * totals
    if bias is not None:
        start += bias
    return values, start.astype(np.uint64).astype(np.uint32).view(np.int32), correction


def lines_of_groups(
    isa: Isa, values: Array, width: int, group: int = GROUP
) -> npt.NDArray[np.uint8]:
    """Weights in the order in which they are multiplied.

    Parameters
    ----------
    values : ndarray, any integer dtype, shape (columns, taps, depth)
        Less their zero point.
    width
        Columns of a panel.
    group
        Elements of a step.

    Returns
    -------
    ndarray, uint8, shape (panels, bytes)
        The depth of each tap is filled up with zeros to whole groups.
    """
    return side_by_side(_ordered(isa, values.astype(word_of(isa)), width, group))


def word_of(isa: Isa) -> np.dtype[np.signedinteger[Any]]:
    """Return the word that weights are multiplied as."""
    return np.dtype(np.int8 if isa.dot else np.int16)


def _ordered(isa: Isa, values: Array, width: int, group: int) -> Array:
    """Weights (columns, taps, depth) panel by panel, in the order of `lines_of_groups`."""
    groups = in_groups(values, width, group)
    if isa.dot:
        return groups
    return (by_element if isa.has_long_products else pairs_of_groups)(groups, isa.lanes)


def pairs_of_groups(groups: Array, lanes: int) -> Array:
    """Lines in the order of `WordProducts`: vector by vector, elements 0 and 2 before 1 and 3."""
    panels, lines, width, _ = groups.shape
    split = groups.reshape(panels, lines, width // lanes, lanes, 2, 2)
    return split.transpose(0, 1, 2, 5, 3, 4)
