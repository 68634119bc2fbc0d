"""Operations that compute each output element from one element of every input."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.activations import FusedActivation
from armpy.ops.operation import Operand, Operation, TypeRule, require, rule, same
from armpy.ops.shapes import broadcast_shapes
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = [
    "BinaryOperation",
    "Comparison",
    "ComparisonOperation",
    "ElementwiseBinary",
    "ElementwiseUnary",
    "LogicalBinary",
    "LogicalBinaryOperation",
    "Prelu",
    "Select",
    "UnaryOperation",
]

FLOAT_TYPES = (DataType.FLOAT32, DataType.FLOAT16)
"""Floating-point types that CpuRef computes with."""

INTEGER_TYPES = (
    DataType.SIGNED8,
    DataType.SIGNED16,
    DataType.SIGNED32,
    DataType.SIGNED64,
    DataType.UNSIGNED8,
    DataType.UNSIGNED16,
    DataType.UNSIGNED32,
    DataType.UNSIGNED64,
)
"""Plain integer types, with or without sign."""

QUANTIZED_TYPES = (DataType.QASYMM_S8, DataType.QASYMM_U8, DataType.QSYMM_S16)
"""Quantised types of activations."""

_NUMERIC_TYPES = (*FLOAT_TYPES, DataType.FLOAT64, *INTEGER_TYPES, *QUANTIZED_TYPES)
_PAIR = (Operand("lhs"), Operand("rhs"))


class BinaryOperation(enum.Enum):
    """Function of `ElementwiseBinary`.

    DIV truncates integers and FLOOR_DIV rounds quotients down; FLOOR_MOD is the rest that
    belongs to FLOOR_DIV, of the sign of the divisor, TRUNC_MOD that of a truncated quotient, of
    the sign of the dividend. ATAN2 is the angle of the point (rhs, lhs). Bits are shifted by rhs;
    all of them away where that is as many as there are, or negative. SHIFT_RIGHT keeps the sign.

    References
    ----------
    Arm NN ``BinaryOperation``, whose numbers the first nine have.
    """

    ADD = 0
    DIV = 1
    MAXIMUM = 2
    MINIMUM = 3
    MUL = 4
    SUB = 5
    SQUARED_DIFFERENCE = 6
    POWER = 7
    FLOOR_DIV = 8
    FLOOR_MOD = 9
    TRUNC_MOD = 10
    ATAN2 = 11
    BITWISE_AND = 12
    BITWISE_OR = 13
    BITWISE_XOR = 14
    SHIFT_LEFT = 15
    SHIFT_RIGHT = 16


class UnaryOperation(enum.Enum):
    """Function of `ElementwiseUnary`; ROUND rounds halves to even, SIGN keeps zeros and NaN.

    References
    ----------
    Arm NN ``UnaryOperation``, whose numbers the first nine have.
    """

    ABS = 0
    EXP = 1
    SQRT = 2
    RSQRT = 3
    NEG = 4
    LOGICAL_NOT = 5
    LOG = 6
    SIN = 7
    CEIL = 8
    COS = 9
    FLOOR = 10
    ROUND = 11
    SQUARE = 12
    ERF = 13
    RECIPROCAL = 14
    SIGN = 15
    TAN = 16
    ASIN = 17
    ACOS = 18
    ATAN = 19
    SINH = 20
    COSH = 21
    ASINH = 22
    ACOSH = 23
    ATANH = 24
    BITWISE_NOT = 25


class ComparisonOperation(enum.Enum):
    """Relation that `Comparison` tests.

    References
    ----------
    Arm NN ``ComparisonOperation``.
    """

    EQUAL = 0
    GREATER = 1
    GREATER_OR_EQUAL = 2
    LESS = 3
    LESS_OR_EQUAL = 4
    NOT_EQUAL = 5


class LogicalBinaryOperation(enum.Enum):
    """Function of `LogicalBinary`.

    References
    ----------
    Arm NN ``LogicalBinaryOperation``.
    """

    LOGICAL_AND = 0
    LOGICAL_OR = 1
    LOGICAL_XOR = 2


def _broadcast(inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
    return (broadcast_shapes(*(info.shape for info in inputs)),)


@dataclass(frozen=True, slots=True)
class ElementwiseBinary(Operation):
    """Combine two tensors element by element.

    Notes
    -----
    lhs (...); rhs (...); output as both broadcast. Floats are computed in float32; integers wrap;
    an integer divided by 0 is 0. Quantised ADD, SUB, MUL, DIV and SQUARED_DIFFERENCE rescale in
    fixed point, half away from zero, and saturate; MAXIMUM and MINIMUM compare stored integers if
    all quantisations are equal; the rest goes through float32.

    References
    ----------
    Arm NN ElementwiseBinary; NNAPI ADD, SUB, MUL, DIV (on integers FLOOR_DIV), MAXIMUM,
    MINIMUM, POW; TFLite ADD, SUB, MUL, DIV, MAXIMUM, MINIMUM, SQUARED_DIFFERENCE, POW,
    FLOOR_DIV, FLOOR_MOD, ATAN2, BITWISE_XOR, RIGHT_SHIFT; ONNX Mod, BitShift, BitwiseAnd,
    BitwiseOr, BitwiseXor.
    """

    operation: BinaryOperation = BinaryOperation.ADD
    activation: FusedActivation = FusedActivation.NONE
    power_of_two_scales: bool = False
    """Whether QSYMM_S16 ADD and SUB whose scales are powers of two shift the finer input (TFLite's
    ``pot_scale_int16``).
    """

    inputs: ClassVar[tuple[Operand, ...]] = _PAIR
    type_rules: ClassVar[tuple[TypeRule, ...]] = same(*_NUMERIC_TYPES)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The shape that both inputs broadcast to."""
        return _broadcast(inputs)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Bits are those of integers, angles and rests those of numbers without a scale."""
        data_type, function = inputs[0].data_type, self.operation
        if function in _OF_BITS:
            _require_type(function, data_type in INTEGER_TYPES, data_type, "a plain integer type")
        elif function is BinaryOperation.ATAN2:
            _require_type(function, data_type.is_float, data_type, "a floating-point type")
        elif function is BinaryOperation.TRUNC_MOD:
            _require_type(function, not data_type.is_quantized, data_type, "no quantised type")


_OF_BITS = (
    BinaryOperation.BITWISE_AND,
    BinaryOperation.BITWISE_OR,
    BinaryOperation.BITWISE_XOR,
    BinaryOperation.SHIFT_LEFT,
    BinaryOperation.SHIFT_RIGHT,
)


def _require_type(
    function: enum.Enum, is_computed: bool, data_type: DataType, expected: str
) -> None:
    require(
        is_computed,
        f"{function.name} does not compute {data_type.name}",
        expected=expected,
        actual=data_type.name,
        fix="Put a Cast in front",
    )


@dataclass(frozen=True, slots=True)
class ElementwiseUnary(Operation):
    """Compute a function of each element.

    Notes
    -----
    input (...); output as input. Floats are computed in float32, FLOAT64 in itself. Integers allow
    ABS, NEG, SQUARE, SIGN and BITWISE_NOT only, and wrap. Quantised ABS and RSQRT work in fixed
    point, others before ERF through float32, saturated; SQRT is rounded down.

    References
    ----------
    Arm NN ElementwiseUnary, Floor; NNAPI ABS, EXP, FLOOR, LOG, LOGICAL_NOT, NEG, RSQRT, SIN,
    SQRT; TFLite operators of the same names and CEIL, COS, ROUND, SIGN, SQUARE; ONNX Erf,
    Reciprocal, Tan, Asin, Acos, Atan, Sinh, Cosh, Asinh, Acosh, Atanh, BitwiseNot.
    """

    operation: UnaryOperation = UnaryOperation.ABS

    type_rules: ClassVar[tuple[TypeRule, ...]] = same(*_NUMERIC_TYPES, DataType.BOOLEAN)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The input's shape."""
        return (inputs[0].shape,)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """BOOLEAN goes with LOGICAL_NOT only, integers with the functions that stay integer."""
        data_type, function = inputs[0].data_type, self.operation
        if data_type is DataType.BOOLEAN or function is UnaryOperation.LOGICAL_NOT:
            is_both = data_type is DataType.BOOLEAN and function is UnaryOperation.LOGICAL_NOT
            is_not = function is UnaryOperation.LOGICAL_NOT
            _require_type(function, is_both, data_type, "BOOLEAN" if is_not else "a numeric type")
        elif data_type in INTEGER_TYPES:
            _require_type(
                function,
                function in _INTEGER_FUNCTIONS,
                data_type,
                "a floating-point or quantised type",
            )
        elif function is UnaryOperation.BITWISE_NOT:
            _require_type(function, False, data_type, "a plain integer type")
        elif data_type.is_quantized:
            _require_type(
                function, function in _QUANTIZED_FUNCTIONS, data_type, "a floating-point type"
            )


