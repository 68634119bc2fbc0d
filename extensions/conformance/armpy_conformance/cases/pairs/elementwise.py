"""Forms of elementwise operations: broadcasting, constants, ranks, parameters of functions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    Comparison,
    Dequantize,
    ElementwiseBinary,
    ElementwiseUnary,
    FusedActivation,
    LogicalBinary,
    Operation,
    Prelu,
    Quantize,
    Select,
    UnaryOperation,
)
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance.cases import activations, elementwise, functions
from armpy_conformance.cases.pairs.form_table import QUANTIZATIONS, Choice, FormTable
from armpy_conformance.comparison.seeded_values import anything, few, grid, positive, powers
from armpy_conformance.sampling.case_template import CaseTemplate, Scale

BROADCASTS = {
    "": ((2, 3, 5), (2, 3, 5)),
    "scalar-left": ((), (2, 3)),
    "scalar-right": ((2, 3), ()),
    "one-element-left": ((1,), (3, 5)),
    "row-left": ((5,), (2, 3, 5)),
    "row-right": ((2, 3, 5), (5,)),
    "column-right": ((2, 3, 4), (2, 3, 1)),
    "middle-left": ((2, 1, 5), (2, 3, 5)),
    "middle-right": ((2, 3, 5), (2, 1, 5)),
    "batch-left": ((1, 3, 2), (4, 3, 2)),
    "both-ways": ((3, 1, 2), (1, 4, 2)),
    "image-channels": ((2, 3, 2, 3), (1, 1, 1, 3)),
    "rank-5": ((2, 1, 2, 3, 2), (2, 1, 1, 2)),
}
"""Shapes of two operands."""

_COMPARED = ("", "scalar-left", "scalar-right", "row-left", "middle-right", "both-ways", "rank-5")

_CONSTANTS = {"": (), "constant-left": (0,), "constant-right": (1,)}
_WITH_ACTIVATION = (
    BinaryOperation.ADD,
    BinaryOperation.SUB,
    BinaryOperation.MUL,
    BinaryOperation.DIV,
)

RANKS = {
    "": (3, 5),
    "rank-0": (),
    "rank-1": (7,),
    "rank-3": (2, 3, 4),
    "rank-4": (2, 3, 2, 3),
    "rank-5": (1, 2, 3, 2, 2),
    "rank-6": (1, 2, 1, 3, 2, 2),
}
_FUNCTION_RANKS = {name: RANKS[name] for name in ("", "rank-4")}


@cache
def _lines() -> Mapping[object, CaseTemplate]:
    """The first line of each function, which has the numbers and scales that fit it."""
    lines: dict[object, CaseTemplate] = {}
    for family in (elementwise, functions, activations):
        for template in family.case_templates():
            attributes = template.operation.attributes()
            function = attributes.get("operation", attributes.get("function"))
            lines.setdefault((type(template.operation), function), template)
    return lines


def _binary(choice: Choice) -> CaseTemplate:
    line = _lines()[ElementwiseBinary, choice["operation"]]
    return _with(line, choice, ElementwiseBinary(choice["operation"]))


def _with(line: CaseTemplate, choice: Choice, operation: Operation) -> CaseTemplate:
    """A line's numbers and scales with the chosen operands."""
    return CaseTemplate(
        "",
        operation,
        choice["operands"],
        values=line.values,
        scales=line.scales,
        output=line.output,
        constants=choice["constants"],
    )


def _fits_binary(choice: Choice) -> bool:
    """Return whether a function has a fused activation, and bytes or scales."""
    function = choice["operation"]
    return function in _WITH_ACTIVATION or choice["activation"] is FusedActivation.NONE


def _unary(choice: Choice) -> CaseTemplate:
    line = _lines()[ElementwiseUnary, choice["operation"]]
    return CaseTemplate(
        "",
        ElementwiseUnary(choice["operation"]),
        (choice["shape"],),
        values=line.values,
        scales=line.scales,
        output=line.output,
    )


