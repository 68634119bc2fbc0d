"""Long short-term memories that take one time step in integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.lstm_operands import (
    LSTM_OUTPUTS,
    bind_lstm_sizes,
    integer_rule,
    intermediate_scales,
    lstm_operands,
    lstm_types,
    require_clips,
    require_integer_lstm,
    require_whole_parts,
)
from armpy.ops.operand_checks import (
    bind_sizes,
    present_operands,
    require_one_scale,
    require_same_quantization,
)
from armpy.ops.operation import Operand, Operation, TypeRule, require, rule
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["QLstm", "QuantizedLstm"]


@dataclass(frozen=True, slots=True)
class QLstm(Operation):
    """Run a long short-term memory with 8-bit data and 16-bit gates for one time step.

    Notes
    -----
    input (b, i); weights, biases and states as of `UnidirectionalSequenceLstm`; output
    (b, o), equal to the new output state. The activation is tanh.

    As in Arm NN's and NNAPI's implementations, gate biases are used in layer normalisation only. A
    gate that is not normalised has 12 fraction bits, whatever its intermediate scale.

    References
    ----------
    Arm NN QLstm; NNAPI QUANTIZED_LSTM.
    """

    cell_clip: float = 0.0
    projection_clip: float = 0.0
    """`cell_clip` and `projection_clip`: limits of the absolute cell state and projection; 0 for
    none.
    """
    input_intermediate_scale: float = 0.0
    forget_intermediate_scale: float = 0.0
    cell_intermediate_scale: float = 0.0
    output_intermediate_scale: float = 0.0
    """`input_intermediate_scale`, `forget_intermediate_scale`, `cell_intermediate_scale` and
    `output_intermediate_scale`: of the gates' sums, before any layer normalisation.
    """
    hidden_state_zero_point: int = 0
    hidden_state_scale: float = 0.0
    """Scale of the output gate's result, before the projection."""

    inputs: ClassVar[tuple[Operand, ...]] = lstm_operands(2)
    outputs: ClassVar[tuple[Operand, ...]] = LSTM_OUTPUTS
    type_rules: ClassVar[tuple[TypeRule, ...]] = (integer_rule(DataType.QSYMM_S8),)

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(b, o), (b, n) and (b, o)."""
        sizes = bind_lstm_sizes(self, inputs, "bi")
        output = sizes["b"], sizes["o"]
        return output, (sizes["b"], sizes["n"]), output

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """Give the states' and the input's."""
        return lstm_types(inputs)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Check which optional operands go together, clips, and the quantisation."""
        present = present_operands(self, inputs)
        require_whole_parts(present)
        require_clips(self)
        scales = intermediate_scales(present)
        require_integer_lstm(self, inputs, outputs, ["hidden_state_scale", *scales])


_GATE_WEIGHTS = tuple(
    Operand(f"{source}_to_{gate}_weights", ranks=(2,))
    for source in ("input", "recurrent")
    for gate in ("input", "forget", "cell", "output")
)
_INPUT, _CELL_STATE, _OUTPUT_STATE = 0, 13, 14
_FIRST_WEIGHTS, _LAST_WEIGHTS = 1, 8


@dataclass(frozen=True, slots=True)
class QuantizedLstm(Operation):
    """Run a plain long short-term memory with 8-bit data and 16-bit gates for one time step.

    Notes
    -----
    input (b, i); input_to_*_weights (o, i); recurrent_to_*_weights (o, o); biases (o); cell_state
    (b, o); output_state and output (b, o), the next output state.

    Each gate is ``(input, output_state) @ (recurrent weights, input weights).T + bias``, joined
    along the last axis in this order: the recurrent weights' first columns meet the input, as in
    NNAPI's published test vectors, despite the operands' names.

    Input, output state and output have scale 1/128 and zero point 128, the cell state scale 2**-11.
    The weights share one quantisation; the biases have the weights' scale / 128. Sums are int32,
    gates int16 with 12 fraction bits, sigmoid and tanh in fixed point.

    References
    ----------
    Arm NN QuantizedLstm; NNAPI QUANTIZED_16BIT_LSTM; TFLite LSTM (basic kernel).
    """

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input", ranks=(2,)),
        *_GATE_WEIGHTS,
        Operand("input_gate_bias", ranks=(1,)),
        Operand("forget_gate_bias", ranks=(1,)),
        Operand("cell_bias", ranks=(1,)),
        Operand("output_gate_bias", ranks=(1,)),
        Operand("cell_state_in", ranks=(2,)),
        Operand("output_state_in", ranks=(2,)),
    )
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("cell_state_out"), Operand("output"))
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        rule(
            (
                *(DataType.QASYMM_U8,) * 9,
                *(DataType.SIGNED32,) * 4,
                DataType.QSYMM_S16,
                DataType.QASYMM_U8,
            ),
            (DataType.QSYMM_S16, DataType.QASYMM_U8),
        ),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(b, o) twice."""
        axes = ("bi", *("oi",) * 4, *("oo",) * 4, *("o",) * 4, "bo", "bo")
        sizes = bind_sizes(self, inputs, axes)
        return ((sizes["b"], sizes["o"]),) * 2

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """Give the cell state's and the input's."""
        return inputs[_CELL_STATE].data_type, inputs[_INPUT].data_type

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """The given quantisation, and one for all weights."""
        require_one_scale(self, inputs)
        for info, name in (
            (inputs[_INPUT], "input"),
            (inputs[_OUTPUT_STATE], "output_state_in"),
            (outputs[1], "output"),
        ):
            _require_quantization(info, name, 1 / 128, 128)
        _require_quantization(inputs[_CELL_STATE], "cell_state_in", 2.0**-11, 0)
        _require_quantization(outputs[0], "cell_state_out", 2.0**-11, 0)
        first = inputs[_FIRST_WEIGHTS]
        for index in range(_FIRST_WEIGHTS + 1, _LAST_WEIGHTS + 1):
            names = f"{self.input_name(_FIRST_WEIGHTS)} and {self.input_name(index)}"
            require_same_quantization(first, inputs[index], names)


def _require_quantization(info: TensorInfo, name: str, scale: float, zero_point: int) -> None:
    """Check a quantisation that the operation gives."""
    require(
        math.isclose(info.scale, scale, rel_tol=1e-3) and info.zero_point == zero_point,
        f"the quantisation of {name} is not the operation's",
        expected=f"scale {scale:g} and zero point {zero_point}",
        actual=f"{info.scale:g} and {info.zero_point}",
    )
