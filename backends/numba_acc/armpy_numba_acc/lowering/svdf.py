"""Lowers Svdf."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy import numerics
from armpy.graph import Layer
from armpy.ops import Svdf
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.patches import constant_of, input_of
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.memory import Buffer, Space
from armpy_numba_acc.packing.quantized import zero_point_of
from armpy_numba_acc.packing.weights_u8 import GROUP, lines_of_groups
from armpy_numba_acc.program.emitter import Argument, Emitter
from armpy_numba_acc.program.registry import Lowering

_TYPES = (DataType.FLOAT32, DataType.QSYMM_S16)
"""Of the state."""


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32, or 8 bits with a state of 16; constant weights."""
    for info, name in zip(inputs[1:4], ("weights_feature", "weights_time", "bias"), strict=True):
        if info is not None and not info.is_constant:
            return f"{name} is not constant"
    state = outputs[0].data_type
    return "" if state in _TYPES else f"a state of {state.name} is not supported"


def lower(emit: Emitter, layer: Layer) -> None:
    """Add the command; integers are those of CpuRef."""
    operation = layer.operation
    assert isinstance(operation, Svdf)
    source, state = input_of(layer, 0), input_of(layer, 4)
    state_out, output = layer.outputs
    features, times, bias = (constant_of(layer, number) for number in (1, 2, 3))
    assert features is not None
    assert times is not None
    is_float = state.info.data_type is DataType.FLOAT32
    data = emit.source(source)
    filters, inputs = features.shape
    if is_float:
        packed, scratch_bytes = features, 64 * emit.num_threads
    else:
        data = _with_room(emit, layer, data)
        packed, _ = lines_of_groups(emit.isa, features[:, np.newaxis], emit.isa.lanes)
        scratch_bytes = 4 * (filters + emit.isa.lanes)
        times = _times_of_states(times, operation.shifts_state_first)
    arguments = (
        data,
        emit.source(state),
        emit.target(state_out),
        emit.target(output),
        emit.constant(packed),
        emit.constant(times),
        0 if bias is None else emit.constant(bias),
        source.info.known_shape[0],
        inputs,
        filters // operation.rank,
        state.info.num_elements // source.info.known_shape[0] // filters,
        operation.rank,
        *((0,) * 6 if is_float else _integers(emit, layer)),
        emit.scratch(scratch_bytes),
    )
    kind, activation = ("f32", operation.activation.name) if is_float else ("q8", "NONE")
    kernel = Kernel("svdf", (kind, int(operation.shifts_state_first), activation))
    operations = 2 * source.info.known_shape[0] * (features.size + times.size)
    emit.command(kernel, arguments, layer.name, num_operations=operations)


def _with_room(emit: Emitter, layer: Layer, data: Buffer) -> Buffer:
    """The input, or a copy if elements behind the caller's tensor would be read."""
    info = input_of(layer, 0).info
    if data.space is not Space.TENSORS or info.known_shape[1] % GROUP == 0:
        return data
    copy = emit.scratch(info.size_bytes)
    emit.command(Kernel("copy"), (data, copy, info.size_bytes), f"copy {layer.name}")
    return copy


def _times_of_states(times: Array, shifts_first: bool) -> Array:
    """Weights of every old entry as it is stored, then those of the newest ones."""
    states = np.zeros_like(times)
    if shifts_first:
        states[:, 1:] = times[:, :-1]
    else:
        states[:, :-1] = times[:, :-1]
    return np.concatenate((states.reshape(-1), times[:, -1]))


def _integers(emit: Emitter, layer: Layer) -> tuple[Argument, ...]:
    """The arguments that integers need.

    References
    ----------
    TFLite ``kernels/internal/reference/svdf.h``.
    """
    data, feature, time = (input_of(layer, number).info for number in (0, 1, 2))
    state, output = input_of(layer, 4).info, layer.outputs[1].info
    features = constant_of(layer, 1)
    assert features is not None
    base = 128 if emit.isa.dot == "sdot" else 0  # which multiplies elements less 128
    bias = features.sum(axis=1, dtype=np.int64) * (base - zero_point_of(data))
    return (
        emit.constant(bias.astype(np.int32)),
        *numerics.quantize_multiplier(data.scale * feature.scale / state.scale),
        *numerics.quantize_multiplier(state.scale * time.scale / output.scale),
        zero_point_of(output),
    )


LOWERINGS = {Svdf: Lowering(check, lower)}
