"""CpuRef's NonMaxSuppression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import NonMaxSuppression
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload

_BLOCK = 64
"""Boxes that are compared with all chosen ones at once."""


class NonMaxSuppressionWorkload(ReferenceWorkload[NonMaxSuppression]):
    """Take the best box that is left, and leave out what overlaps it, again and again."""

    def compute_dynamic(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Compute in float32."""
        boxes_chosen = [
            (image, label, box)
            for image, (boxes, scores) in enumerate(zip(*inputs, strict=True))
            for label, row in enumerate(scores)
            for box in self._chosen(self._corners(boxes), row)
        ]
        return (np.array(boxes_chosen, np.int64).reshape(-1, 3),)

    def _corners(self, boxes: Array) -> Array:
        """Lowest and highest coordinates of boxes, shape (s, 2, 2)."""
        pairs = boxes.reshape(-1, 2, 2)
        if self.operation.center_point_box:
            centre, half = pairs[:, 0], pairs[:, 1] / np.float32(2)
            return np.stack((centre - half, centre + half), axis=1)
        return np.stack((pairs.min(axis=1), pairs.max(axis=1)), axis=1)

    def _chosen(self, corners: Array, scores: Array) -> list[int]:
        """Numbers of the boxes of one image and class that stay."""
        operation = self.operation
        order = np.argsort(-scores, kind="stable")
        if operation.score_threshold is not None:
            order = order[scores[order] > np.float32(operation.score_threshold)]
        limit = max(min(operation.max_boxes_per_class, len(order)), 0)
        corners, chosen = corners[order], np.empty(limit, np.int64)
        areas = np.prod(corners[:, 1] - corners[:, 0], axis=1)
        count = 0
        # Box by box, most of the time would be spent on calling NumPy.
        for first in range(0, len(order), _BLOCK):
            block = np.arange(first, min(first + _BLOCK, len(order)))
            left = block[~self._overlap(corners, areas, block, chosen[:count]).any(axis=1)]
            among = self._overlap(corners, areas, left, left)
            while len(left) and count < limit:
                chosen[count] = left[0]
                count += 1
                stays = ~among[:, 0]
                stays[0] = False
                left, among = left[stays], among[stays][:, stays]
            if count == limit:
                break
        return [int(number) for number in order[chosen[:count]]]

    def _overlap(self, corners: Array, areas: Array, some: Array, others: Array) -> Array:
        """Return whether boxes (s) share too much with others (o), shape (s, o)."""
        common = np.ones((), np.float32)
        for axis in range(2):
            high = np.minimum(corners[some, 1, axis, None], corners[others, 1, axis])
            low = np.maximum(corners[some, 0, axis, None], corners[others, 0, axis])
            common = common * np.maximum(high - low, 0)
        union = areas[some, None] + areas[others] - common
        share = np.where((union > 0) & (common > 0), common / union, 0)
        # A share that is not a number is too much as well.
        return np.asarray(~(share <= np.float32(self.operation.iou_threshold)))
