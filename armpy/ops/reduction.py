"""Operations that make one element of many along axes."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.data_movement import (
    require_operand,
    require_same_elements,
    unknown_dims,
    unwrap_single,
)
from armpy.ops.elementwise import INTEGER_TYPES
from armpy.ops.operation import Operand, Operation, TypeRule, require, rule, same
from armpy.ops.shapes import normalize_axes, normalize_axis
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["ArgMinMax", "ArgMinMaxFunction", "Reduce", "ReduceOperation"]

_QUANTIZED = (DataType.QASYMM_U8, DataType.QASYMM_S8, DataType.QSYMM_S16)
_NUMBERS = (
    DataType.FLOAT64,
    DataType.FLOAT32,
    DataType.FLOAT16,
    DataType.SIGNED32,
    DataType.SIGNED64,
)
_BYTES = (DataType.SIGNED8, DataType.UNSIGNED8)


class ReduceOperation(enum.Enum):
    """Function of `Reduce`; the first five numbers are Arm NN's."""

    SUM = 0
    MAX = 1
    MEAN = 2
    MIN = 3
    PROD = 4
    ANY = 5
    ALL = 6

    @property
    def is_logical(self) -> bool:
        """Return whether it takes truth values, not numbers."""
        return self in (ReduceOperation.ANY, ReduceOperation.ALL)

    @property
    def selects(self) -> bool:
        """Return whether the result is one of the elements."""
        return self in (ReduceOperation.MAX, ReduceOperation.MIN)


@dataclass(frozen=True, slots=True)
class Reduce(Operation):
    """Combine all elements along axes.

    Notes
    -----
    input (...); axes int32 (number of axes) or (); output without the axes, rank 0 if none
    is left. Arm NN's Mean is ``Reduce(ReduceOperation.MEAN)``.

    Floats are added up in float64 and multiplied in float32, or float64 if they are. Integers: SUM
    and PROD wrap, MEAN rounds towards 0. Quantised: SUM, MEAN and PROD accumulate in int32 and
    requantise in fixed point; MAX and MIN keep the quantisation. MAX and MIN of no floats are
    infinities. `rounds_down` and `zero_absorbs` are NNAPI's.

    References
    ----------
    Arm NN Reduce, Mean; NNAPI MEAN, REDUCE_*; TFLite MEAN, SUM, REDUCE_*.
    """

    operation: ReduceOperation = ReduceOperation.SUM
    axes: tuple[int, ...] | None = None
    """Axes, repeated ones counted once; () for none, None for all.
    """
    keep_dims: bool = False
    """Whether reduced axes stay with size 1."""
    rounds_down: bool = False
    """Whether quantised MEAN is the mean of stored integers, rounded down; input and output are
    quantised alike.
    """
    zero_absorbs: bool = False
    """Whether PROD of floats is 0 if a factor is, despite infinities and NaN."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("axes", ranks=(0, 1), becomes="axes"),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = same(
        *_NUMBERS,
        *_BYTES,
        *_QUANTIZED,
        DataType.BOOLEAN,
        also=((DataType.SIGNED32, DataType.SIGNED64),),
    )

    def __post_init__(self) -> None:
        if isinstance(self.axes, int):
            object.__setattr__(self, "axes", (self.axes,))

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape without the axes, or with size 1 there."""
        shape = inputs[0].shape or ()
        if self.axes is None and len(inputs) > 1 and inputs[1] is not None:
            return (unknown_dims(len(shape)) if self.keep_dims else None,)
        axes = self.resolved_axes(len(shape))
        if self.keep_dims:
            return (tuple(1 if axis in axes else dim for axis, dim in enumerate(shape)),)
        return (tuple(dim for axis, dim in enumerate(shape) if axis not in axes),)

    def resolved_axes(self, rank: int) -> tuple[int, ...]:
        """The axes that are reduced, counted from the front."""
        if rank == 0 or self.axes is None:
            return tuple(range(rank))
        return normalize_axes(self.axes, rank)

    def takes_elements(self, data_type: DataType) -> bool:
        """Bytes have extremes alone."""
        return data_type not in _BYTES or self.operation.selects

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Truth values where they belong; one quantisation where it is kept."""
        data_type, selects = inputs[0].data_type, self.operation.selects
        for name, owner in (
            ("rounds_down", ReduceOperation.MEAN),
            ("zero_absorbs", ReduceOperation.PROD),
        ):
            require(
                self.operation is owner or not getattr(self, name),
                f"{name} is of another reduction",
                expected=owner.name,
                actual=self.operation.name,
            )
        require(
            (data_type is DataType.BOOLEAN) == self.operation.is_logical
            and self.takes_elements(data_type),
            f"{self.operation.name} does not take this data type",
            expected="BOOLEAN" if self.operation.is_logical else "other numbers",
            actual=data_type.name,
        )
        if selects or self.rounds_down:
            require_same_elements(inputs[0], outputs[0], "output")

    def identity_of(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> int | None:
        """The input, if nothing is reduced."""
        same_tensor = inputs[0].quantization == outputs[0].quantization
        return 0 if self.axes == () and same_tensor else None


class ArgMinMaxFunction(enum.Enum):
    """Function of `ArgMinMax`; numbers are Arm NN's."""

    MIN = 0
    MAX = 1


@dataclass(frozen=True, slots=True)
class ArgMinMax(Operation):
    """Find the position of the least or greatest element along an axis.

    Notes
    -----
    input (...); axis int32 () or (1,); output without the axis. The first of equal elements counts,
    and the first NaN if there is one.

    References
    ----------
    Arm NN ArgMinMax; NNAPI ARGMAX, ARGMIN; TFLite ARG_MAX, ARG_MIN.
    """

    function: ArgMinMaxFunction = ArgMinMaxFunction.MIN
    axis: int | None = None
    output_type: DataType = DataType.SIGNED32
    """SIGNED32 or SIGNED64."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input"),
        Operand("axis", ranks=(0, 1), becomes="axis"),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        rule(
            (
                (*_NUMBERS, *INTEGER_TYPES, *_QUANTIZED, DataType.BOOLEAN),
                (DataType.SIGNED32, DataType.SIGNED64),
            ),
            ((DataType.SIGNED32, DataType.SIGNED64),),
        ),
    )

    def __post_init__(self) -> None:
        unwrap_single(self, "axis")

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape without the axis."""
        shape = inputs[0].shape or ()
        require(shape, "a scalar has no axis to search", expected="rank 1 or more")
        if self.axis is None:
            require_operand(inputs, 1, "axis")
            return (unknown_dims(len(shape) - 1),)
        axis = normalize_axis(self.axis, len(shape))
        require(
            shape[axis] != 0,
            "the axis is empty",
            expected="one element at least",
            actual=shape[axis],
        )
        return ((*shape[:axis], *shape[axis + 1 :]),)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """The attribute."""
        return (self.output_type,)
