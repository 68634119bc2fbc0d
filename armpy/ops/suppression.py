"""Suppression of boxes by better ones, with as many results as there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.operand_checks import bind_sizes, require_length
from armpy.ops.operation import Operand, Operation, TypeRule, require, rule
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["NonMaxSuppression", "SoftNonMaxSuppression"]


@dataclass(frozen=True, slots=True)
class NonMaxSuppression(Operation):
    """Choose the best boxes per class and image, without those that overlap better ones (NMS).

    Notes
    -----
    boxes (b, s, 4); scores (b, c, s); output int64 (k, 3): image, class, box, by image, class and
    falling score. ``k`` may be 0. The first of equal scores counts. NaN is the lowest score, above
    no threshold; boxes with NaN overlap nothing.

    References
    ----------
    ONNX NonMaxSuppression.
    """

    max_boxes_per_class: int = 0
    """Maximum number of boxes per class; none if negative."""
    iou_threshold: float = 0.0
    """Intersection over union, from 0 to 1, above which a box is left out beside a better one.
    """
    score_threshold: float | None = None
    """Least score, exclusive, of boxes that are chosen."""
    center_point_box: bool = False
    """Whether boxes are centre x, y, width, height, rather than y1, x1, y2, x2 of opposite corners.
    """

    has_data_dependent_outputs: ClassVar[bool] = True
    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("boxes", ranks=(3,)),
        Operand("scores", ranks=(3,)),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        rule((DataType.FLOAT32, DataType.FLOAT32), (DataType.SIGNED64,)),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(k, 3), k unknown."""
        require_length(inputs[0], 2, 4, "boxes")
        bind_sizes(self, inputs, ("bs4", "bcs"))
        require(
            0 <= self.iou_threshold <= 1,
            "iou_threshold is out of range",
            expected="0 to 1",
            actual=self.iou_threshold,
        )
        return ((None, 3),)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """int64."""
        return (DataType.SIGNED64,)


@dataclass(frozen=True, slots=True)
class SoftNonMaxSuppression(Operation):
    """Choose the best boxes, and lower the scores of those that overlap better ones (Soft-NMS).

    Notes
    -----
    boxes (s, 4), y1, x1, y2, x2 of two opposite corners; scores (s); outputs by falling score:
    indices int32 (max_boxes), scores (max_boxes), and their number, int32 (); the rest is 0. Of
    equal scores the first counts. Boxes whose area is not above 0, or NaN, share nothing. A score
    of NaN is above no threshold.

    References
    ----------
    TFLite NON_MAX_SUPPRESSION_V4, NON_MAX_SUPPRESSION_V5; Bodla et al., "Soft-NMS: Improving
    Object Detection With One Line of Code", 2017.
    """

    max_boxes: int = 0
    """Length of the outputs."""
    iou_threshold: float = 0.0
    """Intersection over union from which a box is left out beside a better one.
    """
    score_threshold: float = 0.0
    """Least score, exclusive, of boxes that are chosen."""
    sigma: float = 0.0
    """Width of the Gaussian function that lowers scores; 0 lowers none."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("boxes", ranks=(2,)),
        Operand("scores", ranks=(1,)),
    )
    outputs: ClassVar[tuple[Operand, ...]] = (
        Operand("indices"),
        Operand("scores"),
        Operand("count"),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        rule(
            (DataType.FLOAT32, DataType.FLOAT32),
            (DataType.SIGNED32, DataType.FLOAT32, DataType.SIGNED32),
        ),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(max_boxes) twice, and ()."""
        require_length(inputs[0], 1, 4, "boxes")
        bind_sizes(self, inputs, ("s4", "s"))
        require(
            self.max_boxes >= 0,
            "max_boxes is negative",
            expected="0 or more",
            actual=self.max_boxes,
        )
        require(
            0 <= self.iou_threshold <= 1,
            "iou_threshold is out of range",
            expected="0 to 1",
            actual=self.iou_threshold,
        )
        require(self.sigma >= 0, "sigma is negative", expected="0 or more", actual=self.sigma)
        return (self.max_boxes,), (self.max_boxes,), ()

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """int32, float32, int32."""
        return DataType.SIGNED32, DataType.FLOAT32, DataType.SIGNED32
