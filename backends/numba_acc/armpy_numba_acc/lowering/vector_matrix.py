"""Products of one vector with constant weights: they take as long as reading these."""

from __future__ import annotations

import numpy as np

from armpy.graph import Layer
from armpy.ops import Convolution2d
from armpy.ops.operation import Array
from armpy.ops.shapes import resolve_padding
from armpy.records import dataclass
from armpy.types import DataType
from armpy_numba_acc.lowering.depthwise_f32 import fusion_of
from armpy_numba_acc.lowering.operands import elements_of
from armpy_numba_acc.lowering.weighted_u8 import largest_sums, output_factors
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.moves import Copy
from armpy_numba_acc.machine.calls.vectors import VectorMatrixF32, VectorMatrixU8
from armpy_numba_acc.machine.memory import Buffer, Space
from armpy_numba_acc.packing.factors import Factors
from armpy_numba_acc.packing.quantized import stored_bounds, zero_point_of
from armpy_numba_acc.packing.vector_matrix import (
    AT_ONCE,
    by_columns,
    filled_up,
    lines_f32,
    lines_u8,
    rows_f32,
    rows_u8,
)
from armpy_numba_acc.packing.weights_u8 import GROUP, without_zero_point
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.estimate import num_pieces

_SUM_UP = 6.0
"""Cycles that summing up a row's lanes takes."""


def multiplies_vector(layer: Layer) -> bool:
    """Whether a layer multiplies all elements of its input with each filter, and once only."""
    source, weights = layer["input"].info, layer["weights"].info
    filters = weights.known_shape[0]
    if source.num_elements * filters != weights.num_elements:
        return False
    if layer.output.info.num_elements != filters:
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
    """Add the command of a layer that `multiplies_vector`, with what is fused with it."""
    weights = layer["weights"].info
    is_float = weights.data_type is DataType.FLOAT32
    call = (_call_f32 if is_float else _call_u8)(emit, layer)
    num_operations = 2 * weights.num_elements
    emit(
        call,
        " + ".join(each.name for each in (layer, *fusion_of(emit, layer).absorbed)),
        num_operations=num_operations,
        num_pieces=num_pieces(call.work, emit.isa, num_operations, weights.size_bytes),
    )


@dataclass(frozen=True, slots=True)
class _Matrix:
    """Packed weights and bias, as `VectorMatrix` has them."""

    layout: str
    weights: Pointer
    pitch: int
    bias: Pointer
    steps: int

    @classmethod
    def of(cls, emit: Emitter, weights: Array, bias: Array) -> _Matrix:
        """Weights (columns, depth), in float32 or as integers, in the order that is read faster."""
        isa, is_float, (columns, depth) = emit.isa, weights.dtype == np.float32, weights.shape
        steps = depth if is_float else -(-depth // GROUP)
        bias = filled_up(bias, isa.lanes)
        if _has_rows(emit, columns, steps):
            rows = (rows_f32 if is_float else rows_u8)(isa, weights)
            packed = emit.constant(rows), rows[0].nbytes, emit.constant(bias)
            return cls("rows", *packed, steps)
        lines = (lines_f32 if is_float else lines_u8)(isa, weights)
        pitch = isa.vector_bytes + lines[0].nbytes
        packed_lines = emit.constant(by_columns(lines, bias, columns, isa.lanes))
        return cls("columns", packed_lines, pitch, 0, steps)


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


def _call_f32(emit: Emitter, layer: Layer) -> VectorMatrixF32:
    """The call for float32, with what is fused with the layer."""
    given, bias = elements_of(layer, "weights"), layer.constant("bias")
    columns = len(given)
    bias = np.zeros(columns, np.float32) if bias is None else bias
    fusion = fusion_of(emit, layer)
    low, high = fusion.bounds
    source, target = emit.source(layer["input"]), emit.target(fusion.output)
    residual = 0 if fusion.residual is None else emit.source(fusion.residual)
    matrix = _Matrix.of(emit, given.reshape(columns, -1), bias)
    return VectorMatrixF32(
        matrix.layout,
        source=source,
        target=target,
        weights=matrix.weights,
        pitch=matrix.pitch,
        bias=matrix.bias,
        steps=matrix.steps,
        columns=columns,
        residual=residual,
        low=-np.inf if low is None else float(low),
        high=np.inf if high is None else float(high),
    )


def _call_u8(emit: Emitter, layer: Layer) -> VectorMatrixU8:
    """The call for bytes: results are exactly those of TFLite's arithmetic, see `ExactScaling`."""
    given, output = elements_of(layer, "weights"), layer.output
    columns = len(given)
    largest_sums(layer, given.reshape(columns, -1).T, slice(None))  # they fit 32 bits
    values, start, correction = without_zero_point(
        emit.isa,
        given.reshape(columns, 1, -1),
        layer["weights"].info.zero_point,
        layer.constant("bias"),
        zero_point_of(layer["input"].info),
    )
    values = values[:, 0]
    matrix = _Matrix.of(emit, values, start)
    multiple = emit.isa.vector_bytes if matrix.layout == "rows" else GROUP
    source, flip = _input(emit, layer, multiple, correction)
    target, out_flip = emit.flipped_target(output)
    low, high = stored_bounds(fusion_of(emit, layer).bounds, output.info)
    factors = output_factors(layer, columns)
    scales, nudges, exact, factor_step = _factors(emit, factors)
    return VectorMatrixU8(
        matrix.layout,
        source=source,
        target=target,
        weights=matrix.weights,
        pitch=matrix.pitch,
        bias=matrix.bias,
        steps=matrix.steps,
        columns=columns,
        has_correction=int(correction != 0),
        has_nudges=int(factors.nudges.any()),
        has_large_scales=int(factors.scales.max() >= 0.5),
        depth=values.shape[1],
        correction=correction,
        flip=emit.constant(np.full(emit.isa.vector_bytes, flip, np.uint8)),
        scales=scales,
        nudges=nudges,
        exact=exact,
        factor_step=factor_step,
        zero_point=zero_point_of(output.info),
        low=low,
        high=high,
        out_flip=out_flip,
    )


def _input(emit: Emitter, layer: Layer, multiple: int, correction: int) -> tuple[Buffer, int]:
    """Where the input is, with room behind it, and by what its bytes are to be changed."""
    value = layer["input"]
    size = value.info.size_bytes
    if size % multiple == 0 and not correction:
        return emit.flipped_source(value)
    source = emit.source(value)
    if source.space is Space.TENSORS and size % multiple:
        copy = emit.scratch(size)
        emit(Copy(source, copy, size), f"copy {layer.name}")
        source = copy
    return source, 0


def _factors(emit: Emitter, factors: Factors) -> tuple[Buffer, Buffer, Buffer, int]:
    """Addresses of scales, nudges and exact factors, and whether each column has its own."""
    lanes = emit.isa.lanes
    parts: list[Array] = [factors.scales, factors.nudges, factors.exact]
    is_uniform = all((part == part[0]).all() for part in parts)
    if is_uniform:  # read for all, and once
        sizes = (lanes, lanes, AT_ONCE * lanes)
        parts = [np.repeat(part[:1], size) for part, size in zip(parts, sizes, strict=True)]
    scales, nudges, exact = (emit.constant(filled_up(part, lanes)) for part in parts)
    return scales, nudges, exact, int(not is_uniform)
