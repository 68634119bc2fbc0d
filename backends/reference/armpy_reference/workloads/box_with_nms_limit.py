"""CpuRef's BoxWithNmsLimit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from armpy.ops import BoxWithNmsLimit, NmsKernel
from armpy.ops.operation import Array
from armpy_reference.boxes import Indices, check_corners, falling, overlaps
from armpy_reference.quantization import Float32Array
from armpy_reference.reals import from_real, to_real
from armpy_reference.workload import ReferenceWorkload


class BoxWithNmsLimitWorkload(ReferenceWorkload[BoxWithNmsLimit]):
    """Suppress class by class in each image, then limit and order the results."""

    def compute_dynamic(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Compute in float32; chosen boxes are copied.

        Raises
        ------
        LayerValidationError
            If the corners of a box of class 0 are the wrong way round.
        """
        rois = inputs[1].reshape(*inputs[0].shape, 4)
        check_corners(rois[:, 0], self.info.name)
        batches = inputs[2]
        scores = to_real(inputs[0], self.input_infos[0]).copy()
        boxes = to_real(rois, self.input_infos[1])
        rows, classes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for image in _runs(batches):
            chosen = self._choose(scores[image], boxes[image])
            rows.append(chosen[:, 0] + image.start)
            classes.append(chosen[:, 1])
        at = np.concatenate(rows), np.concatenate(classes)
        scores_out = from_real(scores[at], self.info.outputs[0])
        return scores_out, rois[at], at[1].astype(np.int32), batches[at[0]]

    def _choose(self, scores: Float32Array, boxes: Float32Array) -> Indices:
        """Rows and classes (m, 2) of the boxes chosen in one image; lowers scores in place."""
        candidates = [
            np.stack([rows, np.full_like(rows, c)], axis=1)
            for c in range(1, scores.shape[1])
            for rows in [self._suppress(scores[:, c], boxes[:, c])]
        ]
        chosen = np.concatenate(candidates)
        limit = self.operation.max_detections
        if 0 <= limit < len(chosen):
            chosen = chosen[falling(scores[tuple(chosen.T)])[:limit]]
        order = np.lexsort((-scores[tuple(chosen.T)], chosen[:, 1]))
        return chosen[order]

    def _suppress(self, scores: Float32Array, boxes: Float32Array) -> Indices:
        """Rows of the boxes chosen in one class; lowers scores in place."""
        operation = self.operation
        remaining = np.flatnonzero(scores > np.float32(operation.score_threshold))
        chosen: list[int] = []
        while remaining.size and len(chosen) != operation.max_detections:
            best = int(scores[remaining].argmax())
            row = remaining[best]
            chosen.append(int(row))
            remaining = np.delete(remaining, best)
            factors = self._factors(overlaps(boxes[row], boxes[remaining]))
            # An infinite score times 0 would be NaN.
            scores[remaining] = np.where(factors == 0, 0, scores[remaining] * factors)
            dropped = scores[remaining] < np.float32(operation.nms_score_threshold)
            remaining = remaining[~dropped]
        return np.array(chosen, np.int64)

    def _factors(self, overlap: Float32Array) -> Float32Array:
        """Decay factors of the scores, by soft non-maximum suppression."""
        kernel = self.operation.kernel
        if kernel is NmsKernel.GAUSSIAN:
            factors: Float32Array = np.exp(-overlap * overlap / np.float32(self.operation.sigma))
            return factors
        below = overlap < np.float32(self.operation.iou_threshold)
        lowered = np.float32(0) if kernel is NmsKernel.HARD else np.float32(1) - overlap
        return np.where(below, np.float32(1), lowered)


def _runs(batches: Array) -> list[slice]:
    """Slices of equal batch indices that stand next to each other."""
    starts = [0, *(np.flatnonzero(np.diff(batches)) + 1).tolist(), len(batches)]
    return [slice(a, b) for a, b in pairwise(starts) if b > a]
