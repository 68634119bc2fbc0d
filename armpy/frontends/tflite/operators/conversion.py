"""Operators that convert elements to another type or quantisation."""

from __future__ import annotations

from armpy.frontends.tflite.node import BoundOperator, ConverterTable, direct
from armpy.ops.quantizing import BitCast, Cast, Dequantize, Quantize


def _bitcast(node: BoundOperator) -> BitCast:
    node.expect_outputs(1)
    return BitCast(node.outputs[0].data_type)


CONVERTERS: ConverterTable = {
    "BITCAST": direct(_bitcast),
    "CAST": direct(Cast()),
    "DEQUANTIZE": direct(Dequantize()),
    "QUANTIZE": direct(Quantize()),
}