_PARAMETERS: Mapping[ActivationFunction, Mapping[str, tuple[float, float]]] = {
    ActivationFunction.TANH: {"": (1.0, 1.0), "a-1.5-b-0.5": (1.5, 0.5)},
    ActivationFunction.LINEAR: {"": (0.5, 1.0), "a--2-b--0.5": (-2.0, -0.5)},
    ActivationFunction.BOUNDED_RELU: {
        "": (6.0, 0.0),
        "a-1-b--1": (1.0, -1.0),
        "a-3-b-0.5": (3.0, 0.5),
        "a--0.5-b--2": (-0.5, -2.0),
    },
    ActivationFunction.LEAKY_RELU: {
        "": (0.125, 0.0),
        "a-2": (2.0, 0.0),
        "a--0.5": (-0.5, 0.0),
        "a-0": (0.0, 0.0),
        "a-1": (1.0, 0.0),
    },
    ActivationFunction.ELU: {"": (1.0, 0.0), "a-0.5": (0.5, 0.0), "a-2": (2.0, 0.0)},
}
"""Parameters a and b of functions that have them."""


def _functions() -> dict[str, tuple[ActivationFunction, float, float]]:
    """Each function with each of its parameters."""
    plain = {"": (0.0, 0.0)}
    return {
        "-".join(filter(None, (function.name.lower().replace("_", "-"), name))): (function, a, b)
        for function in ActivationFunction
        for name, (a, b) in _PARAMETERS.get(function, plain).items()
    }


def _activation(choice: Choice) -> CaseTemplate:
    function, a, b = choice["with parameters"]
    is_root = function is ActivationFunction.SQRT
    output = Scale(1 / 14, 0.1)  # bounds lie on steps, and few results between two
    if function is ActivationFunction.SIGMOID:
        output = Scale(1 / 256, -1.0)
    if function is ActivationFunction.TANH:
        output = Scale(1 / 128, 0.0)
    return CaseTemplate(
        "",
        Activation(function, a, b),
        (choice["shape"],),
        values=(positive if is_root else anything,),
        scales=(Scale(1 / 32, 0.1),),
        output=output,
    )


def _comparison(choice: Choice) -> CaseTemplate:
    return CaseTemplate(
        "",
        Comparison(choice["operation"]),
        choice["operands"],
        values=(few,),
        scales=(Scale(1 / 32, -0.25),),
        constants=choice["constants"],
    )


def _logical(choice: Choice) -> CaseTemplate:
    return CaseTemplate("", LogicalBinary(), choice["operands"], constants=choice["constants"])


_CHOICES = {
    "": ((2, 3, 5), (2, 3, 5), (2, 3, 5)),
    "condition-scalar": ((), (2, 3), (2, 3)),
    "condition-rows": ((3, 1), (3, 5), (3, 5)),
    "condition-columns": ((5,), (3, 5), (3, 5)),
    "left-scalar": ((2, 3), (), (2, 3)),
    "right-scalar": ((2, 3), (2, 3), ()),
    "both-scalars": ((4, 3), (), ()),
    "left-row": ((2, 3), (3,), (2, 3)),
    "right-column": ((2, 3), (2, 3), (2, 1)),
    "middle": ((2, 3, 2), (2, 1, 2), (2, 3, 2)),
    "all-ways": ((3, 1, 1), (4, 1), (5,)),
    "rank-5": ((1, 2, 1, 2, 3), (2, 2, 1, 2, 3), (2, 3)),
}
_CHOSEN = {"": (), "constant-left": (1,), "constant-right": (2,), "constants": (1, 2)}


def _select(choice: Choice) -> CaseTemplate:
    return CaseTemplate("", Select(), choice["operands"], constants=choice["constants"])


_SLOPES = {
    "": ((2, 3, 2, 4), (1, 1, 4)),
    "same": ((2, 3), (2, 3)),
    "one": ((2, 5), (1,)),
    "rank-4": ((2, 2, 3, 4), (1, 1, 1, 4)),
    "planes": ((2, 2, 3, 4), (2, 3, 1)),
    "row": ((3, 5), (5,)),
    "rank-3": ((2, 3, 4), (3, 1)),
}


def _prelu(choice: Choice) -> CaseTemplate:
    return CaseTemplate(
        "",
        Prelu(),
        choice["operands"],
        values=(anything, powers),
        scales=(Scale(1 / 16, 0.5), Scale(1 / 64, 0.1)),
        output=Scale(1 / 8, 0.1),
        constants=choice["constants"],
    )


