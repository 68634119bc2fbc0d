"""Lowers one-hot encoding."""

from __future__ import annotations

from math import prod

from armpy.graph import Layer
from armpy.ops import OneHot
from armpy.ops.shapes import normalize_axis
from armpy_numba_acc.lowering.operands import anything, expect
from armpy_numba_acc.machine.calls import gathering
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import Lowering


def lower(emit: Emitter, layer: Layer) -> None:
    """One command, whatever the axis."""
    indices, output = layer["indices"], layer.output
    shape = output.info.known_shape
    axis = normalize_axis(expect(layer.operation, OneHot).axis, len(shape))
    call = gathering.OneHot(
        element_bytes=output.info.data_type.size_bytes,
        index_bytes=indices.info.data_type.size_bytes,
        indices=emit.source(indices),
        on=emit.source(layer["on_value"]),
        off=emit.source(layer["off_value"]),
        target=emit.target(output),
        outers=prod(shape[:axis]),
        depth=shape[axis],
        inner=prod(shape[axis + 1 :]),
    )
    emit(call, layer.name)


LOWERINGS = {OneHot: Lowering(anything, lower)}
