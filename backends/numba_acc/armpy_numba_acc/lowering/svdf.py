"""Svdf, in float32 and in integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.core import numerics
from armpy.core.dataclass import dataclass
from armpy.graph import Layer
from armpy.ops import Svdf
from armpy.ops.operands import Operands
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.operands import elements_of, expect
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.machine.space import Space
from armpy_numba_acc.packing.quantized import zero_point_of
from armpy_numba_acc.packing.weights_u8 import GROUP, lines_of_groups
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule

_FORMATS = {
    DataType.FLOAT32: "f32",
    DataType.QSYMM_S16: "i16",
    DataType.QSYMM_S8: "i8",
    DataType.QASYMM_S8: "u8",
}
"""Of the state's elements in a region, by their type."""


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """float32, or 8 bits with a state of 8 or 16; constant weights."""
    operands = Operands(operation, inputs)
    for name in ("weights_feature", "weights_time", "bias"):
        info = operands.get(name)
        if info is not None and not info.is_constant:
            return f"{name} is not constant"
    state = outputs[0].data_type
    return "" if state in _FORMATS else f"a state of {state.name} is not supported"


def lower(emit: Emitter, layer: Layer) -> None:
    """Add the command; integers are those of CpuRef."""
    operation, source, state = expect(layer.operation, Svdf), layer["input"], layer["state_in"]
    features, times = (elements_of(layer, f"weights_{name}") for name in ("feature", "time"))
    state_out, output = layer.outputs
    is_float = state.info.data_type is DataType.FLOAT32
    (batches, _), (filters, inputs) = source.info.known_shape, features.shape
    data, packed, scratch_bytes = emit.source(source), features, 64 * emit.num_threads
    if not is_float:
        data = _with_room(emit, layer, data)
        packed = lines_of_groups(emit.isa, features[:, np.newaxis], emit.isa.lanes)
        scratch_bytes = 4 * (filters + emit.isa.lanes)
        times = _times_of_states(times, operation.shifts_state_first)
    rescaling = _Rescaling() if is_float else _Rescaling.of(emit, layer, features)
    call = calls.Svdf(
        kind=_FORMATS[state.info.data_type],
        shifts_first=int(operation.shifts_state_first),
        activation=operation.activation.name if is_float else "NONE",
        source=data,
        state_in=emit.source(state),
        state_out=emit.target(state_out),
        output=emit.target(output),
        features=emit.constant(packed),
        times=emit.constant(times),
        bias=_bias_of(emit, layer),
        batches=batches,
        inputs=inputs,
        units=filters // operation.rank,
        memory=state.info.num_elements // batches // filters,
        rank=operation.rank,
        feature_bias=rescaling.feature_bias,
        to_state=rescaling.to_state[0],
        to_state_shift=rescaling.to_state[1],
        to_output=rescaling.to_output[0],
        to_output_shift=rescaling.to_output[1],
        zero_point=rescaling.zero_point,
        state_zero_point=0 if is_float else zero_point_of(state.info),
        scratch=emit.scratch(scratch_bytes),
    )
    emit(call, layer.name, num_operations=2 * batches * (features.size + times.size))


def _bias_of(emit: Emitter, layer: Layer) -> Pointer:
    """Return each unit's bias; of integers, less the share of the state's zero point."""
    bias, zero_point = layer.constant("bias"), zero_point_of(layer["state_in"].info)
    if not zero_point:
        return 0 if bias is None else emit.constant(bias)
    units = layer.outputs[1].info.known_shape[1]
    times = elements_of(layer, "weights_time").reshape(units, -1)
    excess = zero_point * times.sum(axis=1, dtype=np.int64)
    return emit.constant(((0 if bias is None else bias) - excess).astype(np.int32))


def _with_room(emit: Emitter, layer: Layer, data: Buffer) -> Buffer:
    """The input, or a copy if elements after the caller's tensor would be read."""
    info = layer["input"].info
    if data.space is not Space.TENSORS or info.known_shape[1] % GROUP == 0:
        return data
    copy = emit.scratch(info.size_bytes)
    emit(calls.Copy(data, copy, info.size_bytes), f"copy {layer.name}", part="copy")
    return copy


def _times_of_states(times: Array, shifts_first: bool) -> Array:
    """Weights of every old entry as it is stored, then those of the newest ones."""
    states = np.zeros_like(times)
    if shifts_first:
        states[:, 1:] = times[:, :-1]
    else:
        states[:, :-1] = times[:, :-1]
    return np.concatenate((states.reshape(-1), times[:, -1]))


@dataclass(frozen=True, slots=True)
class _Rescaling:
    """Rescaling of an integer SVDF.

    Reference: TFLite ``kernels/internal/reference/svdf.h``.
    """

    feature_bias: Pointer = 0  # an int32 per filter, which makes up for the input's zero point
    to_state: tuple[int, int] = (0, 0)  # multiplier and shift
    to_output: tuple[int, int] = (0, 0)
    zero_point: int = 0

    @classmethod
    def of(cls, emit: Emitter, layer: Layer, features: Array) -> _Rescaling:
        data, state, output = layer["input"].info, layer["state_in"].info, layer.outputs[1].info
        feature, time = layer["weights_feature"].info, layer["weights_time"].info
        base = 128 if emit.isa.has_signed_dots else 0  # which multiplies elements less 128
        bias = features.sum(axis=1, dtype=np.int64) * (base - zero_point_of(data))
        return cls(
            emit.constant(bias.astype(np.int32)),
            numerics.quantize_multiplier(data.scale * feature.scale / state.scale),
            numerics.quantize_multiplier(state.scale * time.scale / output.scale),
            zero_point_of(output),
        )


LOWERINGS = {Svdf: LoweringRule(check, lower)}
