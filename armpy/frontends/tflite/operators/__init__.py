"""How each operator of the schema becomes layers: one table per family.

A new operator is one entry in one of the tables.
"""

from __future__ import annotations

from armpy.frontends.tflite.node import ConverterTable
from armpy.frontends.tflite.operators import (
    activation,
    control_flow,
    conversion,
    dense,
    elementwise,
    generation,
    lookup,
    movement,
    recurrent,
    reduction,
    reshaping,
    slicing,
    windows,
)

CONVERTERS: ConverterTable = {
    **activation.CONVERTERS,
    **control_flow.CONVERTERS,
    **conversion.CONVERTERS,
    **dense.CONVERTERS,
    **elementwise.CONVERTERS,
    **generation.CONVERTERS,
    **lookup.CONVERTERS,
    **movement.CONVERTERS,
    **recurrent.CONVERTERS,
    **reduction.CONVERTERS,
    **reshaping.CONVERTERS,
    **slicing.CONVERTERS,
    **windows.CONVERTERS,
}
"""Converters by the operators' names in the schema's BuiltinOperator."""
