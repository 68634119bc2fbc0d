"""CpuRef's DetectionPostProcess."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.ops import DetectionPostProcess
from armpy.ops.operation import Array
from armpy_reference.boxes import Indices, Mask, falling, suppress
from armpy_reference.quantization import Float32Array
from armpy_reference.reals import to_real
from armpy_reference.workload import ReferenceWorkload


@dataclass(frozen=True, slots=True)
class Detections:
    """Detections of one image."""

    rows: Indices
    """int64, shape (m,). Rows of the outputs."""
    anchors: Indices
    """int64, shape (m,). Number of each row's box."""
    classes: Indices
    """int64, shape (m,). Number of each row's class, counted without the background."""
    count: int  # the value of num_detections


class DetectionPostProcessWorkload(ReferenceWorkload[DetectionPostProcess]):
    """Decode all boxes of an image, choose, and write the rows."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute in float32."""
        encodings, scores, anchors = map(to_real, inputs, self.input_infos)
        operation = self.operation
        columns = scores.shape[2]
        background = 1 if operation.num_classes is None else columns - operation.num_classes
        first_label = background if operation.background_in_labels else 0
        for output in outputs:
            output[...] = 0
        boxes_out, classes_out, scores_out, counts_out = outputs
        for image in range(len(scores)):
            boxes = self._decoded(encodings[image], anchors)
            class_scores = scores[image, :, background:]
            choose = self._choose_by_class if operation.use_regular_nms else self._choose_by_box
            detections = choose(boxes, class_scores)
            boxes_out[image, detections.rows] = boxes[detections.anchors]
            classes_out[image, detections.rows] = detections.classes + first_label
            scores_out[image, detections.rows] = class_scores[
                detections.anchors, detections.classes
            ]
            counts_out[image] = detections.count

    def _decoded(self, encodings: Float32Array, anchors: Float32Array) -> Float32Array:
        """Corners y1, x1, y2, x2 (n, 4)."""
        operation = self.operation
        scales = np.array(
            [operation.scale_y, operation.scale_x, operation.scale_h, operation.scale_w],
            np.float32,
        )
        scaled = encodings[:, :4] / scales
        sizes = anchors[:, 2:]
        centres = anchors[:, :2] + scaled[:, :2] * sizes
        halves = np.exp(scaled[:, 2:]) * sizes / np.float32(2)
        return np.concatenate([centres - halves, centres + halves], axis=1)

    def _choose_by_class(self, boxes: Float32Array, scores: Float32Array) -> Detections:
        """Regular non-maximum suppression: the best boxes of each class, and the best of those."""
        operation = self.operation
        by_class = [
            self._suppress(boxes, scores[:, c], operation.detections_per_class)
            for c in range(scores.shape[1])
        ]
        anchors = np.concatenate(by_class)
        classes = np.repeat(np.arange(len(by_class)), [len(part) for part in by_class])
        best = falling(scores[anchors, classes])[: operation.max_detections]
        return Detections(np.arange(len(best)), anchors[best], classes[best], len(best))

    def _choose_by_box(self, boxes: Float32Array, scores: Float32Array) -> Detections:
        """Fast non-maximum suppression: the best boxes by their best class."""
        operation = self.operation
        chosen = self._suppress(boxes, scores.max(axis=1), operation.max_detections)
        room = operation.max_classes_per_detection
        per_box = min(room, scores.shape[1])
        best = np.argsort(-scores[chosen], axis=1, kind="stable")[:, :per_box]
        step = per_box if operation.compact_rows else room
        rows = np.arange(len(chosen))[:, None] * step + np.arange(per_box)
        count = rows.size if operation.compact_rows else len(chosen)
        return Detections(rows.reshape(-1), np.repeat(chosen, per_box), best.reshape(-1), count)

    def _suppress(self, boxes: Float32Array, scores: Float32Array, limit: int) -> Indices:
        """Indices of the boxes that reach the threshold and overlap no better one."""
        operation = self.operation
        low, overlap = (
            np.float32(operation.nms_score_threshold),
            np.float32(operation.nms_iou_threshold),
        )
        strict = operation.strict_thresholds

        def is_dropped(values: Float32Array) -> Mask:
            return values >= overlap if strict else values > overlap

        candidates = np.flatnonzero(scores > low if strict else scores >= low)
        return candidates[suppress(boxes[candidates], scores[candidates], limit, is_dropped)]
