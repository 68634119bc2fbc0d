"""Operands of long short-term memories, and what must hold of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from armpy.ops.operand_checks import (
    bind_size,
    bind_sizes,
    present_operands,
    require_one_scale,
    require_same_quantization,
)
from armpy.ops.operation import Operand, OperandInfos, Operation, TypeRule, TypeSpec, require, rule
from armpy.tensor import Dimension, TensorInfo
from armpy.types import DataType

GATES = ("input", "forget", "cell", "output")


def weight_operands(prefix: str = "") -> tuple[Operand, ...]:
    """Weights, biases and projection of one LSTM, as Arm NN, NNAPI and TFLite order them."""
    weights = (
        Operand(f"{prefix}{source}_to_{gate}_weights", optional=gate == "input", ranks=(2,))
        for source in ("input", "recurrent")
        for gate in GATES
    )
    return (
        *weights,
        Operand(f"{prefix}cell_to_input_weights", optional=True, ranks=(1,)),
        Operand(f"{prefix}cell_to_forget_weights", optional=True, ranks=(1,)),
        Operand(f"{prefix}cell_to_output_weights", optional=True, ranks=(1,)),
        Operand(f"{prefix}input_gate_bias", optional=True, ranks=(1,)),
        Operand(f"{prefix}forget_gate_bias", ranks=(1,)),
        Operand(f"{prefix}cell_bias", ranks=(1,)),
        Operand(f"{prefix}output_gate_bias", ranks=(1,)),
        Operand(f"{prefix}projection_weights", optional=True, ranks=(2,)),
        Operand(f"{prefix}projection_bias", optional=True, ranks=(1,)),
    )


def state_operands(prefix: str = "") -> tuple[Operand, ...]:
    """States that go into one LSTM."""
    return (
        Operand(f"{prefix}output_state_in", ranks=(2,)),
        Operand(f"{prefix}cell_state_in", ranks=(2,)),
    )


def layer_norm_operands(prefix: str = "") -> tuple[Operand, ...]:
    """Layer normalisation weights of one LSTM."""
    return tuple(
        Operand(f"{prefix}{gate}_layer_norm_weights", optional=True, ranks=(1,)) for gate in GATES
    )


def lstm_operands(rank: int) -> tuple[Operand, ...]:
    """All operands of one LSTM whose input has the given rank."""
    return (
        Operand("input", ranks=(rank,)),
        *weight_operands(),
        *state_operands(),
        *layer_norm_operands(),
    )


# One letter per axis: batch, time, input size, cells (n), output size.
WEIGHT_AXES = ("ni",) * 4 + ("no",) * 4 + ("n",) * 7 + ("on", "o")
STATE_AXES = ("bo", "bn")
LAYER_NORM_AXES = ("n",) * 4
_LSTM_AXES = (*WEIGHT_AXES, *STATE_AXES, *LAYER_NORM_AXES)
_OUTPUT_STATE, _CELL_STATE = 18, 19


LSTM_OUTPUTS = (Operand("output_state_out"), Operand("cell_state_out"), Operand("output"))


def float_rule(data_type: DataType, num_outputs: int) -> TypeRule:
    """Type rule of a float LSTM."""
    return rule((data_type,), (data_type,) * num_outputs)


def integer_rule(weights: TypeSpec) -> TypeRule:
    """Type rule of an LSTM with 8-bit data and a 16-bit cell state."""
    data, wide, bias = DataType.QASYMM_S8, DataType.QSYMM_S16, DataType.SIGNED32
    gates = (*(weights,) * 8, *(wide,) * 3, *(bias,) * 4)
    return rule((data, *gates, weights, bias, data, wide, wide), (data, wide, data))


def lstm_types(inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
    """Data types of `LSTM_OUTPUTS`."""
    states = inputs[_OUTPUT_STATE], inputs[_CELL_STATE]
    return (*(state.data_type for state in states), inputs[0].data_type)


def bind_lstm_sizes(
    operation: Operation, inputs: OperandInfos, input_axes: str
) -> dict[str, Dimension]:
    """Sizes of the axes of an LSTM whose operands are those of `lstm_operands`."""
    sizes = bind_sizes(operation, inputs, (input_axes, *_LSTM_AXES))
    bind_cells_to_outputs(sizes, present_operands(operation, inputs))
    return sizes


def bind_cells_to_outputs(
    sizes: dict[str, Dimension],
    present: AbstractSet[str],
    prefix: str = "",
    letters: tuple[str, str] = ("n", "o"),
) -> None:
    """Make an LSTM's outputs as many as its cells, unless a projection stands between."""
    if f"{prefix}projection_weights" not in present:
        cells, outputs = letters
        name = f"{prefix}recurrent_to_output_weights"
        bind_size(sizes, cells, sizes[outputs], name)
        bind_size(sizes, outputs, sizes[cells], name)


