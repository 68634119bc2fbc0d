"""How each operator of the schema becomes layers: one table per family.

A new operator is one entry in one of the tables.
"""

from __future__ import annotations

from armpy.frontends.tflite.node import ConverterTable
from armpy.frontends.tflite.operators import (
    activation,
    conversion,
    dense,
    elementwise,
    generation,
    movement,
    recurrent,
    reduction,
    reshaping,
    slicing,
    windows,
)

CONVERTERS: ConverterTable = {
    **activation.CONVERTERS,
    **conversion.CONVERTERS,
    **dense.CONVERTERS,
    **elementwise.CONVERTERS,
    **generation.CONVERTERS,
    **movement.CONVERTERS,
    **recurrent.CONVERTERS,
    **reduction.CONVERTERS,
    **reshaping.CONVERTERS,
    **slicing.CONVERTERS,
    **windows.CONVERTERS,
}
"""Converters by the operators' names in the schema's BuiltinOperator."""
