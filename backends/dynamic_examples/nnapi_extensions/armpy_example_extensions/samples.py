"""The extension ``com.example.test_vendor``: sound samples, and a way out of 64-bit integers.

It shows elements of an odd size, an operation that takes types of another extension, and one
that mixes its own types with NNAPI's.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from armpy.backend import Extension, ExtensionOperand, ExtensionOperandType, ExtensionOperation
from armpy.errors import LayerValidationError
from armpy.ops import Operand, Operation, TypeRule, rule
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType
from armpy_example_extensions import fibonacci

NAME = "com.example.test_vendor"

TENSOR_INT24 = 0
"""Tensor of signed integers of 24 bits, low byte first; the real value of full scale, a
``float``, may be attached, else it is 1."""

DEQUANTIZE64 = 0
"""Real numbers from quantised 64-bit integers.

Inputs: 0, TENSOR_QUANT64_ASYMM of ``com.example.fibonacci``.
Outputs: 0, TENSOR_FLOAT32 of the same shape.
"""

AMPLIFY = 1
"""Samples made louder, saturating.

Inputs: 0, samples: `TENSOR_INT24`. 1, gain: FLOAT32.
Outputs: 0, `TENSOR_INT24` of the same shape.
"""


@dataclass(frozen=True, slots=True)
class Dequantize64(Operation):
    """DEQUANTIZE64 as a layer."""

    scale: float
    zero_point: int  # of the input's elements

    extension: ClassVar[str] = NAME
    type_rules: ClassVar[tuple[TypeRule, ...]] = (rule([DataType.UNSIGNED64], [DataType.FLOAT32]),)

    @property
    def required_extensions(self) -> tuple[str, ...]:
        """The other one too, whose type the input has."""
        return (NAME, fibonacci.NAME)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        return (inputs[0].shape,)


@dataclass(frozen=True, slots=True)
class Amplify(Operation):
    """AMPLIFY as a layer.

    Notes
    -----
    Elements of three bytes are carried byte by byte: samples uint8 (..., 3); gain ().
    """

    factor: float
    """Full scale of the input against that of the output, by which the gain is multiplied."""

    extension: ClassVar[str] = NAME
    inputs: ClassVar[tuple[Operand, ...]] = (Operand("samples"), Operand("gain", ranks=(0,)))
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        rule([DataType.UNSIGNED8, DataType.FLOAT32], [DataType.UNSIGNED8]),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The samples' shape."""
        return (inputs[0].shape,)


def _create_dequantize(
    inputs: Sequence[ExtensionOperand], outputs: Sequence[ExtensionOperand]
) -> Operation:
    """DEQUANTIZE64 for the operands that a model gives it."""
    wanted = (fibonacci.NAME, fibonacci.TENSOR_QUANT64_ASYMM)
    if len(inputs) != 1 or (inputs[0].extension, inputs[0].type_id) != wanted:
        raise LayerValidationError("DEQUANTIZE64 has one input", expected="TENSOR_QUANT64_ASYMM")
    if len(outputs) != 1 or not fibonacci.is_float_tensor(outputs[0]):
        raise LayerValidationError("DEQUANTIZE64 has one output", expected="TENSOR_FLOAT32")
    params = fibonacci.QuantParams.of(inputs[0])
    return Dequantize64(params.scale, params.zero_point)


def _create_amplify(
    inputs: Sequence[ExtensionOperand], outputs: Sequence[ExtensionOperand]
) -> Operation:
    """AMPLIFY for the operands that a model gives it."""
    types = [(operand.extension, operand.type_id) for operand in (*inputs, *outputs)]
    if types != [(NAME, TENSOR_INT24), ("", None), (NAME, TENSOR_INT24)] or len(inputs) != 2:
        raise LayerValidationError(
            "AMPLIFY has other operands", expected="TENSOR_INT24, FLOAT32 -> TENSOR_INT24"
        )
    return Amplify(_full_scale(inputs[0]) / _full_scale(outputs[0]))


def _full_scale(operand: ExtensionOperand) -> float:
    """The real value of the largest sample."""
    if operand.data is None:
        return 1.0
    if len(operand.data) != struct.calcsize("<f"):
        raise LayerValidationError("the number attached to samples is not a float")
    (value,) = struct.unpack("<f", operand.data)
    if not 0 < value < float("inf"):
        raise LayerValidationError(
            "full scale cannot be used", expected="above 0", actual=str(value)
        )
    return float(value)


EXTENSION = Extension(
    NAME,
    (ExtensionOperandType(TENSOR_INT24, "TENSOR_INT24", is_tensor=True, size_bytes=3),),
    (
        ExtensionOperation(DEQUANTIZE64, "DEQUANTIZE64", _create_dequantize),
        ExtensionOperation(AMPLIFY, "AMPLIFY", _create_amplify),
    ),
)
