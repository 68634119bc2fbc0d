"""Steps of byte products sorted by how many of them 16 bits can add up exactly.

Notes
-----
``pmaddubsw`` multiplies unsigned elements by signed weights and adds neighbouring products in 16
bits, where sums may saturate. They cannot where the positive weights of a 16-bit lane are at most
`_MOST` together, and the negative ones as well: the elements are at most 255. As weights are
constant, each panel's steps of four elements are sorted by that: two steps whose products may be
added up in 16 bits, single steps, and steps that need products of 16-bit integers. Steps of large
weights are paired with steps of small ones. Four steps at a time would need more registers than
there are.

References
----------
FBGEMM adds up in 16 bits as well, and adds outliers separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.panels import in_groups, side_by_side
from armpy_numba_acc.packing.weights_u8 import GROUP, pairs_of_groups

Array = npt.NDArray[Any]  # Any: integers of any width
Steps = npt.NDArray[np.int64]

GROUP_SIZES = (2, 1)
"""Steps that are added up in 16 bits, in the order in which a panel has its groups."""

LINE_ALIGNMENT = 64

_MOST = 127  # times 255 is less than 2**15, and a signed byte holds it

_COSTS = {2: 0.66, 1: 0.87}
"""Cost of a step in a group of so many by that of a step of 16-bit integers."""

_WORTHWHILE = 0.92
"""By the cost of the steps as they are: reading where each step lies takes time as well."""

_ROUNDS = 4
"""How often steps that do not fit each other are paired otherwise."""


def sorted_lines(
    isa: Isa, values: Array, width: int, taps: Sequence[int]
) -> npt.NDArray[np.uint8] | None:
    """Sort the steps of a layer; None if products of 16-bit integers are as fast.

    Parameters
    ----------
    values : ndarray, any integer dtype, shape (columns, taps, depth)
        Weights less their zero point: from -255 to 255.
    width
        Columns of a panel.
    taps
        Bytes from a row's address to the elements of each tap.

    Returns
    -------
    ndarray, uint8, shape (panels, bytes)
        For each panel as int32 the number of groups of each size, that of the steps after them,
        and bytes from a row's address to each step's elements; then its lines.
    """
    groups = in_groups(values.astype(np.int16, copy=False), width, GROUP)
    panels = [_Panel.of(steps) for steps in groups]
    num_steps = groups.shape[1]
    if _relative_cost(panels, num_steps) == 1:
        return None
    places = np.array(taps)[:, None] + GROUP * np.arange(num_steps // len(taps))
    numbered = zip(panels, groups, strict=True)
    packed = [panel.packed(isa, steps, places.ravel()) for panel, steps in numbered]
    size = max(map(len, packed))
    return np.stack([np.pad(panel, (0, size - len(panel))) for panel in packed])


def cost_of_steps(values: Array, width: int) -> float:
    """Cost of a layer's steps, sorted if that is worth it, by that of products of 16-bit integers.

    Parameters
    ----------
    values, width
        As of `sorted_lines`.
    """
    groups = in_groups(values.astype(np.int16, copy=False), width, GROUP)
    return _relative_cost([_Panel.of(steps) for steps in groups], groups.shape[1])


def _relative_cost(panels: Sequence[_Panel], num_steps: int) -> float:
    """`cost_of_steps` of panels of so many steps."""
    cost = sum(panel.cost for panel in panels) / (num_steps * len(panels))
    return cost if cost <= _WORTHWHILE else 1.0


@dataclass(frozen=True, eq=False, slots=True)
class _Panel:
    """Steps of a panel by the size of their groups, and those in no group."""

    groups: tuple[Steps, ...]  # shape (groups, size), of each of `GROUP_SIZES`
    others: Steps

    @classmethod
    def of(cls, steps: Array) -> _Panel:
        """Group the steps of a panel: int16, (steps, width, group)."""
        loads = _loads(steps)
        is_exact = loads.max(axis=1) <= _MOST
        pairs, alone = _pairs(np.flatnonzero(is_exact), loads)
        return cls((pairs, alone[:, None]), np.flatnonzero(~is_exact))

    @property
    def cost(self) -> float:
        """Cost by that of a step of 16-bit integers."""
        sizes = zip(GROUP_SIZES, self.groups, strict=True)
        return len(self.others) + sum(_COSTS[size] * groups.size for size, groups in sizes)

    def packed(self, isa: Isa, steps: Array, places: Array) -> npt.NDArray[np.uint8]:
        """Return the bytes of a panel: numbers, places and lines."""
        order = np.concatenate([*(groups.ravel() for groups in self.groups), self.others])
        counts = [*map(len, self.groups), len(self.others)]
        numbers = np.array([*counts, *places[order]], np.int32)
        head = np.pad(numbers.view(np.uint8), (0, -numbers.nbytes % LINE_ALIGNMENT))
        lines = [_lines(isa, steps, groups) for groups in self.groups]
        words = steps[None, self.others].astype(np.int16)
        (last,) = side_by_side(pairs_of_groups(words, isa.lanes))
        return np.concatenate([head, *lines, last])


def _loads(steps: Array) -> Array:
    """Sums of positive and of negative weights in each 16-bit lane of steps (steps, lanes)."""
    first, second = (steps[..., of_lane::2].reshape(len(steps), -1) for of_lane in (0, 1))
    positive = np.maximum(first, 0) + np.maximum(second, 0)
    return np.concatenate([positive, positive - first - second], axis=1)


def _pairs(steps: Steps, loads: Array) -> tuple[Steps, Steps]:
    """Pair steps that may be added up; the pairs (pairs, 2), and the other steps."""
    left = steps[np.argsort(loads.max(axis=1, initial=0)[steps], kind="stable")]
    is_left = np.ones(len(loads), np.bool_)
    pairs = [np.empty((0, 2), np.int64)]
    for shift in range(_ROUNDS):
        half = len(left) // 2
        few, many = left[:half], np.roll(left[len(left) - half :][::-1], shift)
        fits = (loads[few] + loads[many]).max(axis=1, initial=0) <= _MOST
        pairs.append(np.stack([few[fits], many[fits]], axis=1))
        is_left[pairs[-1]] = False
        left = left[is_left[left]]
    return np.concatenate(pairs), left


def _lines(isa: Isa, steps: Array, groups: Steps) -> npt.NDArray[np.uint8]:
    """Lines of groups: for each vector of columns its weights in each step of the group."""
    weights = steps[groups].astype(np.int8)
    count, size, width, depth = weights.shape
    split = weights.reshape(count, size, width // isa.lanes, isa.lanes, depth)
    return np.ascontiguousarray(split.swapaxes(1, 2)).reshape(-1).view(np.uint8)
