"""Operations that read or write single elements, or slices, where indices say."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.data_movement import DataMovement, require_same_elements
from armpy.ops.elementwise import INTEGER_TYPES
from armpy.ops.operation import Operand, require
from armpy.ops.shapes import normalize_axis
from armpy.ops.slicing import check_indices
from armpy.tensor import Shape, TensorInfo, format_shape
from armpy.types import DataType

__all__ = ["GatherElements", "ScatterElements", "ScatterNd", "ScatterReduction"]

_COMBINED = (DataType.FLOAT64, DataType.FLOAT32, DataType.FLOAT16, *INTEGER_TYPES)
"""Types of updates that can be combined with the present elements."""


@dataclass(frozen=True, slots=True)
class GatherElements(DataMovement):
    """Look up single elements along an axis.

    Notes
    -----
    input (..., a, ...); indices int16, int32 or int64 of the same rank and along each other
    axis at most as large, each in [0, a), or [-a, a); output of the indices' shape:
    ``output[i][j][k] = input[i][indices[i][j][k]][k]`` for axis 1.

    References
    ----------
    ONNX GatherElements; ``torch.gather``.
    """

    axis: int = 0
    wraps_negative: bool = False
    """Whether indices below 0 count from the end."""

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input"), Operand("indices"))

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The indices' shape."""
        shape, indices = inputs[0].shape or (), inputs[1].shape or ()
        _check_along(shape, indices, self.axis)
        return (indices,)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Same data type and quantisation; indices are integers."""
        DataMovement.validate(self, inputs, outputs)
        check_indices(inputs[1])


class ScatterReduction(enum.Enum):
    """Reduction of an element and the updates that are written to it.

    NONE keeps the last update; the others combine all of them with the present element.

    References
    ----------
    ONNX ScatterND, ``reduction``.
    """

    NONE = 0
    ADD = 1
    MUL = 2
    MAX = 3
    MIN = 4


@dataclass(frozen=True, slots=True)
class ScatterElements(DataMovement):
    """Write single elements along an axis into a copy of a tensor.

    Notes
    -----
    input (..., a, ...); indices int16, int32 or int64 of the same rank and along each other
    axis at most as large, each in [0, a), or [-a, a); updates of the indices' shape and the
    input's type; output of the input's shape. Updates are written in order.

    References
    ----------
    ONNX ScatterElements; ``torch.scatter``.
    """

    axis: int = 0
    reduction: ScatterReduction = ScatterReduction.NONE
    wraps_negative: bool = False
    """Whether indices below 0 count from the end."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("indices"),
        Operand("updates"),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        shape, indices, updates = (info.shape or () for info in inputs)
        _check_along(shape, indices, self.axis)
        _check_updates(updates, indices)
        return (shape,)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Same data type and quantisation; indices are integers."""
        _validate_scatter(self.reduction, inputs, outputs)


@dataclass(frozen=True, slots=True)
class ScatterNd(DataMovement):
    """Write slices by coordinates along the outer axes into a copy of a tensor.

    Notes
    -----
    input (a_1, ..., a_d, i...); indices int16, int32 or int64 (k..., d), each coordinate in
    [0, a_j), or [-a_j, a_j); updates (k..., i...), of the input's type; output of the input's
    shape. Updates are written in order. The inverse of `GatherNd`.

    References
    ----------
    ONNX ScatterND; TFLite SCATTER_ND, which adds to zeros.
    """

    reduction: ScatterReduction = ScatterReduction.NONE
    wraps_negative: bool = False
    """Whether indices below 0 count from the end."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("indices", ranks=tuple(range(1, 9))),
        Operand("updates"),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        shape, indices, updates = (info.shape or () for info in inputs)
        depth = indices[-1]
        if depth is not None:
            require(
                1 <= depth <= len(shape),
                "the number of coordinates is out of range",
                expected=f"1 to {len(shape)}, the input's rank",
                actual=depth,
            )
            _check_updates(updates, (*indices[:-1], *shape[depth:]))
        return (shape,)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Same data type and quantisation; indices are integers."""
        _validate_scatter(self.reduction, inputs, outputs)


def _check_along(shape: Shape, indices: Shape, axis: int) -> None:
    """Check that indices lie within a tensor but for an axis."""
    along = normalize_axis(axis, len(shape))
    require(
        len(indices) == len(shape)
        and all(
            inner is None or outer is None or inner <= outer or i == along
            for i, (inner, outer) in enumerate(zip(indices, shape, strict=True))
        ),
        "the indices have the wrong rank, or are larger than the input",
        expected=f"at most {format_shape(shape)}, but along axis {along}",
        actual=format_shape(indices),
    )


def _check_updates(updates: Shape, expected: Shape) -> None:
    fits = len(updates) == len(expected) and all(
        a is None or b is None or a == b for a, b in zip(updates, expected, strict=True)
    )
    require(
        fits,
        "the updates have the wrong shape",
        expected=format_shape(expected),
        actual=format_shape(updates),
    )


def _validate_scatter(
    reduction: ScatterReduction, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
) -> None:
    """Check the types of a scatter's operands."""
    require_same_elements(inputs[0], outputs[0], "output")
    require_same_elements(inputs[0], inputs[2], "updates")
    check_indices(inputs[1])
    require(
        reduction is ScatterReduction.NONE or inputs[0].data_type in _COMBINED,
        f"{reduction.name} does not take this data type",
        expected="numbers that are not quantised",
        actual=inputs[0].data_type.name,
    )
