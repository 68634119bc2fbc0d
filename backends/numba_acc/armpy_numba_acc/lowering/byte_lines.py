"""Lowers sums and products of bytes with constants: by lines or a table, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.graph import Layer, Value
from armpy.ops import BinaryOperation, ElementwiseBinary
from armpy.ops.operation import Array
from armpy_numba_acc.lowering.lookup import emit_byte_function, flipped
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.machine import calls
from armpy_numba_acc.packing.lines import BentLines, exact_values, fitted_lines, slopes_of
from armpy_numba_acc.packing.quantized import QUANTIZED_TYPES, stored_bounds, zero_point_of
from armpy_numba_acc.program.emitter import Emitter

_OPERATIONS = (BinaryOperation.ADD, BinaryOperation.SUB, BinaryOperation.MUL)

_LEAST_ROWS = 16
"""A line is looked for among 256 results, for each constant."""

_LANES = 16
"""Of the longest vectors of constants, which begin at cache lines."""


def constant_operand(layer: Layer) -> int | None:
    """Which operand of a sum or product of bytes is a constant for all, or for each channel.

    Returns
    -------
    int or None
        0 or 1; None if there is none, the layer is another one, or its output is small.
    """
    operation = layer.operation
    if not isinstance(operation, ElementwiseBinary) or operation.operation not in _OPERATIONS:
        return None
    inputs, output = (layer["lhs"], layer["rhs"]), layer.output
    infos = [value.info for value in (*inputs, output)]
    if any(info.data_type not in QUANTIZED_TYPES for info in infos):
        return None
    place = 0 if inputs[0].data is not None else 1
    shape, count = infos[2].known_shape, infos[place].num_elements
    is_channels = shape[-1:] == infos[place].known_shape[-1:] == (count,)
    has_rows = infos[2].num_elements >= _LEAST_ROWS * count
    if inputs[place].data is None or infos[1 - place].known_shape != shape or not has_rows:
        return None
    return place if count == 1 or is_channels else None


@dataclass(frozen=True, eq=False, slots=True)
class _Stage:
    """One layer: lines, the output's bounds, and values that are not clamped."""

    lines: BentLines
    bounds: tuple[int, int]
    values: Array

    def clamping(self, is_last: bool) -> int:
        """Bounds that have to be looked at: 0 for none, 1 for the lower one, 2 for both.

        The last stage's bytes are cut off at 255 when they are stored.
        """
        low, high = self.bounds
        is_high = high < 255 if is_last else self.values.max() > high
        return 2 if is_high else int(self.values.min() < low)


def lower_as_lines(emit: Emitter, layers: Sequence[Layer]) -> bool:
    """Add the command of layers that read each other; whether there are lines for them.

    Parameters
    ----------
    layers
        All with a `constant_operand`; each but the first reads the one in front of it.
    """
    first, output = layers[0], layers[-1].output
    source = _other(first)
    label = " + ".join(layer.name for layer in layers)
    if all(_constants(layer).size == 1 for layer in layers):
        emit_byte_function(emit, layers, source, label)
        return True
    stages = [_stage(layer) for layer in layers]
    if None in stages:
        return False
    live_stages = [stage for stage in stages if stage is not None]
    columns = output.info.known_shape[-1]
    planes = [_widened(plane, columns) for stage in live_stages for plane in _planes(stage.lines)]
    call = calls.ByteLines(
        stages="".join("b" if stage.lines.are_bent else "s" for stage in live_stages),
        clamping="".join(str(stage.clamping(stage is live_stages[-1])) for stage in live_stages),
        source=emit.source(source),
        target=emit.target(output),
        constants=emit.constant(np.stack(planes)),
        plane_bytes=planes[0].nbytes,
        columns=columns,
        rows=output.info.num_elements // columns,
        numbers=tuple(float(n) for s in live_stages for n in (s.lines.zero, *s.bounds)),
    )
    emit(call, label, num_operations=2 * len(live_stages) * output.info.num_elements)
    return True


def _other(layer: Layer) -> Value:
    """The operand that is not a constant."""
    return layer["rhs"] if constant_operand(layer) == 0 else layer["lhs"]


def _constants(layer: Layer) -> Array:
    """The constant's elements as regions keep them."""
    value = layer["lhs"] if constant_operand(layer) == 0 else layer["rhs"]
    return flipped(value.data.reshape(-1).view(np.uint8), value)  # type: ignore[union-attr]  # it is a constant


def _bounds(layer: Layer) -> tuple[int, int]:
    """Lowest and highest element of the output."""
    activation = expect(layer.operation, ElementwiseBinary).activation
    return stored_bounds(activation.bounds, layer.output.info)


def _values(layer: Layer) -> Array:
    """See `exact_values`."""
    infos = [value.info for value in (layer["lhs"], layer["rhs"], layer.output)]
    operation = expect(layer.operation, ElementwiseBinary).operation
    return exact_values(operation, infos, _constants(layer), constant_operand(layer) or 0)


def _stage(layer: Layer) -> _Stage | None:
    """A layer's lines; None if there are none."""
    infos = [value.info for value in (layer["lhs"], layer["rhs"], layer.output)]
    operation = expect(layer.operation, ElementwiseBinary).operation
    values, bounds = _values(layer), _bounds(layer)
    slopes = slopes_of(operation, infos, _constants(layer), constant_operand(layer) or 0)
    lines = fitted_lines(values, slopes, zero_point_of(_other(layer).info), bounds)
    return None if lines is None else _Stage(lines, bounds, values)


def _planes(lines: BentLines) -> list[Array]:
    """Return the planes that kernels read of lines, one for each constant."""
    offsets = [lines.lower, lines.upper] if lines.are_bent else [lines.upper]
    return [lines.slopes, *offsets]


def _widened(plane: Array, columns: int) -> Array:
    """Numbers for each channel, up to the end of a cache line."""
    result: Array = np.zeros(-(-columns // _LANES) * _LANES, np.float32)
    result[:columns] = plane
    return result
