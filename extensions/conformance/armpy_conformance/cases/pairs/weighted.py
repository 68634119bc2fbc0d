"""Forms of operations that multiply with weights and add up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from armpy.ops import (
    BatchMatMul,
    Convolution2d,
    Convolution3d,
    DepthwiseConvolution2d,
    FullyConnected,
    Operation,
    Padding,
    TransposeConvolution2d,
    TransposeConvolution3d,
)
from armpy.types import DataLayout, DataType
from armpy_conformance.cases.pairs.form_table import LAYOUTS, VOLUME_LAYOUTS, Choice, FormTable
from armpy_conformance.cases.weighted import line, per_last, per_output
from armpy_conformance.sampling.case_template import CaseTemplate, Scale

_TYPES = (
    DataType.FLOAT32,
    DataType.QASYMM_S8,
    DataType.FLOAT16,
    DataType.QASYMM_U8,
    DataType.QSYMM_S16,
)

_BIASES = {"": "constant", "no-bias": "none", "run-time": "run-time"}

STRIDES = {"": (1, 1), "stride-2x1": (2, 1), "stride-1x3": (1, 3), "stride-2x2": (2, 2)}
_DILATIONS = {"": (1, 1), "dilation-2x1": (2, 1), "dilation-1x3": (1, 3), "dilation-2x2": (2, 2)}
PADDINGS = {"": Padding.VALID, "same": Padding.SAME, "uneven": ((1, 0), (0, 2))}
_KERNELS = {"": (3, 2), "kernel-1x1": (1, 1), "kernel-1x3": (1, 3), "kernel-3x3": (3, 3)}
BATCHES = {"": 1, "batch-2": 2}

_VOLUME_WINDOWS: Mapping[str, Mapping[str, Any]] = {  # Any: as of the attribute
    "stride": {"": (1, 1, 1), "stride-2x1x1": (2, 1, 1), "stride-1x2x3": (1, 2, 3)},
    "dilation": {"": (1, 1, 1), "dilation-1x2x1": (1, 2, 1), "dilation-2x1x2": (2, 1, 2)},
    "padding": {"": Padding.VALID, "same": Padding.SAME, "uneven": ((1, 0), (0, 2), (0, 1))},
    "data_layout": VOLUME_LAYOUTS,
}

_ZERO_POINTS: Mapping[str, Mapping[str, Any]] = {  # Any: columns of a template
    "": {},
    "lowest-zero-point": {"scales": (Scale(1 / 16, -1.0), Scale(1 / 64, 0.3))},
    "highest-zero-point": {"scales": (Scale(1 / 16, 1.0), Scale(1 / 64, 0.0))},
}


def _quantizations(per_axis: object) -> dict[str, Mapping[str, Any]]:  # Any: columns
    """The zero points at both ends, and weights of several scales."""
    return {**_ZERO_POINTS, "per-axis": {"infos": per_axis}}


def image(choice: Choice, height: int, width: int, channels: int) -> tuple[int, ...]:
    """Shape of images in the chosen layout."""
    if choice["data_layout"] is DataLayout.NCHW:
        return (choice["batch"], channels, height, width)
    return (choice["batch"], height, width, channels)


def _volume(choice: Choice, sizes: Sequence[int], channels: int) -> tuple[int, ...]:
    """Shape of volumes in the chosen layout."""
    if choice["data_layout"] is DataLayout.NCDHW:
        return (choice["batch"], channels, *sizes)
    return (choice["batch"], *sizes, channels)


def _line(
    choice: Choice, operation: Operation, shapes: Sequence[tuple[int, ...]], units: int
) -> CaseTemplate:
    """A template with the chosen bias."""
    bias = None if choice["bias"] == "none" else (units,)
    template = line("", operation, (*shapes, bias))
    return replace(template, constants=()) if choice["bias"] == "run-time" else template


_GROUPS = {"": (1, 6), "groups-2": (2, 6), "groups-4": (4, 8)}
"""Numbers of groups and of filters, of 4 channels."""


def _convolution(choice: Choice) -> CaseTemplate:
    groups, filters = choice["groups"]
    weights = (filters, *choice["kernel"], 4 // groups)
    return _line(choice, Convolution2d(), (image(choice, 7, 8, 4), weights), filters)


def _depthwise(choice: Choice) -> CaseTemplate:
    units = 3 * choice["multiplier"]
    shapes = image(choice, 7, 8, 3), (1, *choice["kernel"], units)
    return _line(choice, DepthwiseConvolution2d(), shapes, units)


def _transposed(choice: Choice) -> CaseTemplate:
    shapes = image(choice, 4, 3, 3), (5, *choice["kernel"], 3)
    return _line(choice, TransposeConvolution2d(), shapes, 5)


def _over_volumes(make: type[Operation], sizes: Sequence[int]) -> Callable[[Choice], CaseTemplate]:
    def template(choice: Choice) -> CaseTemplate:
        groups, filters = choice["groups"]
        shapes = _volume(choice, sizes, 4), (filters, *choice["kernel"], 4 // groups)
        return _line(choice, make(), shapes, filters)

    return template


_DENSE = {
    "": ((3, 5), 5),
    "vector": ((5,), 5),
    "rank-3": ((2, 3, 5), 5),
    "rank-4": ((2, 1, 3, 5), 5),
    "one-row": ((1, 5), 5),
    "flattened": ((2, 3, 5), 15),
}
"""Shapes of the input, and the depth of the weights."""


def _dense(choice: Choice) -> CaseTemplate:
    shape, depth = choice["input"]
    return _line(choice, FullyConnected(), (shape, (7, depth)), 7)


_BATCHES = {
    "": ((), ()),
    "batch-left": ((3,), ()),
    "batch-right": ((), (3,)),
    "batch-of-one": ((1,), (3,)),
    "batch-of-one-right": ((3,), (1,)),
    "batches": ((2, 3), (2, 3)),
    "middle": ((2, 1), (2, 3)),
    "both-ways": ((2, 1), (1, 3)),
    "fewer-right": ((2, 3), (3,)),
}
_MATRICES = {
    "": (3, 5, 4),
    "square": (4, 4, 4),
    "one-row": (1, 5, 4),
    "one-column": (3, 5, 1),
}
_CONSTANTS = {"": (), "constant-left": (0,), "constant-right": (1,)}


def _product(choice: Choice) -> CaseTemplate:
    rows, depth, columns = choice["matrices"]
    left, right = choice["batches"]
    x = (depth, rows) if choice["transpose_x"] else (rows, depth)
    y = (columns, depth) if choice["transpose_y"] else (depth, columns)
    shapes = (*left, *x), (*right, *y)
    return line("", BatchMatMul(), shapes, constants=choice["constants"])


def _one_of_both(choice: Choice) -> bool:
    """Return whether no axis has both a stride and a dilation; few engines take them together."""
    pairs = zip(choice["stride"], choice["dilation"], strict=True)
    return all(stride == 1 or dilation == 1 for stride, dilation in pairs)


_WINDOWS: dict[str, Mapping[str, Any]] = {  # Any: as of a factor
    "stride": STRIDES,
    "padding": PADDINGS,
    "kernel": _KERNELS,
    "data_layout": LAYOUTS,
    "batch": BATCHES,
    "bias": _BIASES,
}
_VOLUMES: dict[str, Mapping[str, Any]] = {  # Any: as of a factor
    **_VOLUME_WINDOWS,
    "kernel": {"": (2, 2, 2), "kernel-1x1x1": (1, 1, 1), "kernel-1x2x3": (1, 2, 3)},
    "groups": {"": (1, 3), "groups-2": (2, 4), "groups-4": (4, 4)},
    "batch": BATCHES,
    "bias": _BIASES,
}
_OUTPUTS_FIRST, _OUTPUTS_LAST = _quantizations(per_output), _quantizations(per_last)

_DRAWN = 40

TABLES: tuple[FormTable, ...] = (
    FormTable(
        Convolution2d,
        {**_WINDOWS, "dilation": _DILATIONS, "groups": _GROUPS},
        _convolution,
        quantizations=_OUTPUTS_FIRST,
        types=_TYPES,
        num_drawn=_DRAWN,
    ),
    FormTable(
        DepthwiseConvolution2d,
        {
            **_WINDOWS,
            "dilation": _DILATIONS,
            "multiplier": {"": 1, "multiplier-2": 2, "multiplier-3": 3},
        },
        _depthwise,
        quantizations=_OUTPUTS_LAST,
        types=_TYPES,
        num_drawn=_DRAWN,
    ),
    FormTable(
        TransposeConvolution2d,
        _WINDOWS,
        _transposed,
        quantizations=_OUTPUTS_FIRST,
        types=_TYPES,
        num_drawn=_DRAWN,
    ),
    FormTable(
        Convolution3d,
        _VOLUMES,
        _over_volumes(Convolution3d, (4, 5, 6)),
        _one_of_both,
        quantizations=_OUTPUTS_FIRST,
        types=_TYPES,
    ),
    FormTable(
        TransposeConvolution3d,
        _VOLUMES,
        _over_volumes(TransposeConvolution3d, (2, 3, 3)),
        quantizations=_OUTPUTS_FIRST,
        types=_TYPES,
    ),
    FormTable(
        FullyConnected,
        {"input": _DENSE, "bias": _BIASES},
        _dense,
        quantizations=_OUTPUTS_FIRST,
        types=_TYPES,
        # Of floats beside bytes, which have lines of their own.
        decided=("asymmetric_quantize_inputs",),
    ),
    FormTable(
        BatchMatMul,
        {"batches": _BATCHES, "matrices": _MATRICES, "constants": _CONSTANTS},
        _product,
        quantizations=_ZERO_POINTS,
        types=_TYPES,
    ),
)
"""Tables of the family."""
