"""Operations that make a tensor of a shape, of a number or of positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.core.symbolic import elements_of
from armpy.ops.data_movement import (
    DataMovement,
    require_operand,
    require_same_elements,
    shape_of_operand,
    unwrap_single,
)
from armpy.ops.operation import Array, Operand, Operation, TypeRule, require, rule
from armpy.ops.shapes import normalize_axis
from armpy.tensor import Shape as TensorShape
from armpy.tensor import TensorInfo
from armpy.types import DataType

__all__ = ["Fill", "OneHot", "Range", "Rank", "Shape"]

_ANY = tuple(DataType)


_NUMBERS = (DataType.FLOAT32, DataType.SIGNED32, DataType.SIGNED64)


@dataclass(frozen=True, slots=True)
class Shape(Operation):
    """Return a tensor's shape.

    Notes
    -----
    input (...); output (rank of the input), constant once the input's shape is known.

    References
    ----------
    Arm NN Shape; TFLite SHAPE.
    """

    output_type: DataType = DataType.SIGNED32
    """SIGNED32 or SIGNED64."""

    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        rule((_ANY,), ((DataType.SIGNED32, DataType.SIGNED64),)),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[TensorShape | None, ...]:
        """One element per axis."""
        return ((len(inputs[0].shape or ()),),)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """The attribute."""
        return (self.output_type,)

    def infer_values(self, inputs: Sequence[TensorInfo]) -> tuple[Array, ...] | None:
        """The shape, if it is known."""
        if not inputs[0].is_fully_shaped:
            return None
        return (elements_of(inputs[0].known_shape, self.output_type.dtype),)


@dataclass(frozen=True, slots=True)
class Rank(Operation):
    """Return a tensor's number of axes.

    Notes
    -----
    input (...); output int32 (), constant once the rank is known.

    References
    ----------
    Arm NN Rank; NNAPI and TFLite RANK.
    """

    type_rules: ClassVar[tuple[TypeRule, ...]] = (rule((_ANY,), (DataType.SIGNED32,)),)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[TensorShape | None, ...]:
        """A scalar."""
        return ((),)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """SIGNED32."""
        return (DataType.SIGNED32,)

    def infer_values(self, inputs: Sequence[TensorInfo]) -> tuple[Array, ...] | None:
        """The rank, if it is known."""
        rank = inputs[0].rank
        return None if rank is None else (np.array(rank, np.int32),)


@dataclass(frozen=True, slots=True)
class Fill(DataMovement):
    """Make a tensor of one number.

    Notes
    -----
    value, one element, of the output's type and quantisation; shape int32 or int64 (rank of the
    output). ``value`` is an attribute in Arm NN and NNAPI.

    References
    ----------
    Arm NN Fill; NNAPI and TFLite FILL.
    """

    shape: tuple[int, ...] | None = None
    """Shape of the output."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("value"),
        Operand("shape", ranks=(1,), becomes="shape"),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[TensorShape | None, ...]:
        """The given shape."""
        count = math.prod(1 if dim is None else dim for dim in inputs[0].shape or ())
        require(count == 1, "the value is not one number", expected="1 element", actual=count)
        if self.shape is None:
            return (shape_of_operand(inputs, 1, "shape"),)
        require(
            all(dim >= 0 for dim in self.shape),
            "a size of the shape is negative",
            expected="sizes >= 0",
            actual=str(self.shape),
        )
        return (self.shape,)


@dataclass(frozen=True, slots=True)
class Range(Operation):
    """Count from a start in equal steps to a limit.

    Notes
    -----
    start, limit, delta (); output (ceil((limit - start) / delta)), constant once the three are
    known. Floats are added up in float32.

    References
    ----------
    TFLite RANGE.
    """

    start: float | None = None
    limit: float | None = None
    delta: float | None = None
    """`start`, `limit` and `delta`: first number, exclusive limit, and step."""
    output_type: DataType = DataType.SIGNED32
    """FLOAT32, SIGNED32 or SIGNED64; type of the operands too."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("start", ranks=(0, 1), becomes="start", types=_NUMBERS),
        Operand("limit", ranks=(0, 1), becomes="limit", types=_NUMBERS),
        Operand("delta", ranks=(0, 1), becomes="delta", types=_NUMBERS),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = tuple(rule((t,), (t,)) for t in _NUMBERS)

    def __post_init__(self) -> None:
        for name in ("start", "limit", "delta"):
            unwrap_single(self, name)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[TensorShape | None, ...]:
        """The number of steps."""
        for i, name in enumerate(("start", "limit", "delta")):
            if getattr(self, name) is None:
                require_operand(inputs, i, name)
        if self.start is None or self.limit is None or self.delta is None:
            return ((None,),)
        numbers = (self.start, self.limit, self.delta)
        require(
            self.delta != 0 and all(map(math.isfinite, numbers)),
            "the range cannot be counted",
            expected="finite numbers and a step other than 0",
            actual=str(numbers),
        )
        length = (self.limit - self.start) / self.delta
        return ((max(math.ceil(length), 0),),)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """The attribute."""
        return (self.output_type,)

    def infer_values(self, inputs: Sequence[TensorInfo]) -> tuple[Array, ...] | None:
        """The numbers, if start, limit and step are known."""
        ((length,),) = self.infer_shapes(inputs)  # type: ignore[misc]  # the rank is always 1
        if length is None:
            return None
        steps = np.full(length, self.delta, self.output_type.dtype)
        steps[:1] = self.start
        return (np.add.accumulate(steps, dtype=steps.dtype),)


@dataclass(frozen=True, slots=True)
class OneHot(Operation):
    """Mark positions along a new axis.

    Notes
    -----
    indices int32 or int64 (...); on_value and off_value (), of one type; depth int32 (); output of
    one rank more: on_value at the position that the index names, if it exists, off_value elsewhere.

    References
    ----------
    TFLite ONE_HOT.
    """

    depth: int | None = None
    """Size of the new axis."""
    axis: int = -1
    """Axis of the output; negative counts from its end."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("indices"),
        Operand("on_value", ranks=(0, 1)),
        Operand("off_value", ranks=(0, 1)),
        Operand("depth", ranks=(0, 1), becomes="depth"),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = tuple(
        rule((indices, t, t, DataType.SIGNED32), (t,))
        for indices in (DataType.SIGNED32, DataType.SIGNED64)
        for t in _ANY
    )

    def __post_init__(self) -> None:
        unwrap_single(self, "depth")

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[TensorShape | None, ...]:
        """The indices' shape with the depth at the axis."""
        shape = inputs[0].shape or ()
        axis = normalize_axis(self.axis, len(shape) + 1)
        if self.depth is None:
            require_operand(inputs, 3, "depth")
        else:
            require(
                self.depth >= 0,
                "the depth is negative",
                expected="0 or more",
                actual=self.depth,
            )
        return ((*shape[:axis], self.depth, *shape[axis:]),)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """The type of on_value."""
        return (inputs[1].data_type,)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Both values and the output quantised alike."""
        require_same_elements(inputs[1], inputs[2], "off_value")
        require_same_elements(inputs[1], outputs[0], "output")
