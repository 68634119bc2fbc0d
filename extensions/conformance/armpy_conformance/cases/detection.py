"""Cases of operations on boxes and regions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from armpy.ops import (
    AxisAlignedBboxTransform,
    BoxWithNmsLimit,
    DetectionPostProcess,
    GenerateProposals,
    HeatmapMaxKeypoint,
    NmsKernel,
    NonMaxSuppression,
    PoolingAlgorithm,
    RoiAlign,
    RoiPooling,
    SoftNonMaxSuppression,
)
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataLayout, DataType
from armpy_conformance.cases import crowded_boxes
from armpy_conformance.comparison.seeded_values import anything, exactly, reals, small
from armpy_conformance.sampling.case_template import CaseTemplate, Scale, every, of

_BOX_TYPES = (DataType.QASYMM_U16, DataType.QSYMM_S16)
_BOX_SCALE = Quantization.per_tensor(0.125)
_FINE = (Scale(1 / 128),)
"""Of scores and deltas: -1 to 1."""

_BOXES = ((1, 1, 9, 9), (2, 1, 10, 9), (5, 5, 12, 12), (0, 0, 15, 15))
_SCORES = (((0.125, 0.5, 0.875), (0.25, 0.75, 0.625), (0.5, 0.375, 0.9375), (0.0, 0.8125, 0.6875)),)
_IMAGES = ((16, 16), (12, 20))


def _box_infos(template: CaseTemplate, types: tuple[DataType, ...]) -> list[TensorInfo | None]:
    """Infos of the inputs, boxes in eighths."""
    infos: list[TensorInfo | None] = []
    for shape, data_type in zip(template.shapes, types, strict=True):
        quantization = template.scales[0].of(data_type) if data_type.is_quantized else None
        is_box = data_type in _BOX_TYPES and not isinstance(
            template.operation, DetectionPostProcess
        )
        infos.append(TensorInfo(shape, data_type, _BOX_SCALE if is_box else quantization))
    return infos


def _box_output(inputs: Sequence[TensorInfo | None], data_type: DataType) -> Quantization:
    """Eighths for boxes, the scores' or features' quantisation for the rest."""
    if data_type in _BOX_TYPES:
        return _BOX_SCALE
    quantizations = (i.quantization for i in inputs if i is not None and i.data_type is data_type)
    return next(quantizations, None) or _BOX_SCALE


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    for template in (*_on_boxes(), *_on_regions(), *crowded_boxes.case_templates()):
        yield replace(
            template, types=every, scales=_FINE, infos=_box_infos, output_scale=_box_output
        )
    yield from _on_free_regions()


def _on_boxes() -> Iterator[CaseTemplate]:
    """Operations that choose or move boxes."""
    batches, images = exactly((0, 0, 1, 1)), reals(_IMAGES)
    yield CaseTemplate(
        "basic",
        AxisAlignedBboxTransform(),
        ((4, 4), (4, 8), (4,), (2, 2)),
        values=(reals(_BOXES), small, batches, images),
    )
    yield CaseTemplate(
        "no-boxes", AxisAlignedBboxTransform(), ((0, 4), (0, 8), (0,), (1, 2)), values=(anything,)
    )
    limited = BoxWithNmsLimit(0.3, 3, NmsKernel.HARD, 0.5, 1.0, 0.1)
    for kernel in NmsKernel:
        yield CaseTemplate(
            kernel.name.lower(),
            replace(limited, kernel=kernel),
            ((4, 3), (4, 12), (4,)),
            values=(reals(_SCORES), reals(np.repeat(_BOXES, 3, axis=0)), batches),
        )
    for label, chosen in {
        "corners": NonMaxSuppression(2, 0.3, 0.3),
        "centres": NonMaxSuppression(3, 0.1, center_point_box=True),
        "no-boxes": NonMaxSuppression(3, 0.5, 1.0),
    }.items():
        class_scores = reals(np.swapaxes((_SCORES[0], _SCORES[0][::-1]), 1, 2))
        shapes = ((2, 4, 4), (2, 3, 4))
        yield CaseTemplate(label, chosen, shapes, values=(reals((_BOXES, _BOXES)), class_scores))
    single = [row[0] for row in _SCORES[0]]
    for label, soft in {
        "hard": SoftNonMaxSuppression(3, 0.3, 0.1),
        "lowered": SoftNonMaxSuppression(5, 1.0, 0.2, 0.5),
        "both": SoftNonMaxSuppression(4, 0.6, 0.0, 0.2),
        "none": SoftNonMaxSuppression(2, 0.5, 2.0),
    }.items():
        yield CaseTemplate(label, soft, ((4, 4), (4,)), values=(reals(_BOXES), reals(single)))
    proposals = GenerateProposals(8.0, 8.0, iou_threshold=0.3, min_size=1.0)
    scores, anchors = np.reshape(_SCORES, -1)[:8], reals(((0, 0, 8, 8), (2, 2, 6, 10)))
    yield CaseTemplate(
        "basic",
        proposals,
        ((1, 2, 2, 2), (1, 2, 2, 8), (2, 4), (1, 2)),
        values=(reals(scores), small, anchors, reals((16, 16))),
    )
    yield CaseTemplate(
        "nchw-limits",
        replace(proposals, pre_nms_max=6, post_nms_max=2, data_layout=DataLayout.NCHW),
        ((1, 2, 2, 2), (1, 8, 2, 2), (2, 4), (1, 2)),
        values=(reals(scores), small, anchors, reals((16, 16))),
    )
    yield from _post_processing()


def _post_processing() -> Iterator[CaseTemplate]:
    anchors = ((0.5, 0.5, 1, 1), (0.5, 0.625, 1, 1), (0.25, 0.25, 0.5, 0.5), (0.75, 0.5, 0.5, 1))
    post = DetectionPostProcess(2, 2, 2, 0.3, 0.5, scale_y=10.0, scale_x=10.0)
    for label, operation in {
        "fast": post,
        "regular": replace(post, use_regular_nms=True),
        "compact": replace(post, strict_thresholds=True, compact_rows=True),
        "no-background": replace(post, num_classes=3),
        "labels": replace(post, background_in_labels=True),
    }.items():
        yield CaseTemplate(
            label,
            operation,
            ((1, 4, 4), (1, 4, 3), (4, 4)),
            values=(small, reals(_SCORES), reals(anchors)),
        )


def _on_free_regions() -> Iterator[CaseTemplate]:
    """RoiAlign in ONNX's forms, of floats."""
    corners = ((-9, 2, 7, 30), (3, 4, 3.5, 4.25), (50, 50, 60, 60), (8, 1, 20, 15))
    values = (anything, reals(corners), exactly((0, 1, 1, 0)))
    free = RoiAlign((2, 3), 4.0, 4.0, is_free=True)
    for label, operation in {
        "free": free,
        "half-pixel": replace(free, half_pixel=True),
        "half-pixel-samples": replace(free, half_pixel=True, height_samples=2, width_samples=1),
        "largest": replace(free, algorithm=PoolingAlgorithm.MAX, height_samples=3),
    }.items():
        floats = of(DataType.FLOAT32, DataType.FLOAT16)
        yield CaseTemplate(label, operation, ((2, 4, 5, 3), (4, 4), (4,)), floats, values)


