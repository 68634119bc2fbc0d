"""CpuRef's GenerateProposals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import GenerateProposals
from armpy.ops.operation import Array
from armpy.types import DataLayout
from armpy_reference.boxes import Indices, falling, suppress, transform
from armpy_reference.quantization import Float32Array
from armpy_reference.reals import from_real, to_real
from armpy_reference.workload import ReferenceWorkload


class GenerateProposalsWorkload(ReferenceWorkload[GenerateProposals]):
    """Transform all anchors of an image, then choose."""

    def compute_dynamic(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Compute in float32 in NHWC order, which views give for NCHW."""
        scores, deltas, anchors, image_info = map(to_real, inputs, self.input_infos)
        if self.operation.data_layout is DataLayout.NCHW:
            scores, deltas = scores.transpose(0, 2, 3, 1), deltas.transpose(0, 2, 3, 1)
        shifted = self._shifted(anchors, scores.shape[1], scores.shape[2])
        kept_scores, kept_boxes, counts = [scores[:0, 0, 0, 0]], [anchors[:0]], []
        for image in range(len(scores)):
            image_scores = scores[image].reshape(-1)
            boxes = transform(shifted, deltas[image].reshape(-1, 4), image_info[image])
            chosen = self._choose(image_scores, boxes, image_info[image])
            kept_scores.append(image_scores[chosen])
            kept_boxes.append(boxes[chosen])
            counts.append(len(chosen))
        return (
            from_real(np.concatenate(kept_scores), self.info.outputs[0]),
            from_real(np.concatenate(kept_boxes), self.info.outputs[1]),
            np.repeat(np.arange(len(counts), dtype=np.int32), counts),
        )

    def _shifted(self, anchors: Float32Array, height: int, width: int) -> Float32Array:
        """The anchors at every position (height * width * anchors, 4)."""
        x = np.arange(width, dtype=np.float32) * np.float32(self.operation.width_stride)
        y = np.arange(height, dtype=np.float32) * np.float32(self.operation.height_stride)
        columns, rows = np.meshgrid(x, y)
        shifts = np.stack([columns, rows, columns, rows], axis=-1)
        return (shifts[:, :, None, :] + anchors).reshape(-1, 4)

    def _choose(
        self, scores: Float32Array, boxes: Float32Array, image_size: Float32Array
    ) -> Indices:
        operation = self.operation
        candidates = np.arange(len(scores))
        if 0 < operation.pre_nms_max < len(scores):
            candidates = falling(scores)[: operation.pre_nms_max]
        corners = boxes[candidates]
        sizes = corners[:, 2:] - corners[:, :2]
        centres = (corners[:, :2] + corners[:, 2:]) / np.float32(2)
        is_large = (sizes > np.float32(operation.min_size)).all(axis=1)
        is_inside = (centres < image_size[::-1]).all(axis=1)
        candidates = candidates[is_large & is_inside]
        threshold = np.float32(operation.iou_threshold)
        chosen = suppress(
            boxes[candidates],
            scores[candidates],
            operation.post_nms_max,
            lambda overlap: overlap >= threshold,
        )
        return candidates[chosen]