def require_whole_parts(present: AbstractSet[str], prefix: str = "") -> None:
    """Check which optional operands of an LSTM go together.

    The input gate, the peephole, the layer normalisation and the projection are complete or
    absent. `prefix` begins the names of this LSTM's operands; `present` holds those given.
    """
    has_input_gate = f"{prefix}input_to_input_weights" in present
    has_peephole = f"{prefix}cell_to_forget_weights" in present
    normalizes = f"{prefix}forget_layer_norm_weights" in present
    expected = {
        "recurrent_to_input_weights": has_input_gate,
        "input_gate_bias": has_input_gate,
        "cell_to_output_weights": has_peephole,
        "cell_to_input_weights": has_peephole and has_input_gate,
        "cell_layer_norm_weights": normalizes,
        "output_layer_norm_weights": normalizes,
        "input_layer_norm_weights": normalizes and has_input_gate,
    }
    if f"{prefix}projection_weights" not in present:
        expected["projection_bias"] = False
    for name, is_expected in expected.items():
        require_presence(present, prefix + name, is_expected)


def require_presence(present: AbstractSet[str], name: str, expected: bool) -> None:
    """Check that an optional operand is there, or not there, as others are."""
    require(
        (name in present) == expected,
        f"{name} is {'missing' if expected else 'there without its gate or its companions'}",
        fix="Operands of one part (input gate, peephole, layer normalisation, projection, "
        "auxiliary input) are given together or not at all",
    )


def require_clips(operation: Operation) -> None:
    """Check that the limits of an LSTM are limits."""
    for name in ("cell_clip", "projection_clip"):
        clip = getattr(operation, name)
        require(clip >= 0, f"the {name} is negative", expected="0 or more", actual=clip)


def require_integer_lstm(
    operation: Operation,
    inputs: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
    scales: Sequence[str],
) -> None:
    """Check the quantisation of an integer LSTM.

    Every operand has one scale, a state keeps its quantisation, the cell state's scale is a power
    of two from 2**-15 to 2**-9, and every attribute in `scales` is given. The outputs are
    (output_state_out, cell_state_out, output).
    """
    require_one_scale(operation, inputs)
    output_state, cell_state = inputs[_OUTPUT_STATE], inputs[_CELL_STATE]
    same = require_same_quantization
    same(output_state, outputs[0], "output_state_in and output_state_out")
    same(output_state, outputs[2], "output_state_in and output")
    same(cell_state, outputs[1], "cell_state_in and cell_state_out")
    exponent = math.log2(cell_state.scale)
    require(
        abs(exponent - round(exponent)) < 1e-3 and -15 <= round(exponent) <= -9,
        "the cell state's scale is not a power of two in the supported range",
        expected="a power of two from 2**-15 to 2**-9",
        actual=cell_state.scale,
    )
    for name in scales:
        scale = getattr(operation, name)
        require(
            0 < scale < math.inf,
            f"the {name} is not positive and finite",
            expected="a positive finite number",
            actual=scale,
        )


def intermediate_scales(present: AbstractSet[str]) -> list[str]:
    """Names of the attributes that are scales of the gates that there are."""
    return [f"{gate}_intermediate_scale" for gate in GATES if f"input_to_{gate}_weights" in present]
