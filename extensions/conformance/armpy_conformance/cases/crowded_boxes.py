"""Cases of operations on many boxes: equal scores, overlaps and scores on their thresholds.

Coordinates are small integers and scores multiples of 1/16, so that overlaps and comparisons
come out the same in whatever order they are computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from armpy.ops import (
    AxisAlignedBboxTransform,
    BoxWithNmsLimit,
    DetectionPostProcess,
    GenerateProposals,
    HeatmapMaxKeypoint,
    NmsKernel,
    RoiAlign,
    RoiPooling,
)
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataLayout
from armpy_conformance.comparison.seeded_values import Values, anything, exactly, reals
from armpy_conformance.sampling.case_template import CaseTemplate


def multiples(step: float, low: int, high: int) -> Values:
    """Make multiples of a step, from `low` to `high` steps; the nearest ones if quantised."""

    def make(rng: np.random.Generator, info: TensorInfo) -> Array:
        multiples_of_step = rng.integers(low, high, info.known_shape, endpoint=True) * step
        return reals(multiples_of_step)(rng, info)

    return make


def _corners(repeat: int, height: int, width: int) -> Values:
    """Make boxes with corners x1, y1, x2, y2 on whole numbers, some without area."""

    def make(rng: np.random.Generator, info: TensorInfo) -> Array:
        count = info.num_elements // (4 * repeat)
        x = np.sort(rng.integers(0, width, (count, 2), endpoint=True), axis=1)
        y = np.sort(rng.integers(0, height, (count, 2), endpoint=True), axis=1)
        boxes = np.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], axis=1)
        return reals(np.tile(boxes, repeat))(rng, info)

    return make


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    yield from _post_processing()
    yield from _limits()
    yield from _proposals()
    yield from _moved()
    yield from _regions()
    yield from _keypoints()


def _post_processing() -> Iterator[CaseTemplate]:
    """DetectionPostProcess on 12 boxes in two images."""
    base = DetectionPostProcess(
        max_detections=4,
        max_classes_per_detection=2,
        detections_per_class=2,
        nms_score_threshold=0.25,
        nms_iou_threshold=0.5,
        scale_y=8.0,
        scale_x=4.0,
        scale_h=2.0,
        scale_w=5.0,
    )
    regular = replace(base, use_regular_nms=True)
    strict = {"strict_thresholds": True}
    for label, operation in {
        "crowded": base,
        "crowded-strict": base.with_attributes(**strict),
        "crowded-compact": base.with_attributes(**strict, compact_rows=True),
        "crowded-more-room": replace(base, max_detections=14, max_classes_per_detection=4),
        "crowded-more-room-compact": replace(
            base, max_detections=14, max_classes_per_detection=4, compact_rows=True
        ),
        "crowded-one-class": replace(base, max_classes_per_detection=1, num_classes=2),
        "crowded-regular": regular,
        "crowded-regular-strict": regular.with_attributes(**strict, background_in_labels=True),
        "crowded-regular-few": replace(regular, max_detections=3, detections_per_class=1),
        "crowded-regular-many": replace(regular, max_detections=40, detections_per_class=9),
    }.items():
        for kind, encodings in (("", multiples(2.0, -1, 1)), ("-decoded", anything)):
            # Sizes of encodings are logarithms: only 0 gives whole numbers.
            still = _only_centres if not kind else encodings
            anchors = multiples(1.0, 1, 4)
            yield CaseTemplate(
                f"{label}{kind}",
                operation,
                ((2, 12, 5), (2, 12, 4), (12, 4)),
                values=(still, multiples(1 / 16, 1, 10), anchors),
            )


def _only_centres(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Encodings that move centres by parts of the size and leave the size alone."""
    encodings = rng.integers(-1, 1, info.known_shape, endpoint=True) * 4.0
    encodings[..., 2:4] = 0
    return reals(encodings)(rng, info)


