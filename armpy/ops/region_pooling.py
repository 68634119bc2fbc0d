"""Operations that look at regions of feature maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.data_movement import require_same_elements
from armpy.ops.operand_checks import bind_sizes, require_length
from armpy.ops.operation import Operand, Operation, TypeRule, require, rule
from armpy.ops.pooling import PoolingAlgorithm
from armpy.ops.shapes import image_shape, spatial
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataLayout, DataType

__all__ = ["HeatmapMaxKeypoint", "RoiAlign", "RoiPooling"]

_FLOATS = (DataType.FLOAT32, DataType.FLOAT16)
_BYTES = (DataType.QASYMM_U8, DataType.QASYMM_S8)
_INDICES = DataType.SIGNED32
_BOXES = DataType.QASYMM_U16

_REGION_OPERANDS = (
    Operand("input", ranks=(4,)),
    Operand("rois", ranks=(2,)),
    Operand("batch_indices", ranks=(1,)),
)
_REGION_RULES = (
    *(rule((t, t, _INDICES), (t,)) for t in _FLOATS),
    *(rule((t, _BOXES, _INDICES), (t,)) for t in _BYTES),
)


def _region_shape(
    operation: RoiAlign | RoiPooling, inputs: Sequence[TensorInfo]
) -> tuple[Shape | None, ...]:
    """One output image per region, after checks that both operations share."""
    require_length(inputs[1], 1, 4, "rois")
    sizes = bind_sizes(operation, inputs, ("nxyz", "r4", "r"))
    require(
        min(operation.output_size) > 0,
        "the output size is not positive",
        expected="(height, width), both above 0",
        actual=operation.output_size,
    )
    strides = (operation.height_stride, operation.width_stride)
    require(min(strides) > 0, "a stride is not positive", expected="above 0", actual=strides)
    layout = operation.data_layout
    channels = (inputs[0].shape or ())[layout.channel_axis]
    return (image_shape(layout, sizes["r"], operation.output_size, channels),)


@dataclass(frozen=True, slots=True)
class RoiAlign(Operation):
    """Average samples of regions on a regular grid, interpolated bilinearly.

    Notes
    -----
    input (n, h, w, c); rois (r, 4), corners x1, y1, x2, y2; batch_indices int32 (r); output (r,
    height, width, c). ``r`` may be 0. A region is at least one input element wide and high.
    Coordinates are float32. float16 is averaged in float32. 8-bit types use interpolation weights
    of 1/255, int64 sums and a fixed-point multiplier below 1, and saturate. Errors: missing images;
    NaN or infinite corners; unless `is_free`, regions outside of their image or with swapped
    corners. A NaN among a sample's four neighbours, whatever its weight, makes NaN of it; samples
    outside of the image are 0. MAX, `half_pixel` and `is_free` are for floats.

    References
    ----------
    NNAPI ROI_ALIGN; ONNX RoiAlign, which `is_free`; He et al., "Mask R-CNN", 2017.
    """

    output_size: tuple[int, int] = (1, 1)
    """(height, width)."""
    height_stride: float = 1.0
    width_stride: float = 1.0
    """`height_stride` and `width_stride`: region rows and columns per row and column of the input.
    """
    height_samples: int = 0
    width_samples: int = 0
    """`height_samples` and `width_samples`: samples along each axis of an output element; 0 for as
    many as input rows or columns, rounded up.
    """
    data_layout: DataLayout = DataLayout.NHWC
    algorithm: PoolingAlgorithm = PoolingAlgorithm.AVERAGE
    """AVERAGE, or MAX of all samples' weighted neighbours."""
    half_pixel: bool = False
    """Whether corners count from the first element's outer edge, not its centre, and regions may be
    smaller than an element.
    """
    is_free: bool = False
    """Whether regions may lie anywhere; samples more than an element outside of the image are 0,
    nearer ones as its border.
    """

    inputs: ClassVar[tuple[Operand, ...]] = _REGION_OPERANDS
    type_rules: ClassVar[tuple[TypeRule, ...]] = _REGION_RULES

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(r, height, width, c)."""
        samples = (self.height_samples, self.width_samples)
        require(
            min(samples) >= 0,
            "a number of samples is negative",
            expected="0 or more",
            actual=samples,
        )
        return _region_shape(self, inputs)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Nothing but NNAPI's form is for quantised elements."""
        plain = self.algorithm is PoolingAlgorithm.AVERAGE
        require(
            plain or self.algorithm is PoolingAlgorithm.MAX,
            "regions have no such algorithm",
            expected="AVERAGE or MAX",
            actual=self.algorithm.name,
        )
        require(
            inputs[0].data_type.is_float or (plain and not self.half_pixel and not self.is_free),
            "free regions, half pixels and largest samples are for floats",
            expected="FLOAT32 or FLOAT16",
            actual=inputs[0].data_type.name,
        )

    def scratch_bytes(
        self, inputs: Sequence[TensorInfo | None], outputs: Sequence[TensorInfo]
    ) -> int:
        """The samples of one region, where their number does not follow from the image's size."""
        image, (regions, *_) = inputs[0], outputs[0].known_shape
        assert image is not None  # it cannot be left out
        total = image.known_shape[self.data_layout.channel_axis] if regions else 0
        samples = self.height_samples, self.width_samples
        for size, count, axis in zip(
            self.output_size, samples, self.data_layout.spatial_axes, strict=True
        ):
            length = image.known_shape[axis]
            whole = size * (2 * length + 4) if self.is_free else size + length
            total *= size * count if count else whole
        return 4 * total


