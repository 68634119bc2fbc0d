"""Makes up models in which an operation is given tensors without elements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from armpy.ops.operation import Array
from armpy_nnapi.codes import OperationCode
from armpy_nnapi.conformance.random_graphs.call import RandomOperation
from armpy_nnapi.conformance.random_graphs.making import MadeCall, assemble, random_call, results_of
from armpy_nnapi.description.model_description import ModelDescription, Operand
from armpy_nnapi.operations import OperationDefinition, definitions

ZERO_SIZED = 0.03
"""Part of the models that have tensors without elements."""

_C = OperationCode
_TOGETHER: Mapping[OperationCode, tuple[str, ...]] = MappingProxyType(
    {
        _C.AXIS_ALIGNED_BBOX_TRANSFORM: ("rois", "deltas", "batch_indices"),
        _C.BOX_WITH_NMS_LIMIT: ("scores", "rois", "batch_indices"),
        _C.ROI_ALIGN: ("rois", "batch_indices"),
    }
)
"""Arguments that have one row per box."""


def zero_sized_model(random: np.random.Generator) -> tuple[ModelDescription, tuple[Array, ...]]:
    """Make up a model with one operation whose inputs are cut down to no elements.

    Returns
    -------
    description : ModelDescription
    inputs : tuple of ndarray

    Notes
    -----
    No tensor without elements can be declared: 0 says that a dimension is not known. So
    operations of the type SLICE take nothing from larger tensors.
    """
    able = [
        code
        for code, definition in definitions().items()
        if definition.allows_zero_sized and code != _C.SLICE  # whose own rows would be gone
    ]
    while True:
        definition = definitions()[int(random.choice(able))]
        signatures = list(definition.signatures())
        form, row = signatures[int(random.integers(len(signatures)))]
        call_made = random_call(random, definition, form, row)
        if call_made is None:
            continue
        call, outputs = call_made
        calls = [cut for name in _emptied(call) for cut in _cut(call, name)]
        if not calls:
            continue
        results = results_of(call, [replace(output, dimensions=()) for output in outputs])
        return assemble(random, [*calls, (call, results)])


def _emptied(call: RandomOperation) -> list[str]:
    """Names of the arguments that are to have no elements; none if SLICE lacks a type."""
    names = list(_TOGETHER.get(call.definition.code, ()))
    if not names:
        names = [name for name in dict.fromkeys(call.form.input_names) if name.startswith("input")]
        shapes = [call.source(name).shape for name in names]
        largest = max((len(shape), shape[0]) for shape in shapes)
        names = [n for n, s in zip(names, shapes, strict=True) if (len(s), s[0]) == largest]
    types = {row.types["T"] for row in _slice().type_rows}
    return names if types.issuperset(call.code(name) for name in names) else []


def _slice() -> OperationDefinition:
    return definitions()[_C.SLICE]


def _cut(call: RandomOperation, name: str) -> list[MadeCall]:
    """Replace what an argument was given by none of its rows."""
    cuts = []
    for position, source in enumerate(call.given[name]):
        (form,) = _slice().forms
        row = next(r for r in _slice().type_rows if r.types["T"] == source.operand.type)
        cut = RandomOperation(_slice(), form, row, call.random, given={"input": [source]})
        rank = len(source.shape)
        cut.parameter("begin", [0] * rank)
        cut.parameter("size", [0] + [-1] * (rank - 1))
        kind = source.operand
        empty = Operand(kind.type, (0, *kind.dimensions[1:]), kind.scale, kind.zero_point)
        results = results_of(cut, [empty])
        call.given[name][position] = results[0]
        cuts.append((cut, results))
    return cuts
