"""Operations that make one tensor of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.data_movement import DataMovement, require_same_elements
from armpy.ops.operation import Operand, require
from armpy.ops.shapes import normalize_axis
from armpy.tensor import Dimension, Shape, TensorInfo, format_shape
from armpy.types import DataType

__all__ = ["Concat", "Stack"]

_REQUANTIZED = (DataType.QASYMM_U8, DataType.QASYMM_S8)


@dataclass(frozen=True, slots=True)
class Concat(DataMovement):
    """Concatenate tensors along an axis.

    Notes
    -----
    inputs (..., a_i, ...); output (..., sum of a_i, ...). QASYMM_U8 and QASYMM_S8 inputs may be
    quantised unlike the output and are requantised in float32, ``round(stored * s - zero_point * s)
    + output zero point`` with s = input scale / output scale, half away from zero, saturating,
    signed ones shifted into the unsigned range. Other quantised types need one quantisation.

    References
    ----------
    Arm NN Concat; NNAPI and TFLite CONCATENATION.
    """

    axis: int = 0

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input", variadic=True),)
    requantizes: ClassVar[bool] = True

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The inputs' shape with the sizes along the axis added up."""
        shapes = [info.shape or () for info in inputs]
        require(shapes, "there is nothing to concatenate", expected="one input at least")
        rank = len(shapes[0])
        require(rank > 0, "scalars cannot be concatenated", expected="rank 1 or more")
        axis = normalize_axis(self.axis, rank)
        others = merged(
            [tuple(None if a == axis else dim for a, dim in enumerate(shape)) for shape in shapes]
        )
        along = [shape[axis] for shape in shapes]
        total = None if None in along else sum(size for size in along if size is not None)
        return ((*others[:axis], total, *others[axis + 1 :]),)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """One data type; one quantisation, but for the asymmetric types of 8 bits."""
        for i, info in enumerate(inputs):
            require(
                info.data_type is outputs[0].data_type,
                f"input[{i}] has another data type than the output",
                expected=outputs[0].data_type.name,
                actual=info.data_type.name,
            )
            if info.data_type not in _REQUANTIZED or info.has_per_axis_quantization:
                require_same_elements(outputs[0], info, f"input[{i}]")

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The only input, if the output is quantised like it."""
        alone = len(inputs) == 1 and inputs[0].quantization == outputs[0].quantization
        return 0 if alone else None


@dataclass(frozen=True, slots=True)
class Stack(DataMovement):
    """Stack tensors of one shape along a new axis.

    Notes
    -----
    input (...), any number of them, of one quantisation; output of one rank more.

    References
    ----------
    Arm NN Stack; TFLite PACK.
    """

    axis: int = 0
    """Axis of the output; negative counts from its end."""

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input", variadic=True),)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The inputs' shape with their number at the axis."""
        require(inputs, "there is nothing to stack", expected="one input at least")
        shape = merged([info.shape or () for info in inputs])
        axis = normalize_axis(self.axis, len(shape) + 1)
        return ((*shape[:axis], len(inputs), *shape[axis:]),)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """One data type and quantisation."""
        for i, info in enumerate(inputs):
            require_same_elements(outputs[0], info, f"input[{i}]")


def merged(shapes: Sequence[Shape]) -> Shape:
    """Merge partly known shapes; `LayerValidationError` if ranks or known sizes differ."""
    result: list[Dimension] = list(shapes[0])
    for shape in shapes[1:]:
        fits = len(shape) == len(result) and all(
            a is None or b is None or a == b for a, b in zip(shape, result, strict=True)
        )
        require(
            fits,
            "the inputs' shapes differ",
            expected=f"{format_shape(tuple(result))}, where ? is any size",
            actual=format_shape(shape),
        )
        result = [b if a is None else a for a, b in zip(shape, result, strict=True)]
    return tuple(result)
