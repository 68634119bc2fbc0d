"""Operations on square matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Operation, TypeRule, require, same
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["Determinant"]


@dataclass(frozen=True, slots=True)
class Determinant(Operation):
    """Compute the determinants of square matrices.

    Notes
    -----
    input (..., m, m); output (...). Computed in float64, rounded once.

    References
    ----------
    ONNX Det.
    """

    type_rules: ClassVar[tuple[TypeRule, ...]] = same(
        DataType.FLOAT32, DataType.FLOAT16, DataType.FLOAT64
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The shape without its last two axes."""
        shape = inputs[0].shape or ()
        rows, columns = shape[-2:] if len(shape) >= 2 else (0, 1)
        require(
            rows is None or columns is None or rows == columns,
            "the matrices are not square",
            expected="(..., m, m)",
            actual=shape,
        )
        return (shape[:-2],)
