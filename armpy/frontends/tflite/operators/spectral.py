"""Operators that transform to frequencies, and read what comes out."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.frontends.tflite.complex_numbers import CARRIER, pairs, part
from armpy.frontends.tflite.composed import ComposedOperator, composed
from armpy.frontends.tflite.node import BoundOperator, Converter, ConverterTable
from armpy.graph import Value
from armpy.ops.elementwise import ElementwiseUnary, UnaryOperation
from armpy.ops.operation import require
from armpy.ops.quantizing import BitCast
from armpy.ops.reduction import Reduce
from armpy.ops.reshaping import ExpandDims
from armpy.ops.slicing import Slice
from armpy.ops.spectral import Dft


def _rfft2d(node: BoundOperator) -> Sequence[Value]:
    """Transform rows of real numbers, then columns, unless there is one row.

    Signals are cut, or filled up with zeros, to the lengths that are asked for.
    """

    def expand(parts: ComposedOperator) -> Value:
        value, shape, lengths = parts.value(0), parts.shape(0), parts.ints(1)
        require(
            len(shape) >= 2,
            "the input has the wrong rank",
            expected="2 or more",
            actual=len(shape),
        )
        require(
            len(lengths) == 2 and min(lengths) >= 1,
            "the transform's lengths are not two positive numbers",
            expected="two lengths of 1 or more",
            actual=str(lengths),
        )
        height, width = lengths
        if shape[-2] > height:
            sizes = (*shape[:-2], height, shape[-1])
            value = parts.layer(Slice((0,) * len(shape), sizes), value)
        spectrum = parts.layer(Dft(-2, width, is_onesided=True), parts.layer(ExpandDims(-1), value))
        if height > 1:
            spectrum = parts.layer(Dft(-3, height), spectrum)
        return parts.layer(BitCast(CARRIER), spectrum)

    return composed(node, expand, decides=(1,))


def _part(index: int) -> Converter:
    """Converter of an operator that gives one part of complex numbers."""
    return lambda node: composed(node, lambda parts: part(parts, parts.value(0), index))


def _magnitude(node: BoundOperator) -> Sequence[Value]:
    def expand(parts: ComposedOperator) -> Value:
        squares = parts.layer(ElementwiseUnary(UnaryOperation.SQUARE), pairs(parts, parts.value(0)))
        total = parts.layer(Reduce(axes=(-1,)), squares)
        return parts.layer(ElementwiseUnary(UnaryOperation.SQRT), total)

    return composed(node, expand)


CONVERTERS: ConverterTable = {
    "COMPLEX_ABS": _magnitude,
    "IMAG": _part(1),
    "REAL": _part(0),
    "RFFT2D": _rfft2d,
}
