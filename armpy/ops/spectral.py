"""Transforms to frequencies and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Operand, Operation, TypeRule, require, same
from armpy.ops.shapes import normalize_axis
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["Dft"]


@dataclass(frozen=True, slots=True)
class Dft(Operation):
    """Discrete Fourier transform along an axis.

    Notes
    -----
    input (..., n, ..., 1) of real numbers or (..., n, ..., 2) with imaginary parts; output
    (..., length, ..., 2); (..., length // 2 + 1, ..., 2) if one-sided; (..., length, ..., 1) if
    inverse, too. ``sum over t of x[t] exp(-2 pi i f t / length)``. Computed in complex64, FLOAT64
    in complex128.

    References
    ----------
    ONNX DFT; Cooley and Tukey, "An Algorithm for the Machine Calculation of Complex Fourier
    Series", 1965.
    """

    axis: int = -2
    """Axis of the signal, which is not the last one."""
    length: int = 0
    """Length of the signal, cut or filled up with zeros; 0 for the axis' own (from half of the
    frequencies, the even one).
    """
    is_inverse: bool = False
    """Whether frequencies become a signal, divided by its length."""
    is_onesided: bool = False
    """Whether only frequencies up to half of the length are there, as for real signals.
    """

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input", ranks=tuple(range(2, 9))),)
    type_rules: ClassVar[tuple[TypeRule, ...]] = same(
        DataType.FLOAT32, DataType.FLOAT16, DataType.FLOAT64
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape with as many elements as come out along both axes."""
        shape = list(inputs[0].shape or ())
        axis = normalize_axis(self.axis, len(shape))
        require(
            axis < len(shape) - 1,
            "the last axis holds the parts of a number",
            expected=f"an axis below {len(shape) - 1}",
            actual=self.axis,
        )
        require(
            shape[-1] in (1, 2, None),
            "the last axis does not hold the parts of a number",
            expected="1 or 2 elements",
            actual=shape[-1],
        )
        length = self.resolved_length(shape[axis])
        require(
            length is None or length >= 1,
            "the signal has no elements",
            expected="a length of 1 or more",
            actual=length,
        )
        whole = self.is_inverse or not self.is_onesided
        shape[axis] = length if whole or length is None else length // 2 + 1
        shape[-1] = 1 if self.is_inverse and self.is_onesided else 2
        return (tuple(shape),)

    def resolved_length(self, size: int | None) -> int | None:
        """Length of the signal of an axis with `size` elements."""
        if self.length or size is None:
            return self.length or None
        return 2 * (size - 1) if self.is_inverse and self.is_onesided else size

    def scratch_bytes(
        self, inputs: Sequence[TensorInfo | None], outputs: Sequence[TensorInfo]
    ) -> int:
        """Four complex numbers per element of the output."""
        return 4 * 16 * outputs[0].num_elements
