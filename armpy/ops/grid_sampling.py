"""Operations that look up images between their elements."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Operand, Operation, TypeRule, require, same
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["GridPadding", "GridSample", "SampleMode"]


class SampleMode(enum.Enum):
    """Interpolation between an image's elements; CUBIC is Keys' with -0.75."""

    LINEAR = 0
    NEAREST = 1
    CUBIC = 2


class GridPadding(enum.Enum):
    """Padding around an image: zeros, the border's elements, or the image reflected."""

    ZEROS = 0
    BORDER = 1
    REFLECTION = 2


@dataclass(frozen=True, slots=True)
class GridSample(Operation):
    """Sample an image or volume at positions of a grid.

    Notes
    -----
    input (n, h, w, c) or (n, d, h, w, c); grid (n, ..., 2 or 3): x, y and z of each sample, from -1
    to 1 along the axis; output (n, ..., c), with as many sample axes as spatial ones. NEAREST
    rounds halves to even. With `align_corners` images are reflected at the outer elements' centres,
    else at their edges. Positions have the grid's precision, sums are float64.

    References
    ----------
    ONNX GridSample; PyTorch ``grid_sample``; Jaderberg et al., "Spatial Transformer Networks",
    2015.
    """

    mode: SampleMode = SampleMode.LINEAR
    padding: GridPadding = GridPadding.ZEROS
    align_corners: bool = False
    """Whether -1 and 1 are the outer elements' centres, not their outer edges."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input", ranks=(4, 5)),
        Operand("grid", ranks=(4, 5)),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = same(
        DataType.FLOAT32, DataType.FLOAT16, DataType.FLOAT64
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(n, ..., c), the sizes in between the grid's."""
        image, grid = inputs[0].shape or (), inputs[1].shape or ()
        require(
            len(image) == len(grid) and grid[-1] in (None, len(image) - 2),
            "the grid's rank or number of coordinates is wrong",
            expected=f"rank {len(image)} with {len(image) - 2} coordinates at the last axis",
            actual=grid,
        )
        require(
            image[0] is None or grid[0] is None or image[0] == grid[0],
            "there is not one grid per image",
            expected=str(image[0]),
            actual=grid[0],
        )
        batch = grid[0] if image[0] is None else image[0]
        sizes = image[1:-1]
        require(0 not in sizes, "an image without elements cannot be sampled", actual=image)
        return ((batch, *grid[1:-1], image[-1]),)

    def scratch_bytes(
        self, inputs: Sequence[TensorInfo | None], outputs: Sequence[TensorInfo]
    ) -> int:
        """Weights and places of the samples, and sums of float64."""
        assert inputs[1] is not None  # it cannot be left out
        taps = 4 if self.mode is SampleMode.CUBIC else 2
        return 16 * taps * inputs[1].num_elements + 24 * outputs[0].num_elements