_AXES = {"": None, "axis-0": 0, "axis-1": 1, "last-axis": -1}
_TO_QUANTIZE = {
    "": (3, 4),
    "rank-0": (),
    "rank-1": (5,),
    "rank-3": (2, 3, 4),
    "rank-4": (2, 2, 3, 4),
}


def _scales(choice: Choice) -> Quantization:
    """One scale, or one per index along an axis."""
    if choice["axis"] is None:
        return Quantization.per_tensor(1 / 16, 0)
    shape = choice["shape"]
    axis = choice["axis"] % len(shape)
    return Quantization.per_axis([0.1 / (1 + n % 3) for n in range(shape[axis])], axis)


def _has_axis(choice: Choice) -> bool:
    """Return whether the tensor has the axis, and another one."""
    rank = len(choice["shape"])
    return choice["axis"] is None or 1 < rank > choice["axis"]


def _quantize(choice: Choice) -> CaseTemplate:
    return CaseTemplate(
        "",
        Quantize(),
        (choice["shape"],),
        values=(grid if choice["rounds_to_even"] else anything,),
        output_types=(choice["to"],),
        output_scale=lambda inputs, data_type: _scales(choice),
    )


_STORED = (DataType.QASYMM_S8, DataType.QASYMM_U8, DataType.QSYMM_S8, DataType.QSYMM_S16)


def _dequantize(choice: Choice) -> CaseTemplate:
    return CaseTemplate(
        "",
        Dequantize(),
        (choice["shape"],),
        output_types=(choice["to"],),
        infos=lambda template, types: [TensorInfo(choice["shape"], types[0], _scales(choice))],
    )


def _fits_function(choice: Choice) -> bool:
    """Return whether a function has a close approximation, where one is asked for."""
    function, _, _ = choice["with parameters"]
    return not choice["approximate"] or function is ActivationFunction.GELU


_PAIRS: dict[str, Any] = {"operands": BROADCASTS, "constants": _CONSTANTS}  # Any: as of a factor
_COMPARED_PAIRS = {**_PAIRS, "operands": {name: BROADCASTS[name] for name in _COMPARED}}
_BINARY_FUNCTIONS = {f.name.lower().replace("_", "-"): f for f in BinaryOperation}
_UNARY_FUNCTIONS = {f.name.lower().replace("_", "-"): f for f in UnaryOperation}

TABLES: tuple[FormTable, ...] = (
    FormTable(
        ElementwiseBinary,
        {"operation": _BINARY_FUNCTIONS, **_PAIRS},
        _binary,
        _fits_binary,
        quantizations=QUANTIZATIONS,
        decided=("power_of_two_scales",),  # of one type, which has lines of its own
    ),
    FormTable(ElementwiseUnary, {"operation": _UNARY_FUNCTIONS, "shape": _FUNCTION_RANKS}, _unary),
    FormTable(
        Activation,
        {"with parameters": _functions(), "shape": _FUNCTION_RANKS},
        _activation,
        _fits_function,
        decided=("function",),
    ),
    FormTable(Comparison, _COMPARED_PAIRS, _comparison),
    FormTable(
        LogicalBinary,
        _PAIRS,
        _logical,
        types=(DataType.BOOLEAN,),
        complete=(DataType.BOOLEAN,),
    ),
    FormTable(
        Select,
        {"operands": _CHOICES, "constants": _CHOSEN},
        _select,
        types=(DataType.BOOLEAN,),
        complete=(DataType.BOOLEAN,),
    ),
    FormTable(
        Prelu,
        {"operands": _SLOPES, "constants": {"": (1,), "run-time": ()}},
        _prelu,
        quantizations=QUANTIZATIONS,
    ),
    FormTable(
        Quantize,
        {"shape": _TO_QUANTIZE, "axis": _AXES, "to": {t.name.lower(): t for t in _STORED}},
        _quantize,
        _has_axis,
        types=(DataType.FLOAT32, DataType.FLOAT16),
    ),
    FormTable(
        Dequantize,
        {
            "shape": _TO_QUANTIZE,
            "axis": _AXES,
            "to": {"": DataType.FLOAT32, "to-float16": DataType.FLOAT16},
        },
        _dequantize,
        _has_axis,
        types=_STORED,
        complete=(DataType.QASYMM_S8,),
    ),
)
"""Tables of the family."""
