"""Checks that operations with many operands share: sizes by axis letter, quantisation."""

from __future__ import annotations

import math
from collections.abc import Sequence

from armpy.ops.operation import OperandInfos, Operation, require
from armpy.tensor import Dimension, TensorInfo


def present_operands(operation: Operation, inputs: OperandInfos) -> frozenset[str]:
    """Names of the inputs that are not left out."""
    return frozenset(
        operation.input_name(index) for index, info in enumerate(inputs) if info is not None
    )


def bind_sizes(
    operation: Operation, inputs: OperandInfos, axes: Sequence[str]
) -> dict[str, Dimension]:
    """Sizes by axis letter, checked to be the same in every operand.

    `axes` has one letter per axis for each operand. The result has every letter of the operands
    that are present; `LayerValidationError` is raised if a letter stands for two sizes.
    """
    sizes: dict[str, Dimension] = {}
    for index, (info, letters) in enumerate(zip(inputs, axes, strict=False)):
        shape = info.shape or () if info is not None else ()
        for letter, dim in zip(letters, shape, strict=False):
            bind_size(sizes, letter, dim, operation.input_name(index))
    return sizes


def bind_size(sizes: dict[str, Dimension], letter: str, dim: Dimension, name: str) -> None:
    """Enter one more observation of an axis; another known size is an error."""
    known = sizes.get(letter)
    require(
        known is None or dim is None or known == dim,
        f"the size of {name} does not match the other operands",
        expected=str(known),
        actual=dim,
    )
    sizes[letter] = dim if known is None else known


def require_one_scale(operation: Operation, inputs: OperandInfos) -> None:
    """Check that every quantised operand has exactly one scale."""
    for index, info in enumerate(inputs):
        if info is not None and info.data_type.is_quantized:
            require(
                info.quantization is not None and not info.has_per_axis_quantization,
                f"{operation.input_name(index)} does not have one scale for the whole tensor",
                expected="one scale",
                actual="scales per axis" if info.quantization else "none",
            )


def require_same_quantization(first: TensorInfo, second: TensorInfo, names: str) -> None:
    """Check that two tensors have equal scales and zero points."""
    require(
        math.isclose(first.scale, second.scale, rel_tol=1e-6)
        and first.zero_point == second.zero_point,
        f"{names} are quantised differently",
        expected=f"scale {first.scale:g} and zero point {first.zero_point}",
        actual=f"{second.scale:g} and {second.zero_point}",
    )


def require_length(info: TensorInfo, axis: int, length: int, name: str) -> None:
    """Check the size of one axis, if it is known."""
    shape = info.shape or ()
    require(
        shape[axis] in (None, length),
        f"{name} has the wrong size along axis {axis}",
        expected=str(length),
        actual=shape,
    )
