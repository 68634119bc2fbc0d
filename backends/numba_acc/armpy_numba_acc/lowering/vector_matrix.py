"""Lowers products of one vector with constant weights: they take as long as reading these."""

from __future__ import annotations

import numpy as np

from armpy.graph import Layer
from armpy.ops import Convolution2d
from armpy.ops.operation import Array
from armpy.ops.shapes import resolve_padding
from armpy.types import DataType
from armpy_numba_acc.lowering.depthwise_f32 import fusion_of
from armpy_numba_acc.lowering.patches import constant_of, input_of
from armpy_numba_acc.lowering.weighted_u8 import largest_sums, output_factors
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.memory import Buffer, Space
from armpy_numba_acc.packing.factors import Factors
from armpy_numba_acc.packing.quantized import stored_bounds, zero_point_of
from armpy_numba_acc.packing.vector_matrix import (
    AT_ONCE,
    by_columns,
    by_rows,
    lines_f32,
    lines_u8,
    rows_u8,
)
from armpy_numba_acc.packing.weights_u8 import GROUP, without_zero_point
from armpy_numba_acc.program.emitter import Argument, Emitter
from armpy_numba_acc.program.estimate import num_pieces, work_of

_SUM_UP = 6.0
"""Cycles that summing up a row's lanes takes."""


def multiplies_vector(layer: Layer) -> bool:
    """Whether a layer multiplies all elements of its input with each filter, and once only."""
    source, weights = input_of(layer, 0).info, input_of(layer, 1).info
    filters = weights.known_shape[0]
    if source.num_elements * filters != weights.num_elements:
        return False
    if layer.outputs[0].info.num_elements != filters:
        return False
    operation = layer.operation
    if not isinstance(operation, Convolution2d):
        return True
    sizes = source.known_shape[1:3]
    if weights.known_shape[1:3] != sizes:
        return False
    return all(
        (size == 1 or operation.dilation[axis] == 1)
        and resolve_padding(
            operation.padding, size, size, operation.stride[axis], operation.dilation[axis], axis
        )[0]
        == 0
        for axis, size in enumerate(sizes)
    )


def lower_vector(emit: Emitter, layer: Layer) -> None:
    """Add the command of a layer that `multiplies_vector`."""
    is_float = input_of(layer, 0).info.data_type is DataType.FLOAT32
    (_lower_f32 if is_float else _lower_u8)(emit, layer)


