"""Operators that work element by element."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from armpy.frontends.tflite.composed import ComposedOperator, composed, moving
from armpy.frontends.tflite.node import (
    BoundOperator,
    Converter,
    ConverterTable,
    direct,
    fused_activation,
)
from armpy.graph import Value
from armpy.ops.elementwise import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    ElementwiseUnary,
    LogicalBinary,
    LogicalBinaryOperation,
    Prelu,
    Select,
    UnaryOperation,
)
from armpy.ops.reshaping import Reshape
from armpy.types import DataType

_NEAR = 1e-3
"""TFLite takes exponents for whole numbers that are so near to one."""

_MOST_FAKE_BITS = 16

_SUM_BITS = {DataType.QSYMM_S16: 15}
"""Bits that sums of 16-bit elements are computed with beyond their inputs'; others have 20."""


def _fused(operation: BinaryOperation, options_name: str) -> Converter:
    """Converter of a binary operator that can have an activation."""

    def make(node: BoundOperator) -> ElementwiseBinary:
        return ElementwiseBinary(operation, fused_activation(node.options(options_name)))

    return direct(make)


def _additive(operation: BinaryOperation, options_name: str) -> Converter:
    """Converter of ADD or SUB, which say how 16-bit inputs are rescaled."""

    def make(node: BoundOperator) -> ElementwiseBinary:
        node.expect_outputs(1)
        options = node.options(options_name)
        shifts = options.flag("PotScaleInt16")
        if operation is BinaryOperation.ADD and not (shifts and _are_shifted(node)):
            _check_scale(node, 1, _SUM_BITS.get(node.outputs[0].data_type, 20))
        return ElementwiseBinary(operation, fused_activation(options), power_of_two_scales=shifts)

    return direct(make)


def _are_shifted(node: BoundOperator) -> bool:
    """Return whether 16-bit elements have scales of powers of two, so that they can be shifted."""
    infos = [*(value.info for value in node.inputs if value is not None), *node.outputs]
    return all(
        info.data_type is DataType.QSYMM_S16
        and info.quantization is not None
        and abs(math.log2(info.scale) - round(math.log2(info.scale))) < _NEAR
        for info in infos
    )


def _squared_difference(node: BoundOperator) -> ElementwiseBinary:
    """SQUARED_DIFFERENCE has 7 bits more for each of two factors."""
    node.expect_outputs(1)
    _check_scale(node, 2, 14)
    return ElementwiseBinary(BinaryOperation.SQUARED_DIFFERENCE)


def _check_scale(node: BoundOperator, power: int, num_bits: int) -> None:
    """Check that values computed with some bits more are not finer than the output.

    Raises
    ------
    ParserError
        If twice the larger scale of the inputs, to some power, is `num_bits` bits or more above the
        output's: fixed point has no such multiplier, and TFLite ends the process.
    """
    infos = [value.info for value in node.inputs if value is not None]
    output = node.outputs[0]
    if not output.data_type.is_quantized or any(i.quantization is None for i in (*infos, output)):
        return
    largest = max((info.scale for info in infos), default=0.0)
    if (2 * largest) ** power >= output.scale * 2.0**num_bits:
        raise node.error(
            f"the scale of the output '{node.output_names[0]}' is too small for its inputs",
            expected=f"more than {(2 * largest) ** power / 2.0**num_bits:.9g}",
            actual=f"{output.scale:.9g}",
        )


def _add_n(node: BoundOperator) -> Sequence[Value]:
    """Add up two at a time."""
    values = [value for value in node.inputs if value is not None]
    if not values:
        raise node.error("there is nothing to add")
    total = values[0]
    for value in values[1:]:
        total = node.network.add(ElementwiseBinary(), total, value, name=f"{node.name}:sum")
    return (total,)


def _fake_quant(node: BoundOperator) -> Sequence[Value]:
    """Round to the nearest of 2**n numbers, of which 0 is one, as fixed point would.

    References
    ----------
    TFLite ``NudgeQuantizationRange``, ``FakeQuantizeArray``.
    """
    options = node.options("FakeQuantOptions")
    bits, lowest, highest = options.integer("NumBits"), options.real("Min"), options.real("Max")
    if not (2 <= bits <= _MOST_FAKE_BITS and lowest < highest):
        raise node.error(
            "the range cannot be quantised",
            expected=f"2 to {_MOST_FAKE_BITS} bits, Min below Max",
            actual=f"{bits} bits, {lowest} to {highest}",
        )
    first, last = int(options.flag("NarrowRange")), 2**bits - 1
    scale = np.float32((np.float32(highest) - np.float32(lowest)) / np.float32(last - first))
    exact = np.float32(first) - np.float32(lowest) / scale
    point = np.float32(min(max(float(np.floor(exact + np.float32(0.5))), first), last))
    low, high = (np.float32(first) - point) * scale, (np.float32(last) - point) * scale

    def expand(parts: ComposedOperator) -> Value:
        value = parts.value(0)
        for function, number in (
            (BinaryOperation.MAXIMUM, low),
            (BinaryOperation.MINIMUM, high),
            (BinaryOperation.SUB, low),
            (BinaryOperation.MUL, np.float32(1) / scale),
            (BinaryOperation.ADD, 0.5),
        ):
            value = parts.layer(ElementwiseBinary(function), value, parts.like(value, number))
        value = parts.layer(ElementwiseUnary(UnaryOperation.FLOOR), value)
        value = parts.layer(ElementwiseBinary(BinaryOperation.MUL), value, parts.like(value, scale))
        return parts.layer(ElementwiseBinary(), value, parts.like(value, low))

    return composed(node, expand)


