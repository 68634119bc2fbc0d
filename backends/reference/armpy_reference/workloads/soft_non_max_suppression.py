"""CpuRef's SoftNonMaxSuppression."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from armpy.ops import SoftNonMaxSuppression
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class SoftNonMaxSuppressionWorkload(ReferenceWorkload[SoftNonMaxSuppression]):
    """Take the best box that is left; put it back with a lower score where others lower it."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute in float32."""
        for output in outputs:
            output[...] = 0
        chosen, scores = self._chosen(*inputs)
        outputs[0][: len(chosen)] = chosen
        outputs[1][: len(chosen)] = scores
        outputs[2][...] = len(chosen)

    def _chosen(self, boxes: Array, scores: Array) -> tuple[list[int], list[np.float32]]:
        """Numbers of the boxes that stay, and their scores."""
        operation = self.operation
        least = np.float32(operation.score_threshold)
        limit = np.float32(operation.iou_threshold)
        scale = np.float32(-0.5 / operation.sigma) if operation.sigma else np.float32(0)
        pairs = boxes.reshape(-1, 2, 2)
        corners = np.stack((pairs.min(axis=1), pairs.max(axis=1)), axis=1)
        # Score, number, and how many of those chosen have lowered the score already.
        queue = [(-score, n, 0) for n, score in enumerate(scores) if score > least]
        heapify(queue)
        numbers: list[int] = []
        final_scores: list[np.float32] = []
        while queue and len(numbers) < operation.max_boxes:
            negative, number, done = heappop(queue)
            # Later ones are nearer, so they come first.
            shares = _shares(corners[number], corners[numbers[done:][::-1]])
            if (shares >= limit).any():
                continue
            score = -negative
            for share in shares[shares != 0] if operation.sigma else ():  # 0 lowers nothing
                score = score * np.exp(scale * share * share)
                if score <= least:
                    break
            if score == -negative:
                numbers.append(number)
                final_scores.append(score)
            elif score > least:
                heappush(queue, (-score, number, len(numbers)))
        return numbers, final_scores


def _shares(box: Array, others: Array) -> Array:
    """Return a box's shares of others, as parts of both areas together."""
    # Axis by axis, several times as fast as products of rows of two.
    (y1, x1), (y2, x2) = box
    height = np.minimum(others[:, 1, 0], y2) - np.maximum(others[:, 0, 0], y1)
    width = np.minimum(others[:, 1, 1], x2) - np.maximum(others[:, 0, 1], x1)
    area = (y2 - y1) * (x2 - x1)
    areas = (others[:, 1, 0] - others[:, 0, 0]) * (others[:, 1, 1] - others[:, 0, 1])
    common = np.maximum(height, 0) * np.maximum(width, 0)
    union = area + areas - common
    counts = (area > 0) & (areas > 0) & (union > 0)
    shares: Array = np.where(counts, common / np.where(counts, union, 1), np.float32(0))
    return shares