_INTEGER_FUNCTIONS = (
    UnaryOperation.ABS,
    UnaryOperation.NEG,
    UnaryOperation.SQUARE,
    UnaryOperation.SIGN,
    UnaryOperation.BITWISE_NOT,
)
_QUANTIZED_FUNCTIONS = frozenset(
    (
        UnaryOperation.ABS,
        UnaryOperation.EXP,
        UnaryOperation.SQRT,
        UnaryOperation.RSQRT,
        UnaryOperation.NEG,
        UnaryOperation.LOGICAL_NOT,
        UnaryOperation.LOG,
        UnaryOperation.SIN,
        UnaryOperation.CEIL,
        UnaryOperation.COS,
        UnaryOperation.FLOOR,
        UnaryOperation.ROUND,
        UnaryOperation.SQUARE,
    )
)


@dataclass(frozen=True, slots=True)
class Comparison(Operation):
    """Compare two tensors element by element.

    Notes
    -----
    lhs (...); rhs (...); output boolean, as both broadcast. Quantised inputs are compared on a
    common fixed-point scale, as in TFLite; NNAPI compares real numbers: a Dequantize in front of
    each input. Strings allow EQUAL and NOT_EQUAL.

    References
    ----------
    Arm NN Comparison; NNAPI and TFLite EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL,
    NOT_EQUAL.
    """

    operation: ComparisonOperation = ComparisonOperation.EQUAL

    inputs: ClassVar[tuple[Operand, ...]] = _PAIR
    type_rules: ClassVar[tuple[TypeRule, ...]] = tuple(
        rule((t, t), (DataType.BOOLEAN,))
        for t in (*_NUMERIC_TYPES, DataType.BOOLEAN, DataType.STRING)
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The shape that both inputs broadcast to."""
        return _broadcast(inputs)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """BOOLEAN."""
        return (DataType.BOOLEAN,)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Strings have no order."""
        is_order = self.operation not in (ComparisonOperation.EQUAL, ComparisonOperation.NOT_EQUAL)
        data_type = inputs[0].data_type
        is_computed = not (is_order and data_type.is_string)
        require(
            is_computed,
            f"{self.operation.name} does not compare {data_type.name}",
            expected="EQUAL or NOT_EQUAL for strings",
            actual=self.operation.name,
        )


@dataclass(frozen=True, slots=True)
class LogicalBinary(Operation):
    """Combine two boolean tensors element by element.

    Notes
    -----
    lhs (...); rhs (...); output as both broadcast.

    References
    ----------
    Arm NN LogicalBinary; NNAPI and TFLite LOGICAL_AND, LOGICAL_OR; ONNX Xor.
    """

    operation: LogicalBinaryOperation = LogicalBinaryOperation.LOGICAL_AND

    inputs: ClassVar[tuple[Operand, ...]] = _PAIR
    type_rules: ClassVar[tuple[TypeRule, ...]] = same(DataType.BOOLEAN)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The shape that both inputs broadcast to."""
        return _broadcast(inputs)


@dataclass(frozen=True, slots=True)
class Prelu(Operation):
    """Multiply negative elements by an element of `alpha`.

    Notes
    -----
    input (...); alpha (...); output as both broadcast. Quantised elements are rescaled in fixed
    point, half away from zero, and saturate.

    References
    ----------
    Arm NN Prelu; NNAPI and TFLite PRELU.
    """

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input"), Operand("alpha"))
    type_rules: ClassVar[tuple[TypeRule, ...]] = same(
        *FLOAT_TYPES, DataType.FLOAT64, *QUANTIZED_TYPES
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The shape that both inputs broadcast to."""
        return _broadcast(inputs)


@dataclass(frozen=True, slots=True)
class Select(Operation):
    """Take each element from one of two tensors.

    Notes
    -----
    condition boolean (...); lhs (...), taken where true; rhs (...), taken where false; output as
    all three broadcast. Stored elements are copied, or converted through float64 where the
    quantisation differs from the output's.

    References
    ----------
    NNAPI SELECT; TFLite SELECT_V2, and SELECT where the condition has the others' shape.
    """

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("condition"), *_PAIR)
    type_rules: ClassVar[tuple[TypeRule, ...]] = tuple(
        rule((DataType.BOOLEAN, t, t), (t,)) for t in DataType
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """The shape that all three inputs broadcast to."""
        return _broadcast(inputs)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """The second input's type."""
        return (inputs[1].data_type,)