@dataclass(frozen=True, slots=True)
class RoiPooling(Operation):
    """Take the largest elements in the parts of regions.

    Notes
    -----
    input (n, h, w, c); rois (r, 4), corners x1, y1, x2, y2; batch_indices int32 (r); output (r,
    height, width, c), quantised like the input. ``r`` may be 0. Corners are rounded, halves away
    from zero, and inclusive; parts are rounded outwards and cut off at the input's end. An empty
    part gives 0, one with NaN gives NaN. Coordinates are float32. Errors are those of `RoiAlign`.

    References
    ----------
    NNAPI ROI_POOLING; Girshick, "Fast R-CNN", 2015.
    """

    output_size: tuple[int, int] = (1, 1)
    """(height, width): how many parts a region has."""
    height_stride: float = 1.0
    width_stride: float = 1.0
    """`height_stride` and `width_stride`: region rows and columns per row and column of the input.
    """
    data_layout: DataLayout = DataLayout.NHWC

    requantizes: ClassVar[bool] = False
    inputs: ClassVar[tuple[Operand, ...]] = _REGION_OPERANDS
    type_rules: ClassVar[tuple[TypeRule, ...]] = _REGION_RULES

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(r, height, width, c)."""
        return _region_shape(self, inputs)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """The output's elements are the input's."""
        require_same_elements(inputs[0], outputs[0], "output")


@dataclass(frozen=True, slots=True)
class HeatmapMaxKeypoint(Operation):
    """Find the point of each region where each heat map is highest.

    Notes
    -----
    heatmap (r, s, s, k), square with s of 2 or more; rois (r, 4), corners x1, y1, x2, y2; scores
    (r, k); keypoints (r, k, 2), x and y. A parabola through the highest element (the first of equal
    ones) and its neighbours, mirrored at the edges, refines score and position by at most 1.5
    elements if it has a peak. Computed in float32. Regions with swapped or NaN corners are errors.

    References
    ----------
    NNAPI HEATMAP_MAX_KEYPOINT.
    """

    data_layout: DataLayout = DataLayout.NHWC
    """NHWC or NCHW, of the heat maps."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("heatmap", ranks=(4,)),
        Operand("rois", ranks=(2,)),
    )
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("scores"), Operand("keypoints"))
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        *(rule((t, t), (t, t)) for t in _FLOATS),
        *(rule((t, _BOXES), (t, _BOXES)) for t in _BYTES),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(r, k) and (r, k, 2)."""
        require_length(inputs[1], 1, 4, "rois")
        sizes = bind_sizes(self, inputs, ("rxyz", "r4"))
        shape = inputs[0].shape or ()
        height, width = spatial(shape, self.data_layout)
        side = width if height is None else height
        require(
            (side is None or side >= 2) and (width is None or width == side),
            "the heat maps are not square, or too small",
            expected="equal height and width of 2 or more",
            actual=shape,
        )
        keypoints = shape[self.data_layout.channel_axis]
        return (sizes["r"], keypoints), (sizes["r"], keypoints, 2)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """Types of the heat map, and of the regions."""
        return inputs[0].data_type, inputs[1].data_type