def _has_rows(emit: Emitter, columns: int, steps: int) -> bool:
    """Whether weights are better laid out as rows.

    Notes
    -----
    Counted in cycles: a vector of weights takes two, as it comes from the second level of the
    cache.
    """
    lanes = emit.isa.lanes

    def cycles(option: tuple[int, ...]) -> float:
        if option == (1,):
            return columns * (2 * -(-steps // lanes) + _SUM_UP)
        return 2 * steps * -(-columns // lanes)

    return emit.choices.choose("vector rows", (columns, steps), [(0,), (1,)], cycles) == (1,)


def _lower_f32(emit: Emitter, layer: Layer) -> None:
    """With what is fused with the layer."""
    given, bias, lanes = constant_of(layer, 1), constant_of(layer, 2), emit.isa.lanes
    assert given is not None
    weights = given.reshape(len(given), -1)
    columns, depth = weights.shape
    padded = _filled_up(np.zeros(columns, np.float32) if bias is None else bias, lanes)
    fusion = fusion_of(emit, layer)
    low, high = fusion.bounds
    arguments: list[Argument] = [
        emit.source(input_of(layer, 0)),
        emit.target(fusion.output),
        0 if fusion.residual is None else emit.source(fusion.residual),
    ]
    if _has_rows(emit, columns, depth):
        kernel = Kernel("vector_rows_f32")
        rows = by_rows(weights, lanes)
        arguments += [emit.constant(rows), emit.constant(padded), rows[0].nbytes]
    else:
        kernel = Kernel("vector_matrix_f32")
        lines = lines_f32(weights, lanes)
        arguments.append(emit.constant(by_columns(lines, padded, columns, lanes)))
    arguments += [depth, columns]
    arguments += [-np.inf if low is None else float(low), np.inf if high is None else float(high)]
    _emit(emit, layer, kernel, arguments, weights)


def _lower_u8(emit: Emitter, layer: Layer) -> None:
    """Results are exactly those of TFLite's arithmetic: see `ExactScaling`."""
    source, kind, output = input_of(layer, 0), input_of(layer, 1).info, layer.outputs[0]
    given, lanes = constant_of(layer, 1), emit.isa.lanes
    assert given is not None
    columns = len(given)
    largest_sums(layer, given.reshape(columns, -1).T, slice(None))  # they fit 32 bits
    values, start, correction = without_zero_point(
        emit.isa,
        given.reshape(columns, 1, -1),
        kind.zero_point,
        constant_of(layer, 2),
        zero_point_of(source.info),
    )
    values, bias = values[:, 0], _filled_up(start, lanes)
    depth = values.shape[1]
    steps = -(-depth // GROUP)
    has_rows = _has_rows(emit, columns, steps)
    place, flip = _input(emit, layer, emit.isa.vector_bytes if has_rows else GROUP, correction)
    target, out_flip = emit.flipped_target(output)
    low, high = stored_bounds(layer.operation.activation.bounds, output.info)  # type: ignore[attr-defined]
    factors = output_factors(layer, columns)
    traits = (correction != 0, factors.nudges.any(), factors.scales.max() >= 0.5)
    kernel = Kernel("vector_rows_u8" if has_rows else "vector_matrix_u8", (*map(int, traits),))
    arguments: list[Argument] = [place, target]
    if has_rows:
        rows = rows_u8(emit.isa, values)
        arguments.append(emit.constant(rows))
        behind: list[Argument] = [emit.constant(bias), rows[0].nbytes]
    else:
        lines = lines_u8(emit.isa, values)
        arguments.append(emit.constant(by_columns(lines, bias, columns, lanes)))
        behind = []
    arguments += _factors(emit, factors)
    flips = np.full(emit.isa.vector_bytes, flip, np.uint8)
    arguments += [emit.constant(flips), depth, steps, columns, correction]
    arguments += [zero_point_of(output.info), low, high, out_flip, *behind]
    _emit(emit, layer, kernel, arguments, given)


def _input(emit: Emitter, layer: Layer, multiple: int, correction: int) -> tuple[Buffer, int]:
    """Where the input is, with room behind it, and by what its bytes are to be changed."""
    value = input_of(layer, 0)
    size = value.info.size_bytes
    if size % multiple == 0 and not correction:
        return emit.flipped_source(value)
    source = emit.source(value)
    if source.space is Space.TENSORS and size % multiple:
        copy = emit.scratch(size)
        emit.command(Kernel("copy"), (source, copy, size), f"copy {layer.name}")
        source = copy
    return source, 0


def _factors(emit: Emitter, factors: Factors) -> list[Argument]:
    """Addresses of the columns' factors, and whether each has its own."""
    lanes = emit.isa.lanes
    parts: list[Array] = [factors.scales, factors.nudges, factors.exact]
    is_uniform = all((part == part[0]).all() for part in parts)
    if is_uniform:  # read for all, and once
        parts = [
            np.repeat(part[:1], count)
            for part, count in zip(parts, (lanes, lanes, AT_ONCE * lanes), strict=True)
        ]
    return [*(emit.constant(_filled_up(part, lanes)) for part in parts), int(not is_uniform)]


def _filled_up(array: Array, lanes: int) -> Array:
    """A vector with zeros behind it up to a multiple of lanes."""
    return np.pad(array, (0, -len(array) % lanes))


def _emit(
    emit: Emitter, layer: Layer, kernel: Kernel, arguments: list[Argument], weights: Array
) -> None:
    """Add the command."""
    absorbed = fusion_of(emit, layer).absorbed
    num_operations = 2 * weights.size
    emit.command(
        kernel,
        arguments,
        " + ".join(each.name for each in (layer, *absorbed)),
        num_operations=num_operations,
        num_pieces=num_pieces(work_of(kernel.symbol), emit.isa, num_operations, weights.nbytes),
    )