def _limits() -> Iterator[CaseTemplate]:
    """BoxWithNmsLimit on 14 boxes in three images."""
    base = BoxWithNmsLimit(0.25, 4, NmsKernel.HARD, 0.5, 0.5, 0.25)
    batches = exactly((0,) * 6 + (1,) * 2 + (3,) * 6)
    variants: dict[str, dict[str, object]] = {
        "": {},
        "-no-limit": {"max_detections": -1, "iou_threshold": 0.25},
        "-none": {"max_detections": 0},
        "-one": {"max_detections": 1, "nms_score_threshold": 0.5},
    }
    for kernel in NmsKernel:
        for label, options in variants.items():
            yield CaseTemplate(
                f"crowded-{kernel.name.lower()}{label}",
                replace(base, kernel=kernel).with_attributes(**options),
                ((14, 3), (14, 12), (14,)),
                values=(multiples(1 / 16, 1, 12), _corners(3, 4, 3), batches),
            )


def _proposals() -> Iterator[CaseTemplate]:
    """GenerateProposals of two images with three anchors; sizes of exactly the least."""
    base = GenerateProposals(3.0, 2.0, 0, -1, 0.5, 1.0)
    anchors = reals(((-1, -1, 3, 2), (0, 0, 2, 4), (1, 1, 3, 2)))
    variants: dict[str, dict[str, object]] = {
        "": {},
        "-few": {"pre_nms_max": 9, "post_nms_max": 4},
        "-one": {"pre_nms_max": 1, "post_nms_max": 1},
        "-all": {"pre_nms_max": 36, "iou_threshold": 0.25},
        "-nchw": {"data_layout": DataLayout.NCHW, "min_size": 2.0},
    }
    for label, options in variants.items():
        is_nchw = "data_layout" in options
        deltas = (2, 12, 3, 4) if is_nchw else (2, 3, 4, 12)
        for kind, values in (("crowded", multiples(0.0, 0, 0)), ("moved", anything)):
            yield CaseTemplate(
                f"{kind}{label}",
                base.with_attributes(**options),
                ((2, 3, 3, 4) if is_nchw else (2, 3, 4, 3), deltas, (3, 4), (2, 2)),
                values=(multiples(1 / 16, 0, 8), values, anchors, reals(((7, 9), (8, 5)))),
            )


def _moved() -> Iterator[CaseTemplate]:
    """AxisAlignedBboxTransform of boxes that leave their images at every side."""
    batches = exactly(np.arange(12) % 3)
    yield CaseTemplate(
        "many",
        AxisAlignedBboxTransform(),
        ((12, 4), (12, 8), (12,), (3, 2)),
        values=(_corners(1, 12, 9), anything, batches, reals(((12, 9), (7, 15), (16, 3)))),
    )


def _regions() -> Iterator[CaseTemplate]:
    """RoiAlign and RoiPooling of regions at and on the edges, most of them without area."""
    shape, batches = (3, 6, 5, 2), exactly(np.arange(14) % 3)
    for label, down, right in (("wide", 2.0, 4.0), ("fine", 0.5, 1.0)):
        values = (anything, _corners(1, int(6 * down), int(5 * right)), batches)
        for samples in ((0, 0), (1, 2), (3, 0)):
            align = RoiAlign((5, 3), down, right, *samples)
            name = f"{label}-by-{samples[0]}-{samples[1]}"
            yield CaseTemplate(name, align, (shape, (14, 4), (14,)), values=values)
        # Quarters and halves of whole numbers are exact: no bound depends on rounding.
        for output_size in ((1, 4), (4, 2)):
            pool = RoiPooling(output_size, down, right)
            name = f"{label}-{output_size[0]}"
            yield CaseTemplate(name, pool, (shape, (14, 4), (14,)), values=values)


def _keypoints() -> Iterator[CaseTemplate]:
    """HeatmapMaxKeypoint of peaks at corners, at edges, inside, on plateaus."""
    for side in (2, 3, 5):
        for label, values in (("ties", multiples(0.5, 0, 2)), ("peaks", multiples(0.25, 0, 15))):
            yield CaseTemplate(
                f"{label}-{side}",
                HeatmapMaxKeypoint(),
                ((6, side, side, 5), (6, 4)),
                values=(values, _corners(1, 12, 9)),
            )
