"""CpuRef's NonMaxSuppression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import NonMaxSuppression
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class NonMaxSuppressionWorkload(ReferenceWorkload[NonMaxSuppression]):
    """Take the best box that is left, and leave out what overlaps it, again and again."""

    def compute_dynamic(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Compute in float32."""
        found = [
            (image, label, box)
            for image, (boxes, scores) in enumerate(zip(*inputs, strict=True))
            for label, row in enumerate(scores)
            for box in self._chosen(self._corners(boxes), row)
        ]
        return (np.array(found, np.int64).reshape(-1, 3),)

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
        areas = np.prod(corners[:, 1] - corners[:, 0], axis=1)
        chosen: list[int] = []
        while len(order) and len(chosen) < operation.max_boxes_per_class:
            best, order = order[0], order[1:]
            chosen.append(int(best))
            low = np.maximum(corners[order, 0], corners[best, 0])
            high = np.minimum(corners[order, 1], corners[best, 1])
            common = np.prod(np.maximum(high - low, 0), axis=1)
            union = areas[order] + areas[best] - common
            share = np.where((union > 0) & (common > 0), common / union, 0)
            order = order[share <= np.float32(operation.iou_threshold)]
        return chosen
