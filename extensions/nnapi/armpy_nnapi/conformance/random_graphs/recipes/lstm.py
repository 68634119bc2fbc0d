"""Long short-term memories, in floats and in integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armpy.core.dataclass import dataclass
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.conformance.random_graphs.call import RandomOperation, Recipe
from armpy_nnapi.conformance.random_graphs.recipes.recurrent import (
    auxiliary_input,
    has_output,
    recurrent_activation,
    small,
)

_C = OperationCode
_GATES = ("input", "forget", "cell", "output")


@dataclass(frozen=True, slots=True)
class LstmParts:
    """Optional parts of an LSTM."""

    input_gate: bool
    peephole: bool
    layer_norm: bool
    projection: bool
    projection_bias: bool

    @classmethod
    def random(cls, call: RandomOperation, has_layer_norm: bool) -> LstmParts:
        """Any of them."""
        projection = call.chance()
        return cls(
            call.chance(),
            call.chance(),
            has_layer_norm and call.chance(),
            projection,
            projection and call.chance(),
        )

    def has(self, gate: str) -> bool:
        """Return whether there is a gate."""
        return self.input_gate or gate != "input"


Maker = Callable[[RandomOperation, str, tuple[int, ...]], None]
"""Makes up the elements of one operand: of the call, by name, with a shape."""


def cells(
    call: RandomOperation, make: Maker, prefix: str, parts: LstmParts, batch: int, size: int
) -> tuple[int, int]:
    """Make up the weights, biases and states of one LSTM; its numbers of cells and outputs."""
    units = call.integer(1, 5)
    outputs = call.integer(1, 5) if parts.projection else units
    for gate in _GATES:
        bias = "cell_bias" if gate == "cell" else f"{gate}_gate_bias"
        has_norm = parts.layer_norm and parts.has(gate)
        _give(call, make, f"{prefix}input_to_{gate}_weights", (units, size), parts.has(gate))
        _give(call, make, f"{prefix}recurrent_to_{gate}_weights", (units, outputs), parts.has(gate))
        _give(call, make, f"{prefix}{bias}", (units,), parts.has(gate))
        _give(call, make, f"{prefix}{gate}_layer_norm_weights", (units,), has_norm)
        if gate != "cell":
            has_peephole = parts.peephole and parts.has(gate)
            _give(call, make, f"{prefix}cell_to_{gate}_weights", (units,), has_peephole)
    _give(call, make, f"{prefix}projection_weights", (outputs, units), parts.projection)
    _give(call, make, f"{prefix}projection_bias", (outputs,), parts.projection_bias)
    make(call, f"{prefix}output_state_in", (batch, outputs))
    make(call, f"{prefix}cell_state_in", (batch, units))
    return units, outputs


def _give(
    call: RandomOperation, make: Maker, name: str, shape: tuple[int, ...], is_there: bool
) -> None:
    """Give an optional argument elements, or none, if the form has it."""
    if call.has(name):
        if is_there:
            make(call, name, shape)
        else:
            call.omit(name)


def _floats(call: RandomOperation, name: str, shape: tuple[int, ...]) -> None:
    """Make up weights, or any other operand of a float LSTM."""
    if "layer_norm" in name:
        call.tensor(name, shape, low=0.5, high=1.5)
    else:
        small(call, name, *shape)


def _scalars(call: RandomOperation) -> None:
    """Make up activation and limits."""
    recurrent_activation(call)
    for name in ("cell_clip", "projection_clip"):
        call.scalar(name, call.choose(0, 1) * call.real(0.2, 2))


def lstm(call: RandomOperation) -> None:
    """One step, with any of the optional parts."""
    batch, size = call.data("input", ranks=(2,))
    parts = LstmParts.random(call, call.has("cell_layer_norm_weights"))
    cells(call, _floats, "", parts, batch, size)
    _scalars(call)
    call.private.add("scratch")


def sequence_lstm(call: RandomOperation) -> None:
    """A sequence, either axis time."""
    time_major = call.chance()
    shape = call.data("input", ranks=(3,))
    batch = shape[1] if time_major else shape[0]
    cells(call, _floats, "", LstmParts.random(call, True), batch, shape[2])
    _scalars(call)
    call.scalar("time_major", time_major)


def bidirectional_lstm(call: RandomOperation) -> None:
    """A sequence in both directions, with any way to link to another one."""
    time_major = call.chance()
    shape = call.data("input", ranks=(3,))
    batch = shape[1] if time_major else shape[0]
    linking = auxiliary_input(call, shape)
    parts = LstmParts.random(call, True)
    for prefix in ("forward_", "backward_"):
        units, _ = cells(call, _floats, prefix, parts, batch, shape[2])
        for gate in _GATES:
            name = f"{prefix}aux_to_{gate}_weights"
            _give(call, _floats, name, (units, shape[2]), linking == "cross" and parts.has(gate))
    _scalars(call)
    call.scalar("merge_outputs", not has_output(call, "backward_output"))
    call.scalar("time_major", time_major)


_STATE_QUANT = (1 / 128, 0)
_CELL_QUANT = (2.0**-15, 0)


def _integers(call: RandomOperation, name: str, shape: tuple[int, ...]) -> None:
    """Make up an operand of an LSTM of 8-bit data and 16-bit gates."""
    code = call.code(name)
    if name == "output_state_in":
        call.tensor(name, shape, quant=_STATE_QUANT)
    elif name == "cell_state_in":
        call.tensor(name, shape, low=-20000, high=20000, quant=_CELL_QUANT)
    elif code == OperandCode.TENSOR_QUANT16_SYMM:
        call.tensor(name, shape, low=3000, high=30000, quant=_CELL_QUANT)
    elif code == OperandCode.TENSOR_INT32:
        limit = 2000 if name == "projection_bias" else 10_000_000
        call.tensor(name, shape, low=-limit, high=limit)
    else:
        call.tensor(name, shape, quant=(1 / 128, 0))


def quantized_lstm(call: RandomOperation) -> None:
    """One step, with any of the optional parts."""
    batch, size = call.data("input", ranks=(2,), quant=_STATE_QUANT)
    cells(call, _integers, "", LstmParts.random(call, True), batch, size)
    for name in ("cell_clip", "projection_clip"):
        call.scalar(name, call.choose(0, 1) * call.real(0.2, 0.9))
    for gate in _GATES:
        call.scalar(f"{gate}_intermediate_scale", call.real(0.004, 0.01))
    call.scalar("hidden_state_zero_point", call.integer(-10, 10))
    call.scalar("hidden_state_scale", call.real(0.005, 0.01))
    call.output("cell_state_out", *_CELL_QUANT)
    for name in ("output_state_out", "output"):
        call.output(name, *_STATE_QUANT)


_DATA_QUANT = (1 / 128, 128)
_CELL_16_QUANT = (2.0**-11, 0)


def quantized_16bit_lstm(call: RandomOperation) -> None:
    """One step of the plain LSTM whose quantisation is given."""
    batch, size = call.data("input", ranks=(2,), quant=_DATA_QUANT)
    quant = (float(np.float32(call.real(0.002, 0.006))), call.integer(90, 160))
    bias_quant = (quant[0] / 128, 0)

    def make(call: RandomOperation, name: str, shape: tuple[int, ...]) -> None:
        if name == "output_state_in":
            call.data(name, shape, quant=_DATA_QUANT)
        elif name == "cell_state_in":
            call.data(name, shape, quant=_CELL_16_QUANT, low=-8000, high=8000)
        elif "bias" in name:
            call.tensor(name, shape, low=-50000, high=50000, quant=bias_quant)
        else:
            call.tensor(name, shape, quant=quant)

    cells(call, make, "", LstmParts(True, False, False, False, False), batch, size)
    call.output("cell_state_out", *_CELL_16_QUANT)
    call.output("output", *_DATA_QUANT)


RECIPES: dict[OperationCode, Recipe] = {
    _C.LSTM: lstm,
    _C.UNIDIRECTIONAL_SEQUENCE_LSTM: sequence_lstm,
    _C.BIDIRECTIONAL_SEQUENCE_LSTM: bidirectional_lstm,
    _C.QUANTIZED_LSTM: quantized_lstm,
    _C.QUANTIZED_16BIT_LSTM: quantized_16bit_lstm,
}
