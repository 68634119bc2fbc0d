"""The extension ``com.example.fibonacci``: what applications import, as a vendor's header file.

Scalars of 64 bits, tensors of quantised 64-bit integers, and the operation FIBONACCI.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from armpy.backend import Extension, ExtensionOperand, ExtensionOperandType, ExtensionOperation
from armpy.errors import LayerValidationError
from armpy.ops import Operand, Operation, TypeRule, rule
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

NAME = "com.example.fibonacci"

INT64 = 0
"""Scalar: a signed integer of 64 bits."""

TENSOR_QUANT64_ASYMM = 1
"""Tensor of unsigned integers of 64 bits; `QuantParams` are attached."""

FIBONACCI = 0
"""The first numbers of the Fibonacci sequence, 1 1 2 3 5 ...

Inputs: 0, how many: `INT64`, or TENSOR_FLOAT32 of one element.
Outputs: 0, the numbers: `TENSOR_QUANT64_ASYMM` or TENSOR_FLOAT32, of one dimension.
"""


@dataclass(frozen=True)
class QuantParams:
    """Data attached to a `TENSOR_QUANT64_ASYMM`: elements are ``value / scale + zero_point``."""

    scale: float
    zero_point: int

    def pack(self) -> bytes:
        """The parameters as extension data: a C struct of a double and an int64_t."""
        return struct.pack("<dq", self.scale, self.zero_point)

    @classmethod
    def of(cls, operand: ExtensionOperand) -> QuantParams:
        """The parameters of an operand.

        Raises
        ------
        LayerValidationError
            If they are missing or cannot be used.
        """
        if operand.data is None or len(operand.data) != struct.calcsize("<dq"):
            raise LayerValidationError(
                "quantised 64-bit integers need parameters", expected="a double and an int64_t"
            )
        params = cls(*struct.unpack("<dq", operand.data))
        if not 0 < params.scale < float("inf"):
            raise LayerValidationError(
                "the scale cannot be used", expected="above 0", actual=str(params.scale)
            )
        return params


@dataclass(frozen=True, slots=True)
class Fibonacci(Operation):
    """FIBONACCI as a layer."""

    count: float | None = None
    """How many numbers, as the operand holds it. None until the operand is known."""
    scale: float = 0.0  # of the output's elements; 0 where they are floats
    zero_point: int = 0  # of the output's elements

    extension: ClassVar[str] = NAME
    inputs: ClassVar[tuple[Operand, ...]] = (
        # How many there are decides on the output's shape: the core makes it an attribute.
        Operand("count", becomes="count", types=(DataType.UNSIGNED64, DataType.FLOAT32)),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        rule([(DataType.UNSIGNED64, DataType.FLOAT32)], [(DataType.UNSIGNED64, DataType.FLOAT32)]),
    )

    def __post_init__(self) -> None:
        count: object = self.count
        while isinstance(count, tuple):  # it comes from a tensor
            if len(count) != 1:
                raise LayerValidationError("the input is not one number", actual=str(count))
            count = count[0]
        object.__setattr__(self, "count", count)

    @property
    def length(self) -> int | None:
        """How many numbers; None if that is not known yet."""
        count = self.count
        if isinstance(count, float):
            return int(count) if math.isfinite(count) else 0
        if count is not None and count >= 1 << 63:
            return count - (1 << 64)  # the core carries INT64 without a sign
        return count

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """As many as asked for."""
        if self.length is not None and self.length < 1:
            raise LayerValidationError(
                "there are too few numbers", expected="1 or more", actual=str(self.length)
            )
        return ((self.length,),)


def _create(inputs: Sequence[ExtensionOperand], outputs: Sequence[ExtensionOperand]) -> Operation:
    """FIBONACCI for the operands that a model gives it."""
    if len(inputs) != 1 or len(outputs) != 1:
        raise LayerValidationError("FIBONACCI has one input and one output")
    count, numbers = inputs[0], outputs[0]
    is_scalar = (count.extension, count.type_id) == (NAME, INT64)
    if not is_scalar and not is_float_tensor(count, of_one_element=True):
        raise LayerValidationError(
            "the input has the wrong type", expected="INT64, or one TENSOR_FLOAT32 element"
        )
    if is_float_tensor(numbers):
        return Fibonacci()
    if (numbers.extension, numbers.type_id) == (NAME, TENSOR_QUANT64_ASYMM):
        params = QuantParams.of(numbers)
        return Fibonacci(scale=params.scale, zero_point=params.zero_point)
    raise LayerValidationError(
        "the output has the wrong type", expected="TENSOR_QUANT64_ASYMM or TENSOR_FLOAT32"
    )


def is_float_tensor(operand: ExtensionOperand, of_one_element: bool = False) -> bool:
    """Whether an operand is of NNAPI's TENSOR_FLOAT32; its scalars have the shape ()."""
    info = operand.info
    if operand.extension or info.data_type is not DataType.FLOAT32 or info.shape == ():
        return False
    return not of_one_element or info.shape is None or set(info.shape) <= {1, None}


EXTENSION = Extension(
    NAME,
    (
        ExtensionOperandType(INT64, "INT64", is_tensor=False, size_bytes=8),
        ExtensionOperandType(
            TENSOR_QUANT64_ASYMM, "TENSOR_QUANT64_ASYMM", is_tensor=True, size_bytes=8
        ),
    ),
    (ExtensionOperation(FIBONACCI, "FIBONACCI", _create),),
)
