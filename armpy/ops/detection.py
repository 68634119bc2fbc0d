"""Operations that turn scores and encoded boxes into detected objects."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.operand_checks import bind_sizes, require_length
from armpy.ops.operation import Operand, Operation, TypeRule, require, rule
from armpy.tensor import Dimension, Shape, TensorInfo
from armpy.types import DataLayout, DataType

__all__ = [
    "AxisAlignedBboxTransform",
    "BoxWithNmsLimit",
    "DetectionPostProcess",
    "GenerateProposals",
    "NmsKernel",
]

_FLOATS = (DataType.FLOAT32, DataType.FLOAT16)
_BYTES = (DataType.QASYMM_U8, DataType.QASYMM_S8)
_INDICES = DataType.SIGNED32
_BOXES = DataType.QASYMM_U16
_BOX_LENGTH = 4


def _require_boxes_per(count: Dimension, coordinates: Dimension, noun: str) -> None:
    """Check that there is one box for each counted item."""
    require(
        count is None or coordinates is None or coordinates == _BOX_LENGTH * count,
        f"there is not one box per {noun}",
        expected=f"{_BOX_LENGTH} numbers for each of {count}",
        actual=coordinates,
    )


@dataclass(frozen=True, slots=True)
class AxisAlignedBboxTransform(Operation):
    """Move and scale boxes by predictions, and clip them to their images.

    Notes
    -----
    rois (r, 4), corners x1, y1, x2, y2; deltas (r, 4 k), dx, dy, dw, dh for each of k classes;
    batch_indices int32 (r); image_info (b, 2), height and width; output (r, 4 k), corners. ``r``
    may be 0. A box with centre (x, y) and size (w, h) becomes one with centre ``(x + dx w, y + dy
    h)`` and size ``(w exp(dw), h exp(dh))``. Computed in float32; other types are rounded once,
    quantised ones saturate. Missing images and boxes with swapped or NaN corners are errors.

    References
    ----------
    NNAPI AXIS_ALIGNED_BBOX_TRANSFORM.
    """

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("rois", ranks=(2,)),
        Operand("deltas", ranks=(2,)),
        Operand("batch_indices", ranks=(1,)),
        Operand("image_info", ranks=(2,)),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        *(rule((t, t, _INDICES, t), (t,)) for t in _FLOATS),
        rule((_BOXES, _BYTES, _INDICES, _BOXES), (_BOXES,)),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(r, 4 k)."""
        require_length(inputs[0], 1, _BOX_LENGTH, "rois")
        require_length(inputs[3], 1, 2, "image_info")
        sizes = bind_sizes(self, inputs, ("r4", "rk", "r", "bi"))
        require(
            sizes["k"] is None or (sizes["k"] > 0 and sizes["k"] % _BOX_LENGTH == 0),
            "the deltas do not split into boxes",
            expected=f"a multiple of {_BOX_LENGTH} above 0",
            actual=sizes["k"],
        )
        return ((sizes["r"], sizes["k"]),)


class NmsKernel(enum.Enum):
    """Kernel of non-maximum suppression, which lowers overlapping scores; numbers are NNAPI's.

    HARD: to 0 if the overlap reaches the threshold; LINEAR: by the factor ``1 - overlap`` if it
    does; GAUSSIAN: by the factor ``exp(-overlap**2 / sigma)`` always.
    """

    HARD = 0
    LINEAR = 1
    GAUSSIAN = 2