def _on_regions() -> Iterator[CaseTemplate]:
    """Operations that look at regions of feature maps."""
    nchw = DataLayout.NCHW
    values = (anything, reals(_BOXES), exactly((0, 1, 1, 0)))
    align, pool = RoiAlign((2, 3), 4.0, 4.0), RoiPooling((2, 3), 4.0, 4.0)
    nhwc_shapes, nchw_shapes = (
        ((2, 4, 5, 3), (4, 4), (4,)),
        ((2, 3, 4, 5), (4, 4), (4,)),
    )
    for label, operation, shapes in (
        ("adaptive", align, nhwc_shapes),
        ("samples", replace(align, height_samples=2, width_samples=3), nhwc_shapes),
        ("nchw", replace(align, data_layout=nchw), nchw_shapes),
        ("basic", pool, nhwc_shapes),
        ("nchw", replace(pool, data_layout=nchw), nchw_shapes),
    ):
        yield CaseTemplate(label, operation, shapes, values=values)
    yield CaseTemplate("no-regions", align, ((2, 4, 5, 3), (0, 4), (0,)), values=values[:1])
    corners = (anything, reals(_BOXES))
    yield CaseTemplate("basic", HeatmapMaxKeypoint(), ((4, 4, 4, 2), (4, 4)), values=corners)
    yield CaseTemplate("nchw", HeatmapMaxKeypoint(nchw), ((4, 2, 4, 4), (4, 4)), values=corners)
