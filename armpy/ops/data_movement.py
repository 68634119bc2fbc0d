"""Base of operations that move elements without looking at their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.ops.operation import Operation, require
from armpy.tensor import MAX_RANK, Shape, TensorInfo


class DataMovement(Operation):
    """An operation whose outputs hold stored elements of its first input.

    Notes
    -----
    Any data type will do, and quantised elements keep their scale and zero point.
    """

    __slots__ = ()

    requantizes: ClassVar[bool] = False

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Same data type and quantisation on both sides."""
        for output in outputs:
            require_same_elements(inputs[0], output, "output")


def require_same_elements(first: TensorInfo, other: TensorInfo, what: str) -> None:
    """Check that two tensors have one data type and, if quantised, one quantisation."""
    require(
        other.data_type is first.data_type,
        f"the {what} has another data type than the first input",
        expected=first.data_type.name,
        actual=other.data_type.name,
    )
    if not first.data_type.is_quantized:
        return
    require(
        _scales(other) == _scales(first),
        f"the {what} is quantised unlike the first input",
        expected=str(first),
        actual=str(other),
        fix="Elements are moved as they are stored; requantise them in a layer of its own",
    )


def _scales(info: TensorInfo) -> object:
    """Scales and zero points; the axis that they run along may move with the elements."""
    quantization = info.quantization
    return quantization and (quantization.scales, quantization.zero_points)


def require_operand(inputs: Sequence[TensorInfo | None], index: int, attribute: str) -> TensorInfo:
    """The operand that becomes an attribute; `LayerValidationError` if both are left out."""
    operand = inputs[index] if index < len(inputs) else None
    require(
        operand is not None,
        f"neither an attribute nor an operand gives {attribute}",
        fix=f"Set the attribute {attribute}",
    )
    return operand  # type: ignore[return-value]  # require raised otherwise


def length_of(operand: TensorInfo) -> int | None:
    """Number of elements of an operand of rank 1; None if not known."""
    return operand.shape[0] if operand.shape else None


def shape_of_operand(
    inputs: Sequence[TensorInfo | None], index: int, attribute: str
) -> Shape | None:
    """A shape with an unknown dimension for each element of the operand that becomes it."""
    rank = length_of(require_operand(inputs, index, attribute))
    if rank is None:
        return None
    require(
        rank <= MAX_RANK,
        f"{attribute} has too many elements",
        expected=f"at most {MAX_RANK} dimensions",
        actual=rank,
    )
    return unknown_dims(rank)


def unknown_dims(rank: int) -> Shape:
    """A shape of known rank and nothing else."""
    return (None,) * rank


def require_per_axis(values: Sequence[object], rank: int, what: str) -> None:
    """Check that an attribute has one entry per axis."""
    require(
        len(values) == rank,
        f"the number of entries of {what} is not the input's rank",
        expected=f"{rank} entries",
        actual=len(values),
    )


def unwrap_single(operation: Operation, attribute: str) -> None:
    """Turn an attribute ``(n,)`` into ``n``, for `__post_init__`.

    Model files give a number as a tensor of shape () or (1,); other lengths are errors.
    """
    value = getattr(operation, attribute)
    if isinstance(value, tuple):
        require(
            len(value) == 1,
            f"{attribute} is not one number",
            expected="one number",
            actual=str(value),
        )
        object.__setattr__(operation, attribute, value[0])
