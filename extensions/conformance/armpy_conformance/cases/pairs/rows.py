"""Forms of operations along axes: normalisations, reductions, orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from armpy.ops import (
    ArgMinMax,
    Cumulate,
    InstanceNormalization,
    L2Normalization,
    LayerNormalization,
    LogSoftmax,
    Normalization,
    Operation,
    Reduce,
    ReduceOperation,
    RmsNormalization,
    Softmax,
    TopkV2,
)
from armpy.types import DataType
from armpy_conformance.cases.pairs.form_table import LAYOUTS, Choice, FormTable
from armpy_conformance.cases.pairs.weighted import BATCHES, image
from armpy_conformance.comparison.seeded_values import distinct, few, grid, powers
from armpy_conformance.sampling.case_template import CaseTemplate, Scale

SHAPES = {
    "": (2, 3, 4),
    "rank-2": (3, 5),
    "rank-4": (2, 3, 2, 4),
    "rank-5": (2, 1, 3, 2, 2),
    "odd-size": (3, 33),
}
"""Shapes along whose axes something is done."""

AXES = {
    "": -1,
    "first": 0,
    "axis-1": 1,
    "negative-2": -2,
    "negative-3": -3,
}
_BETAS = {"": 1.0, "beta-0.5": 0.5, "beta-2": 2.0}


def has_axis(choice: Choice) -> bool:
    """Return whether the shape has the axis."""
    rank = len(choice["shape"])
    return choice["axis"] is None or -rank <= choice["axis"] < rank


def _normalization(operation: Operation, output: Scale, choice: Choice) -> CaseTemplate:
    return CaseTemplate(
        "", operation, (choice["shape"],), scales=(Scale(1 / 16, 0.1),), output=output
    )


_REDUCED: Mapping[str, tuple[int, ...] | None] = {
    "": (-1,),
    "all": None,
    "first": (0,),
    "middle": (1,),
    "negative-2": (-2,),
    "two": (0, 1),
    "outer": (0, -1),
    "unsorted": (2, 1),
    "repeated": (1, -2),
}


def _has_axes(choice: Choice) -> bool:
    """Return whether the shape has all axes, and the function the flags."""
    rank = len(choice["shape"])
    axes: Sequence[int] = choice["axes"] or ()
    function = choice["operation"]
    return (
        all(-rank <= axis < rank for axis in axes)
        and (not choice["zero_absorbs"] or function is ReduceOperation.PROD)
        and (not choice["rounds_down"] or function is ReduceOperation.MEAN)
    )


def _reduction(choice: Choice) -> CaseTemplate:
    function = choice["operation"]
    is_product = function is ReduceOperation.PROD
    output = {
        ReduceOperation.SUM: Scale(1 / 4, 0.1),
        ReduceOperation.PROD: Scale(1 / 64, 0.1),
    }.get(function)
    return CaseTemplate(
        "",
        Reduce(function),
        (choice["shape"],),
        values=(powers if is_product else grid,),
        scales=(Scale(1 / 64, 0.0) if is_product else Scale(1 / 32, 0.2),),
        output=output,
    )


def _position(choice: Choice) -> CaseTemplate:
    return CaseTemplate("", ArgMinMax(), (choice["shape"],), values=(choice["elements"],))


def _best(choice: Choice) -> CaseTemplate:
    count = min(choice["count"], choice["shape"][-1])
    return CaseTemplate("", TopkV2(count), (choice["shape"],), values=(choice["elements"],))


def _cumulation(choice: Choice) -> CaseTemplate:
    is_sum = choice["operation"] is ReduceOperation.SUM
    values = grid if is_sum else powers
    return CaseTemplate("", Cumulate(choice["operation"]), (choice["shape"],), values=(values,))


_NORMALIZED = {"": (-1,), "two": (-2, -1), "first": (0,), "apart": (0, 2), "middle": (1,)}
_FACTORS = {"": (True, True), "no-beta": (True, False), "no-factors": (False, False)}


def _layer_normalization(choice: Choice) -> CaseTemplate:
    shape = choice["shape"]
    axes = {axis % len(shape) for axis in choice["axes"]}
    own = tuple(dim if axis in axes else 1 for axis, dim in enumerate(shape))
    gamma, beta = (own if is_there else None for is_there in choice["factors"])
    return CaseTemplate(
        "", LayerNormalization(), (shape, gamma, beta), constants=choice["constants"]
    )


def _rms_normalization(choice: Choice) -> CaseTemplate:
    template = _layer_normalization({**choice, "factors": (choice["factors"], False)})
    return CaseTemplate(
        "", RmsNormalization(), template.shapes[:2], constants=choice["constants"][:1]
    )


def _fits_normalized(choice: Choice) -> bool:
    """Return whether the shape has all axes, different ones."""
    rank = len(choice["shape"])
    axes = choice["axes"]
    return all(-rank <= axis < rank for axis in axes) and (
        len({axis % rank for axis in axes}) == len(axes)
    )


def _instance_normalization(choice: Choice) -> CaseTemplate:
    return CaseTemplate("", InstanceNormalization(), (image(choice, 3, 4, 2),), values=(grid,))


def _local_response(choice: Choice) -> CaseTemplate:
    return CaseTemplate("", Normalization(), (choice["shape"],), values=(grid,))


_ALONG: dict[str, Mapping[str, Any]] = {"shape": SHAPES, "axis": AXES}
_ELEMENTS = {"": distinct, "ties": few}
_NORMALIZATIONS: dict[str, Mapping[str, Any]] = {  # Any: as of a factor
    "shape": SHAPES,
    "axes": _NORMALIZED,
    "eps": {"": 1e-5, "eps-0.5": 0.5},
    "constants": {"": (1, 2), "run-time": ()},
}

TABLES: tuple[FormTable, ...] = (
    FormTable(
        Softmax,
        {**_ALONG, "beta": _BETAS},
        lambda choice: _normalization(Softmax(), Scale(1 / 256, -1.0), choice),
        has_axis,
    ),
    FormTable(
        LogSoftmax,
        {**_ALONG, "beta": _BETAS},
        lambda choice: _normalization(LogSoftmax(), Scale(1 / 16, 1.0), choice),
        has_axis,
    ),
    FormTable(
        L2Normalization,
        {**_ALONG, "epsilon": {"": 1e-12, "epsilon-20": 20.0}},
        lambda choice: _normalization(L2Normalization(), Scale(1 / 128, 0.0), choice),
        has_axis,
    ),
    FormTable(
        Reduce,
        {
            "operation": {f.name.lower(): f for f in ReduceOperation},
            "shape": SHAPES,
            "axes": _REDUCED,
        },
        _reduction,
        _has_axes,
    ),
    FormTable(
        ArgMinMax,
        {
            **_ALONG,
            "elements": _ELEMENTS,
            "output_type": {"": DataType.SIGNED32, "wide": DataType.SIGNED64},
        },
        _position,
        has_axis,
    ),
    FormTable(
        TopkV2,
        {
            "shape": SHAPES,
            "count": {"": 2, "one": 1, "all": 1000},
            "elements": _ELEMENTS,
        },
        _best,
    ),
    FormTable(
        Cumulate,
        {
            **_ALONG,
            "operation": {"": ReduceOperation.SUM, "prod": ReduceOperation.PROD},
        },
        _cumulation,
        has_axis,
    ),
    FormTable(
        LayerNormalization,
        {**_NORMALIZATIONS, "factors": _FACTORS},
        _layer_normalization,
        _fits_normalized,
    ),
    FormTable(
        RmsNormalization,
        {**_NORMALIZATIONS, "factors": {"": True, "no-factors": False}},
        _rms_normalization,
        _fits_normalized,
    ),
    FormTable(
        InstanceNormalization,
        {
            "gamma": {"": 1.0, "gamma-2": 2.0},
            "beta": {"": 0.0, "beta-0.5": 0.5},
            "eps": {"": 1e-5, "eps-0.5": 0.5},
            "data_layout": LAYOUTS,
            "batch": BATCHES,
        },
        _instance_normalization,
    ),
    FormTable(
        Normalization,
        {
            "shape": SHAPES,
            "axes": _NORMALIZED,
            "radius": {"": 1, "radius-0": 0, "radius-4": 4},
            "alpha": {"": 1.0, "alpha-0.25": 0.25},
            "beta": {"": 0.5, "beta-0.75": 0.75},
            "k": {"": 1.0, "k-2": 2.0},
        },
        _local_response,
        _fits_normalized,
    ),
)
"""Tables of the family."""
