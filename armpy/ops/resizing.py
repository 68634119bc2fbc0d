"""Operations that change the resolution of images."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.data_movement import DataMovement, require_operand
from armpy.ops.operation import Operand, TypeRule, require, same
from armpy.ops.shapes import image_shape
from armpy.tensor import Dimension, Shape, TensorInfo
from armpy.types import DataLayout, DataType

__all__ = ["Resize", "ResizeMethod"]


class ResizeMethod(enum.Enum):
    """Interpolation between the input's elements; numbers are Arm NN's."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1


@dataclass(frozen=True, slots=True)
class Resize(DataMovement):
    """Sample an image at another resolution.

    Notes
    -----
    input (n, h, w, c); size int32 (2); output (n, height, width, c), quantised like the input.
    Floats and QASYMM_U8 are interpolated in float32, the latter with ``floor(x + 0.5)``, signed
    quantised types with weights of 10 fraction bits, half away from zero.

    References
    ----------
    Arm NN Resize; NNAPI and TFLite RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR.
    """

    size: tuple[int, int] | None = None
    """(height, width) of the output."""
    method: ResizeMethod = ResizeMethod.NEAREST_NEIGHBOR
    align_corners: bool = False
    """Whether corner elements' centres, not outer edges, coincide."""
    half_pixel_centers: bool = False
    """Whether element i has its centre at i + 0.5; not with `align_corners` for BILINEAR.
    """
    data_layout: DataLayout = DataLayout.NHWC

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input", ranks=(4,)),
        Operand("size", ranks=(1,), becomes="size"),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = same(
        DataType.FLOAT32,
        DataType.FLOAT16,
        DataType.QASYMM_U8,
        DataType.QASYMM_S8,
        DataType.QSYMM_S16,
        also=((DataType.SIGNED32,),),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(n, height, width, c)."""
        shape = inputs[0].shape or ()
        bilinear = self.method is ResizeMethod.BILINEAR
        require(
            not (bilinear and self.align_corners and self.half_pixel_centers),
            "align_corners and half_pixel_centers exclude each other",
        )
        sizes: Sequence[Dimension] = (None, None)
        if self.size is None:
            require_operand(inputs, 1, "size")
        else:
            require(
                len(self.size) == 2 and min(self.size) > 0,
                "the size is not two positive numbers",
                expected="(height, width), both above 0",
                actual=str(self.size),
            )
            sizes = self.size
        channels = shape[self.data_layout.channel_axis]
        require(
            0 not in shape or 0 in (shape[0], channels),
            "the image has no pixels",
            expected="a height and width above 0",
            actual=shape,
        )
        return (image_shape(self.data_layout, shape[0], sizes, channels),)

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if it has the size already and every element is its own sample."""
        shape = inputs[0].shape or ()
        sizes = tuple(shape[axis] for axis in self.data_layout.spatial_axes)
        # Aligned corners with shifted centres do not fall on the elements at equal sizes.
        odd = self.align_corners and self.half_pixel_centers
        return 0 if self.size is not None and sizes == self.size and not odd else None
