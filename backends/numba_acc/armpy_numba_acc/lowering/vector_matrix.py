"""Products of one vector with constant weights: they take as long as reading these."""

from __future__ import annotations

import numpy as np

from armpy.graph import Layer
from armpy.ops.operation import Array
from armpy.ops.shapes import resolve_padding
from armpy.types import DataType
from armpy_numba_acc.lowering.depthwise_f32 import fusion_of
from armpy_numba_acc.lowering.operands import elements_of
from armpy_numba_acc.lowering.weighted_scaling import largest_sums, output_factors
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.machine.space import Space
from armpy_numba_acc.packing.factors import Factors
from armpy_numba_acc.packing.origins import Part
from armpy_numba_acc.packing.quantized import stored_bounds, zero_point_of
from armpy_numba_acc.packing.vector_matrix import (
    AT_ONCE,
    Word,
    filled_up,
    pack_columns,
    pack_rows,
)
from armpy_numba_acc.packing.weights_u8 import GROUP, without_zero_point, word_of
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.estimate import num_pieces
from armpy_numba_acc.program.fusion import CONVOLUTIONS, float_bounds

_SUM_UP = 6.0
"""Cycles that summing up a row's lanes takes."""

_SIGN = 128
"""Added to signed elements, they are unsigned; their bytes differ by this bit."""


def multiplies_vector(layer: Layer) -> bool:
    """Return whether a layer multiplies all elements of its input with each filter exactly once."""
    source, weights = layer["input"].info, layer["weights"].info
    filters = weights.known_shape[0]
    if source.num_elements * filters != weights.num_elements:
        return False
    if layer.output.info.num_elements != filters:
        return False
    operation = layer.operation
    if not isinstance(operation, CONVOLUTIONS):
        return True
    sizes = source.known_shape[1:-1]
    if weights.known_shape[1:-1] != sizes:
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
    """Add the command of a layer that `multiplies_vector`, with its fused layers."""
    weights = layer["weights"].info
    is_float = weights.data_type is DataType.FLOAT32
    call = (_call_f32 if is_float else _call_u8)(emit, layer)
    num_operations = 2 * weights.num_elements
    emit(
        call,
        fusion_of(emit, layer).label(layer),
        num_operations=num_operations,
        num_pieces=num_pieces(call.work, emit.choices, num_operations, weights.size_bytes),
    )


def _layout(emit: Emitter, columns: int, steps: int) -> str:
    """Return how weights of bytes are better laid out.

    Counted in cycles: a vector of weights takes two, as it comes from the second level of the
    cache.
    """
    lanes = emit.isa.lanes

    def cycles(option: tuple[int, ...]) -> float:
        if option == (1,):
            return columns * (2 * -(-steps // lanes) + _SUM_UP)
        return 2 * steps * -(-columns // lanes)

    chosen = emit.choices.choose("vector rows", (columns, steps), [(0,), (1,)], cycles)
    return "rows" if chosen == (1,) else "columns"


def _matrix(
    emit: Emitter,
    layout: str,
    source: Pointer,
    target: Pointer,
    weights: Array,
    bias: Array,
    constant: Part,
    word: Word,
    subtracted: int = 0,
) -> calls.VectorMatrix:
    """Return the multiplied matrix.

    Parameters
    ----------
    weights : ndarray, float32 or integers, shape (columns, depth)
    bias : ndarray, float32 or int32, shape (columns,)
    constant
        The layer's weights, which are these plus the subtracted ones.
    word : dtype
        What they are stored as.
    """
    isa, is_float, (columns, depth) = emit.isa, word == np.float32, weights.shape
    if layout == "rows":
        packed = pack_rows(isa, weights, word)
        pitch = packed.pitch
    else:
        packed = pack_columns(isa, weights, bias, word)
        pitch = packed.pitch // -(-columns // isa.lanes)
    return calls.VectorMatrix(
        source=source,
        target=target,
        weights=emit.packed(packed.after(constant, subtracted)),
        pitch=pitch,
        bias=emit.constant(filled_up(bias, isa.lanes)) if layout == "rows" else 0,
        steps=depth if is_float else -(-depth // GROUP),
        columns=columns,
    )


def _constant_of(weights: Array) -> Part:
    return Part(weights, lambda values: values.reshape(len(values), -1))


def _call_f32(emit: Emitter, layer: Layer) -> calls.VectorMatrixF32:
    """The call for float32, with the layer's fused layers."""
    weight_data, bias, fusion = (
        elements_of(layer, "weights"),
        layer.constant("bias"),
        fusion_of(emit, layer),
    )
    weights = weight_data.reshape(len(weight_data), -1)
    bias = np.zeros(len(weight_data), np.float32) if bias is None else bias
    source, target = emit.source(layer["input"]), emit.target(fusion.output)
    residual = 0 if fusion.residual is None else emit.source(fusion.residual)
    # By rows, sums would have another order than those of several vectors at once.
    constant, word = _constant_of(weight_data), weights.dtype
    matrix = _matrix(emit, "columns", source, target, weights, bias, constant, word)
    return calls.VectorMatrixF32("columns", matrix, residual, *float_bounds(fusion.bounds))


def _call_u8(emit: Emitter, layer: Layer) -> calls.VectorMatrixU8:
    """The call for bytes: results are exactly those of TFLite's arithmetic, see `ExactScaling`."""
    weight_data, output = elements_of(layer, "weights"), layer.output
    columns = len(weight_data)
    largest_sums(layer, weight_data.reshape(columns, -1).T, slice(None))  # they fit 32 bits
    zero_point = layer["weights"].info.zero_point
    largest = np.abs(weight_data.astype(np.int16) - zero_point).max(initial=0)
    is_signed = emit.isa.has_byte_signs and largest <= 127
    values, bias, correction = without_zero_point(
        emit.isa,
        weight_data.reshape(columns, 1, -1),
        zero_point,
        layer.constant("bias"),
        zero_point_of(layer["input"].info) - (_SIGN if is_signed else 0),
    )
    weights, subtracted = values[:, 0], zero_point + correction
    depth = weights.shape[1]
    layout = _layout(emit, columns, -(-depth // GROUP))
    source, flip = _input(
        emit, layer, emit.isa.vector_bytes if layout == "rows" else GROUP, correction
    )
    word = np.dtype(np.int8) if is_signed else word_of(emit.isa)
    target, out_flip = emit.flipped_target(output)
    low, high = stored_bounds(fusion_of(emit, layer).bounds, output.info)
    factors = output_factors(layer, columns)
    scales, nudges, exact, factor_step = _factors(emit, factors)
    return calls.VectorMatrixU8(
        layout,
        has_signed_bytes=int(is_signed),
        has_correction=int(correction != 0),
        has_nudges=int(factors.nudges.any()),
        has_large_scales=int(factors.scales.max() >= 0.5),
        matrix=_matrix(
            emit,
            layout,
            source,
            target,
            weights,
            bias,
            _constant_of(weight_data),
            word,
            subtracted,
        ),
        depth=depth,
        correction=correction,
        flip=emit.constant(
            np.full(emit.isa.vector_bytes, flip ^ (_SIGN if is_signed else 0), np.uint8)
        ),
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
    """Return the input's buffer, with room after it, and the correction of its bytes."""
    value = layer["input"]
    size = value.info.size_bytes
    if size % multiple == 0 and not correction:
        return emit.flipped_source(value)
    source = emit.source(value)
    if source.space is Space.TENSORS and size % multiple:
        copy = emit.scratch(size)
        emit(calls.Copy(source, copy, size), f"copy {layer.name}", part="copy")
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
