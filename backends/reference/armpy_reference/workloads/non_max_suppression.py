"""CpuRef's NonMaxSuppression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import NonMaxSuppression
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload

_BLOCK = 128
"""Boxes that are decided on at once, and the fewest of a group."""

_BETTER = np.tri(_BLOCK, k=-1, dtype=bool)
"""Table of the boxes of a block that have better scores than each one."""

_CHOSEN = 512
"""Chosen boxes that a block is compared with at once, so that the results stay in a cache."""


class NonMaxSuppressionWorkload(ReferenceWorkload[NonMaxSuppression]):
    """Take the best box that is left, and leave out what overlaps it, again and again."""

    def compute_dynamic(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Compute in float32."""
        boxes_chosen = [
            (image, label, box)
            for image, (boxes, scores) in enumerate(zip(*inputs, strict=True))
            for corners in (self._corners(boxes),)
            for label, row in enumerate(scores)
            for box in self._chosen(corners, row)
        ]
        return (np.array(boxes_chosen, np.int64).reshape(-1, 3),)

    def _corners(self, boxes: Array) -> Array:
        """Lowest and highest coordinates of boxes, shape (s, 2, 2)."""
        sides = boxes.reshape(-1, 2, 2).swapaxes(0, 1)
        if self.operation.center_point_box:
            centre, half = sides[0], sides[1] / np.float32(2)
            return np.stack((centre - half, centre + half), axis=1)
        return np.stack((np.minimum(*sides), np.maximum(*sides)), axis=1)

    def _chosen(self, corners: Array, scores: Array) -> list[int]:
        """Numbers of the boxes of one image and class that stay."""
        operation = self.operation
        places = np.arange(len(scores))
        if operation.score_threshold is not None:
            places = places[scores > np.float32(operation.score_threshold)]
        falling = -scores[places]
        limit = max(min(operation.max_boxes_per_class, len(places)), 0)
        # Mostly, the limit is reached far before the worst boxes.
        count = 4 * limit
        while True:
            some = places
            if count < len(places):  # with all that are as good as the last of them
                some = places[falling <= np.partition(falling, count)[count]]
            order = some[np.argsort(-scores[some], kind="stable")]
            boxes = corners[order].transpose(1, 2, 0)
            groups = _groups(boxes)
            bests = [group[self._best(boxes.take(group, axis=2), limit)] for group in groups]
            best = np.sort(np.concatenate(bests))
            if len(best) >= limit or len(some) == len(places):
                return [int(number) for number in order[best[:limit]]]
            count *= 4

    def _best(self, boxes: Array, limit: int) -> Array:
        """Places of the boxes that stay, of boxes by falling score, shape (2, 2, s)."""
        areas = np.prod(boxes[1] - boxes[0], axis=0)
        chosen = np.empty(0, np.int64)
        # Box by box, most of the time would be spent on calling NumPy.
        for first in range(0, boxes.shape[-1], _BLOCK):
            left = np.arange(first, min(first + _BLOCK, boxes.shape[-1]))
            for known in range(0, len(chosen), _CHOSEN):
                others = chosen[known : known + _CHOSEN]
                left = left[~self._overlap(boxes, areas, left, others).any(axis=1)]
            worse = self._overlap(boxes, areas, left, left)
            worse &= _BETTER[: len(left), : len(left)]
            stay = [chosen]
            while len(left):
                stays = ~worse.any(axis=1)
                stay.append(left[stays])
                undecided = ~(stays | worse[:, stays].any(axis=1))
                left, worse = left[undecided], worse[undecided][:, undecided]
            chosen = np.concatenate(stay)
            if len(chosen) >= limit:
                break
        return chosen

    def _overlap(self, boxes: Array, areas: Array, some: Array, others: Array) -> Array:
        """Return whether boxes (s) share too much with others (o), shape (s, o)."""
        low, high = boxes.take(some, axis=2)[..., None]
        other_low, other_high = boxes.take(others, axis=2)[:, :, None]
        sides = np.minimum(high, other_high)
        sides -= np.maximum(low, other_low)
        np.maximum(sides, 0, out=sides)
        common = sides[0] * sides[1]
        union = areas[some, None] + areas[others]
        union -= common
        is_shared = (union > 0) & (common > 0)
        share = np.divide(common, union, out=union)
        # A share that is not a number is too much as well.
        return np.asarray(is_shared & ~(share <= np.float32(self.operation.iou_threshold)))


def _groups(boxes: Array) -> list[Array]:
    """Places of boxes in groups without overlap, as those of the classes of one detector are."""
    order = np.argsort(boxes[0, 0], kind="stable")
    ends = np.maximum.accumulate(boxes[1, 0, order])
    cuts = [0]
    for cut in (np.flatnonzero(boxes[0, 0, order[1:]] > ends[:-1]) + 1).tolist():
        if cut - cuts[-1] >= _BLOCK:
            cuts.append(cut)
    return [np.sort(group) for group in np.split(order, cuts[1:])]
