"""Operators that convert elements to another type or quantisation."""

from __future__ import annotations

from armpy.frontends.tflite.node import ConverterTable, direct
from armpy.ops.quantizing import Cast, Dequantize, Quantize

CONVERTERS: ConverterTable = {
    "CAST": direct(Cast()),
    "DEQUANTIZE": direct(Dequantize()),
    "QUANTIZE": direct(Quantize()),
}