def _widened(operation: BinaryOperation) -> Converter:
    """Converter of a binary operator whose types armpy may have to widen."""

    def convert(node: BoundOperator) -> Sequence[Value]:
        def expand(parts: ComposedOperator) -> Value:
            return parts.layer(ElementwiseBinary(operation), parts.value(0), parts.value(1))

        return composed(node, expand)

    return convert


def _right_shift(node: BoundOperator) -> Sequence[Value]:
    """Shift by a distance that is clamped to what an element has bits for.

    References
    ----------
    TFLite ``right_shift.cc``, ``RightShift``.
    """

    def expand(parts: ComposedOperator) -> Value:
        value, distance = parts.value(0), parts.value(1)
        for function, limit in (
            (BinaryOperation.MAXIMUM, 0),
            (BinaryOperation.MINIMUM, parts.type(0).bits - 1),
        ):
            limits = parts.like(distance, limit)
            distance = parts.layer(ElementwiseBinary(function), distance, limits)
        return parts.layer(ElementwiseBinary(BinaryOperation.SHIFT_RIGHT), value, distance)

    return composed(node, expand)


def _select(node: BoundOperator) -> Sequence[Value]:
    """Align a condition of rank 1 with the first axis, as only the older SELECT does."""
    inputs = list(node.inputs)
    condition, data = node.input(0), node.input(1)
    rank = data.info.rank if data is not None else None
    if condition is not None and condition.info.rank == 1 and rank is not None and rank > 1:
        column = Reshape((-1,) + (1,) * (rank - 1))
        inputs[0] = node.network.add(column, condition, name=f"{node.name}:condition")
    return node.layer(Select(), *inputs)


CONVERTERS: ConverterTable = {
    **{
        name: direct(ElementwiseUnary(UnaryOperation[name]))
        for name in (
            "ABS",
            "CEIL",
            "COS",
            "EXP",
            "FLOOR",
            "LOG",
            "LOGICAL_NOT",
            "ROUND",
            "RSQRT",
            "SIGN",
            "SIN",
            "SQRT",
            "SQUARE",
        )
    },
    **{
        name: moving(direct(ElementwiseBinary(BinaryOperation[name])), 0, 1, has_scale=False)
        for name in ("BITWISE_XOR", "FLOOR_DIV", "FLOOR_MOD")
    },
    **{
        name: moving(direct(ElementwiseBinary(BinaryOperation[name])), 0, 1)
        for name in ("MAXIMUM", "MINIMUM")
    },
    **{
        name: direct(Comparison(ComparisonOperation[name]))
        for name in ("EQUAL", "GREATER", "LESS", "NOT_EQUAL")
    },
    **{
        name: direct(LogicalBinary(LogicalBinaryOperation[name]))
        for name in ("LOGICAL_AND", "LOGICAL_OR")
    },
    "ADD": _additive(BinaryOperation.ADD, "AddOptions"),
    "ADD_N": _add_n,
    "ATAN2": _widened(BinaryOperation.ATAN2),
    "DIV": _fused(BinaryOperation.DIV, "DivOptions"),
    "FAKE_QUANT": _fake_quant,
    "GREATER_EQUAL": direct(Comparison(ComparisonOperation.GREATER_OR_EQUAL)),
    "LESS_EQUAL": direct(Comparison(ComparisonOperation.LESS_OR_EQUAL)),
    "MUL": _fused(BinaryOperation.MUL, "MulOptions"),
    "NEG": moving(direct(ElementwiseUnary(UnaryOperation.NEG)), has_scale=False),
    "POW": direct(ElementwiseBinary(BinaryOperation.POWER)),
    "PRELU": direct(Prelu()),
    "RIGHT_SHIFT": moving(_right_shift, 0, 1, has_scale=False),
    "SELECT": moving(_select, 1, 2),
    "SELECT_V2": moving(direct(Select()), 1, 2),
    "SQUARED_DIFFERENCE": direct(_squared_difference),
    "STABLEHLO_ADD": direct(ElementwiseBinary(BinaryOperation.ADD)),
    "STABLEHLO_MAXIMUM": direct(ElementwiseBinary(BinaryOperation.MAXIMUM)),
    "STABLEHLO_MINIMUM": direct(ElementwiseBinary(BinaryOperation.MINIMUM)),
    "STABLEHLO_MULTIPLY": direct(ElementwiseBinary(BinaryOperation.MUL)),
    "STABLEHLO_SHIFT_LEFT": direct(ElementwiseBinary(BinaryOperation.SHIFT_LEFT)),
    "SUB": _additive(BinaryOperation.SUB, "SubOptions"),
}