@dataclass(frozen=True, slots=True)
class BoxWithNmsLimit(Operation):
    """Choose the best boxes of each class and image by soft non-maximum suppression.

    Notes
    -----
    scores (r, c); rois (r, 4 c), corners x1, y1, x2, y2 per class; batch_indices int32 (r), equal
    ones adjacent; scores_out (n); rois_out (n, 4); classes int32 (n); batch_indices_out int32 (n).
    Class 0, the background, is never chosen. Results are ordered by image, class and falling
    lowered score. ``r`` and ``n`` may be 0. Computed in float32. Of equal scores the first counts.
    NaN is never chosen; boxes with NaN overlap nothing; infinite scores become 0 where the factor
    is 0. A box of class 0 with swapped or NaN corners is an error.

    References
    ----------
    NNAPI BOX_WITH_NMS_LIMIT; Bodla et al., "Soft-NMS", 2017.
    """

    score_threshold: float = 0.0
    """Least score, exclusive, of boxes that take part."""
    max_detections: int = -1
    """Most boxes per image; negative for no limit."""
    kernel: NmsKernel = NmsKernel.HARD
    iou_threshold: float = 0.5
    """Intersection over union from which HARD and LINEAR lower a score."""
    sigma: float = 1.0
    """Width of the GAUSSIAN kernel."""
    nms_score_threshold: float = 0.0
    """Least lowered score."""

    has_data_dependent_outputs: ClassVar[bool] = True
    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("scores", ranks=(2,)),
        Operand("rois", ranks=(2,)),
        Operand("batch_indices", ranks=(1,)),
    )
    outputs: ClassVar[tuple[Operand, ...]] = (
        Operand("scores_out"),
        Operand("rois_out"),
        Operand("classes"),
        Operand("batch_indices_out"),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        *(rule((t, t, _INDICES), (t, t, _INDICES, _INDICES)) for t in _FLOATS),
        *(rule((t, _BOXES, _INDICES), (t, _BOXES, _INDICES, _INDICES)) for t in _BYTES),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(n), (n, 4), (n), (n), with n unknown."""
        sizes = bind_sizes(self, inputs, ("rc", "rk", "r"))
        classes = sizes["c"]
        require(
            classes is None or classes > 1,
            "there is no class beside the background",
            expected="2 or more classes",
            actual=classes,
        )
        _require_boxes_per(classes, sizes["k"], "class")
        return (None,), (None, _BOX_LENGTH), (None,), (None,)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """Types of the scores, of the boxes, and of two indices."""
        return inputs[0].data_type, inputs[1].data_type, _INDICES, _INDICES


@dataclass(frozen=True, slots=True)
class GenerateProposals(Operation):
    """Propose regions of images: the best of anchors moved by predictions.

    Notes
    -----
    scores (n, h, w, a); deltas (n, h, w, 4 a), dx, dy, dw, dh per anchor; anchors (a, 4), corners
    x1, y1, x2, y2; image_info (n, 2), height and width; scores_out (m); rois (m, 4); batch_indices
    int32 (m). Results are ordered by image and falling score. Boxes are clipped to the image; those
    with a centre outside or NaN are dropped. ``m`` may be 0. Computed in float32. Of equal scores
    the first counts; NaN is the lowest.

    References
    ----------
    NNAPI GENERATE_PROPOSALS; Ren et al., "Faster R-CNN", 2015.
    """

    height_stride: float = 1.0
    width_stride: float = 1.0
    """`height_stride` and `width_stride`: image rows and columns per row and column of scores."""
    pre_nms_max: int = -1
    """Most boxes per image before non-maximum suppression; 0 or less for no limit."""
    post_nms_max: int = -1
    """Largest number of boxes kept after suppression; negative for no limit."""
    iou_threshold: float = 0.5
    """Overlap with a better box from which a box is dropped."""
    min_size: float = 0.0
    """Boxes must be wider and higher."""
    data_layout: DataLayout = DataLayout.NHWC
    """NHWC or NCHW, of scores and deltas."""

    has_data_dependent_outputs: ClassVar[bool] = True
    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("scores", ranks=(4,)),
        Operand("deltas", ranks=(4,)),
        Operand("anchors", ranks=(2,)),
        Operand("image_info", ranks=(2,)),
    )
    outputs: ClassVar[tuple[Operand, ...]] = (
        Operand("scores_out"),
        Operand("rois"),
        Operand("batch_indices"),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        *(rule((t, t, t, t), (t, t, _INDICES)) for t in _FLOATS),
        *(rule((t, _BYTES, DataType.QSYMM_S16, _BOXES), (t, _BOXES, _INDICES)) for t in _BYTES),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(m), (m, 4), (m), with m unknown."""
        require_length(inputs[2], 1, _BOX_LENGTH, "anchors")
        require_length(inputs[3], 1, 2, "image_info")
        nchw = self.data_layout is DataLayout.NCHW
        axes = ("nahw", "nkhw") if nchw else ("nhwa", "nhwk")
        sizes = bind_sizes(self, inputs, (*axes, "a4", "ni"))
        _require_boxes_per(sizes["a"], sizes["k"], "anchor")
        return (None,), (None, _BOX_LENGTH), (None,)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """Types of the scores, of floats or stored boxes, and of indices."""
        scores = inputs[0].data_type
        return scores, _BOXES if scores.is_quantized else scores, _INDICES


_COUNTS = (DataType.FLOAT32, DataType.SIGNED32)


@dataclass(frozen=True, slots=True)
class DetectionPostProcess(Operation):
    """Decode boxes around anchors and choose the best by non-maximum suppression.

    Notes
    -----
    box_encodings (b, n, 4 or more), y, x, h, w; scores (b, n, columns); anchors (n, 4), centre y,
    x, h, w; boxes (b, d, 4), corners y1, x1, y2, x2; classes, int32 or float32, (b, d); scores_out
    (b, d); num_detections, int32 or float32, (b). ``d`` is ``max_detections *
    max_classes_per_detection``. Unused rows are 0. Computed in float32. Of equal scores the first
    counts. A score of NaN reaches no threshold; without `use_regular_nms` neither does a box that
    has one. Boxes with NaN overlap nothing.

    References
    ----------
    Arm NN DetectionPostProcess, whose attribute holds the anchors; TFLite
    TFLite_Detection_PostProcess; NNAPI DETECTION_POSTPROCESSING with strict thresholds and
    compact rows.
    """

    max_detections: int = 1
    """Most boxes per image."""
    max_classes_per_detection: int = 1
    """Most classes per box, without `use_regular_nms`."""
    detections_per_class: int = 1
    """Most boxes per class, with `use_regular_nms`."""
    nms_score_threshold: float = 0.0
    """Score that a box must reach."""
    nms_iou_threshold: float = 0.5
    """Intersection over union with a better box above which a box is dropped."""
    num_classes: int | None = None
    """Number of classes, the last columns of scores; if None, all but the first, the background.
    """
    use_regular_nms: bool = False
    """Whether each class is suppressed on its own, rather than boxes by their best score."""
    scale_y: float = 1.0
    scale_x: float = 1.0
    scale_h: float = 1.0
    scale_w: float = 1.0
    """`scale_y`, `scale_x`, `scale_h` and `scale_w`: divisors of the encodings."""
    background_in_labels: bool = False
    """Whether labels count the columns ahead of the classes."""
    strict_thresholds: bool = False
    """Whether scores must lie above, and overlaps below, their threshold."""
    compact_rows: bool = False
    """Whether boxes with fewer classes take fewer rows, num_detections counts rows, not boxes, and
    `use_regular_nms` has no rows for further classes.
    """

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("box_encodings", ranks=(3,)),
        Operand("scores", ranks=(3,)),
        Operand("anchors", ranks=(2,)),
    )
    outputs: ClassVar[tuple[Operand, ...]] = (
        Operand("boxes"),
        Operand("classes"),
        Operand("scores_out"),
        Operand("num_detections"),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        rule((DataType.FLOAT16,) * 3, (DataType.FLOAT16, _COUNTS, DataType.FLOAT16, _COUNTS)),
        *(
            rule((t, t, t), (DataType.FLOAT32, _COUNTS, DataType.FLOAT32, _COUNTS))
            for t in (DataType.FLOAT32, *_BYTES, DataType.QSYMM_S16)
        ),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(b, d, 4), (b, d), (b, d) and (b)."""
        self._check_counts()
        require_length(inputs[2], 1, _BOX_LENGTH, "anchors")
        sizes = bind_sizes(self, inputs, ("bnk", "bnc", "n4"))
        length = sizes["k"]
        require(
            length is None or length >= _BOX_LENGTH,
            "the encodings are not boxes",
            expected=f"{_BOX_LENGTH} numbers or more",
            actual=length,
        )
        batch, rows = sizes["b"], self.num_rows
        return (batch, rows, _BOX_LENGTH), (batch, rows), (batch, rows), (batch,)

    def _check_counts(self) -> None:
        """Check that numbers of detections are positive."""
        regular = self.use_regular_nms
        per_class = "detections_per_class" if regular else "max_classes_per_detection"
        for name in ("max_detections", per_class):
            number = getattr(self, name)
            require(number >= 1, f"{name} is too small", expected="1 or more", actual=number)

    @property
    def num_rows(self) -> int:
        """Rows of the outputs per image."""
        if self.use_regular_nms and self.compact_rows:
            return self.max_detections
        return self.max_detections * self.max_classes_per_detection

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """Floats, with int32 for classes and counts."""
        is_half = inputs[0].data_type is DataType.FLOAT16
        real = DataType.FLOAT16 if is_half else DataType.FLOAT32
        return real, DataType.SIGNED32, real, DataType.SIGNED32

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Positive scales, and as many classes as there are columns for."""
        for name in ("scale_y", "scale_x", "scale_h", "scale_w"):
            scale = getattr(self, name)
            require(scale > 0, f"{name} is not positive", expected="above 0", actual=scale)
        columns = (inputs[1].shape or (None,) * 3)[2]
        classes = self.num_classes if self.num_classes is not None else 1
        least = classes if self.num_classes is not None else 2
        require(
            classes >= 1 and (columns is None or columns >= least),
            "the classes are not columns of the scores",
            expected=f"{least} columns or more",
            actual=columns,
        )
