"""Long short-term memories: one step, and a sequence of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.lstm_operands import (
    LSTM_OUTPUTS,
    bind_lstm_sizes,
    float_rule,
    integer_rule,
    intermediate_scales,
    lstm_operands,
    lstm_types,
    require_clips,
    require_integer_lstm,
    require_whole_parts,
)
from armpy.ops.operand_checks import present_operands
from armpy.ops.operation import Operand, Operation, TypeRule, require
from armpy.ops.recurrent import RecurrentActivation
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["Lstm", "UnidirectionalSequenceLstm"]


@dataclass(frozen=True, slots=True)
class Lstm(Operation):
    """Run a long short-term memory for one time step.

    Notes
    -----
    input (b, i); weights, biases and states as of `UnidirectionalSequenceLstm`; scratch
    (b, 4 * n), or (b, 3 * n) without an input gate; output (b, o), equal to the new output
    state.

    The scratch output is Arm NN's and NNAPI's; its contents are unspecified.

    References
    ----------
    Arm NN Lstm; NNAPI LSTM.
    """

    activation: RecurrentActivation = RecurrentActivation.TANH
    """Activation of the candidate and of the cell state on its way out."""
    cell_clip: float = 0.0
    projection_clip: float = 0.0
    """`cell_clip` and `projection_clip`: limits of the absolute cell state and projection; 0 for
    none.
    """

    inputs: ClassVar[tuple[Operand, ...]] = lstm_operands(2)
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("scratch"), *LSTM_OUTPUTS)
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        float_rule(DataType.FLOAT32, 4),
        float_rule(DataType.FLOAT16, 4),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(b, 4 * n) or (b, 3 * n), (b, o), (b, n), (b, o)."""
        sizes = bind_lstm_sizes(self, inputs, "bi")
        batch, cells, output = sizes["b"], sizes["n"], sizes["o"]
        num_gates = 4 if "input_to_input_weights" in present_operands(self, inputs) else 3
        scratch = None if cells is None else num_gates * cells
        return (batch, scratch), (batch, output), (batch, cells), (batch, output)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Check which optional operands go together, and clips."""
        require_whole_parts(present_operands(self, inputs))
        require_clips(self)


@dataclass(frozen=True, slots=True)
class UnidirectionalSequenceLstm(Operation):
    """Run a long short-term memory over a sequence.

    Notes
    -----
    input (b, t, i), or (t, b, i) if time-major; input_to_*_weights (n, i);
    recurrent_to_*_weights (n, o); cell_to_*_weights, biases and layer normalisation
    weights (n); projection_weights (o, n); projection_bias (o); output_state (b, o);
    cell_state (b, n); output as input with o instead of i. Without a projection o is n.

    Without its operands the input gate is one minus the forget gate. Peephole (cell_to_*) and layer
    normalisation weights exist for all gates or none (never for a missing input gate; no peephole
    for the cell gate).

    The caller feeds back the states. A quantised cell state's scale is a power of two, 2**-15 to
    2**-9.

    References
    ----------
    Arm NN UnidirectionalSequenceLstm; NNAPI and TFLite UNIDIRECTIONAL_SEQUENCE_LSTM;
    Sak et al., "Long Short-Term Memory Recurrent Neural Network Architectures for Large
    Scale Acoustic Modeling", 2014.
    """

    activation: RecurrentActivation = RecurrentActivation.TANH
    """Activation of the candidate and of the cell state on its way out; integers need TANH."""
    cell_clip: float = 0.0
    projection_clip: float = 0.0
    """`cell_clip` and `projection_clip`: limits of the absolute cell state and projection; 0 for
    none.
    """
    time_major: bool = False
    """Whether the input's and output's first axis is time, not batch."""
    input_intermediate_scale: float = 0.0
    forget_intermediate_scale: float = 0.0
    cell_intermediate_scale: float = 0.0
    output_intermediate_scale: float = 0.0
    """`input_intermediate_scale`, `forget_intermediate_scale`, `cell_intermediate_scale` and
    `output_intermediate_scale`: of the gates before layer normalisation, if any; for integers only.
    """
    hidden_state_scale: float = 0.0
    hidden_state_zero_point: int = 0
    """Zero point of the output gate's result before the projection, for integers only; without a
    projection the output's quantisation.
    """

    inputs: ClassVar[tuple[Operand, ...]] = lstm_operands(3)
    outputs: ClassVar[tuple[Operand, ...]] = LSTM_OUTPUTS
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        float_rule(DataType.FLOAT32, 3),
        float_rule(DataType.FLOAT16, 3),
        integer_rule((DataType.QASYMM_S8, DataType.QSYMM_S8)),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(b, o), (b, n), and the input's shape with o at its end."""
        axes = "tbi" if self.time_major else "bti"
        sizes = bind_lstm_sizes(self, inputs, axes)
        batch, output = sizes["b"], sizes["o"]
        sequence = tuple(sizes[axis] for axis in axes[:2])
        return (batch, output), (batch, sizes["n"]), (*sequence, output)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """Give the states' and the input's."""
        return lstm_types(inputs)

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Check which optional operands go together, clips, and the quantisation of integers."""
        present = present_operands(self, inputs)
        require_whole_parts(present)
        require_clips(self)
        if not inputs[0].data_type.is_quantized:
            return
        require(
            self.activation is RecurrentActivation.TANH,
            "the activation cannot be computed in integers",
            expected="TANH",
            actual=self.activation.name,
        )
        normalizes = "forget_layer_norm_weights" in present
        scales = intermediate_scales(present) if normalizes else ()
        require_integer_lstm(self, inputs, outputs, ["hidden_state_scale", *scales])
