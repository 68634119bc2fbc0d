"""Recurrent operations that run over a sequence forwards and backwards."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.lstm_operands import (
    GATES,
    LAYER_NORM_AXES,
    STATE_AXES,
    WEIGHT_AXES,
    bind_cells_to_outputs,
    layer_norm_operands,
    require_clips,
    require_presence,
    require_whole_parts,
    state_operands,
    weight_operands,
)
from armpy.ops.operand_checks import bind_sizes, present_operands
from armpy.ops.operation import Operand, Operation, TypeRule, require, same
from armpy.ops.recurrent import RNN_AXES, RecurrentActivation, rnn_operands
from armpy.tensor import Dimension, Shape, TensorInfo
from armpy.types import DataType

__all__ = ["BidirectionalSequenceLstm", "BidirectionalSequenceRnn"]

_FORWARD, _BACKWARD = "forward_", "backward_"


def _aux_weight_operands(prefix: str) -> tuple[Operand, ...]:
    """Weights of the auxiliary input of one LSTM."""
    return tuple(
        Operand(f"{prefix}aux_to_{gate}_weights", optional=True, ranks=(2,)) for gate in GATES
    )


def _backward_axes(axes: Sequence[str], input_size: str = "i") -> tuple[str, ...]:
    """Axes of the backward direction: its own cells (m), outputs (p) and input size."""
    letters = str.maketrans({"n": "m", "o": "p", "i": input_size})
    return tuple(text.translate(letters) for text in axes)


@dataclass(frozen=True, slots=True)
class BidirectionalSequenceLstm(Operation):
    """Run two long short-term memories over a sequence, one of them from its end.

    Notes
    -----
    input (b, t, i), or (t, b, i) if time-major; weights, biases and states of each
    direction as of `UnidirectionalSequenceLstm`; output as input with the output size
    instead of i. The backward output has the input's order of time too.

    Without aux_to_* weights (n, a) the backward direction reads `aux_input` (b, t, a) in place of
    the input (parallel linking); with them both directions read both (cross linking).

    References
    ----------
    NNAPI and TFLite BIDIRECTIONAL_SEQUENCE_LSTM.
    """

    activation: RecurrentActivation = RecurrentActivation.TANH
    """Activation of the candidate and of the cell state on its way out."""
    cell_clip: float = 0.0
    projection_clip: float = 0.0
    """`cell_clip` and `projection_clip`: limits of the absolute cell state and projection; 0 for
    none.
    """
    merge_outputs: bool = False
    """Whether one output holds both directions along the last axis, forward first."""
    time_major: bool = False
    """Whether the input's and output's first axis is time, not batch."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input", ranks=(3,)),
        *weight_operands(_FORWARD),
        *weight_operands(_BACKWARD),
        *state_operands(_FORWARD),
        *state_operands(_BACKWARD),
        Operand("aux_input", optional=True, ranks=(3,)),
        *_aux_weight_operands(_FORWARD),
        *_aux_weight_operands(_BACKWARD),
        *layer_norm_operands(_FORWARD),
        *layer_norm_operands(_BACKWARD),
    )
    outputs: ClassVar[tuple[Operand, ...]] = (
        Operand("forward_output_state_out"),
        Operand("forward_cell_state_out"),
        Operand("backward_output_state_out"),
        Operand("backward_cell_state_out"),
        Operand("forward_output"),
        Operand("backward_output", optional=True),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = same(DataType.FLOAT32, DataType.FLOAT16)

    @property
    def num_outputs(self) -> int:
        """One less if both directions share an output."""
        return len(self.outputs) - self.merge_outputs

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """Two states per direction, then the outputs."""
        present = present_operands(self, inputs)
        time_axes = "tb" if self.time_major else "bt"
        backward_input = _backward_input_size(present, "forward_aux_to_output_weights")
        axes = (
            f"{time_axes}i",
            *WEIGHT_AXES,
            *_backward_axes(WEIGHT_AXES, backward_input),
            *STATE_AXES,
            *_backward_axes(STATE_AXES),
            f"{time_axes}a",
            *("na",) * 4,
            *("ma",) * 4,
            *LAYER_NORM_AXES,
            *_backward_axes(LAYER_NORM_AXES),
        )
        sizes = bind_sizes(self, inputs, axes)
        bind_cells_to_outputs(sizes, present, _FORWARD)
        bind_cells_to_outputs(sizes, present, _BACKWARD, ("m", "p"))
        batch = sizes["b"]
        states = tuple((batch, sizes[letter]) for letter in "onpm")
        return (*states, *_output_shapes(sizes, time_axes, "op", self.merge_outputs))

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Check which optional operands go together, and clips."""
        present = present_operands(self, inputs)
        has_aux_weights = "forward_aux_to_output_weights" in present
        _require_aux_input(present, has_aux_weights)
        for prefix in (_FORWARD, _BACKWARD):
            require_whole_parts(present, prefix)
            has_input_gate = f"{prefix}input_to_input_weights" in present
            for gate in GATES:
                expected = has_aux_weights and (gate != "input" or has_input_gate)
                require_presence(present, f"{prefix}aux_to_{gate}_weights", expected)
        require_clips(self)


@dataclass(frozen=True, slots=True)
class BidirectionalSequenceRnn(Operation):
    """Run two fully connected recurrent networks over a sequence, one of them from its end.

    Notes
    -----
    input (b, t, i), or (t, b, i) if time-major; weights and state of each direction as of
    `Rnn`; output as input with n instead of i. The backward output has the input's order of
    time too. `aux_input` and its weights (n, a) link layers as in
    `BidirectionalSequenceLstm`.

    References
    ----------
    NNAPI and TFLite BIDIRECTIONAL_SEQUENCE_RNN.
    """

    activation: RecurrentActivation = RecurrentActivation.NONE
    time_major: bool = False
    """Whether the input's and output's first axis is time, not batch."""
    merge_outputs: bool = False
    """Whether one output holds both directions along the last axis, forward first."""

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input", ranks=(3,)),
        *rnn_operands(_FORWARD),
        *rnn_operands(_BACKWARD),
        Operand("aux_input", optional=True, ranks=(3,)),
        Operand("forward_aux_weights", optional=True, ranks=(2,)),
        Operand("backward_aux_weights", optional=True, ranks=(2,)),
    )
    outputs: ClassVar[tuple[Operand, ...]] = (
        Operand("forward_hidden_state_out"),
        Operand("backward_hidden_state_out"),
        Operand("forward_output"),
        Operand("backward_output", optional=True),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = same(DataType.FLOAT32, DataType.FLOAT16)

    @property
    def num_outputs(self) -> int:
        """One less if both directions share an output."""
        return len(self.outputs) - self.merge_outputs

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """A state per direction, then the outputs."""
        present = present_operands(self, inputs)
        time_axes = "tb" if self.time_major else "bt"
        backward_input = _backward_input_size(present, "forward_aux_weights")
        axes = (
            f"{time_axes}i",
            *RNN_AXES,
            *_backward_axes(RNN_AXES, backward_input),
            f"{time_axes}a",
            "na",
            "ma",
        )
        sizes = bind_sizes(self, inputs, axes)
        states = tuple((sizes["b"], sizes[letter]) for letter in "nm")
        return (*states, *_output_shapes(sizes, time_axes, "nm", self.merge_outputs))

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Check which optional operands go together."""
        present = present_operands(self, inputs)
        has_aux_weights = "forward_aux_weights" in present
        require_presence(present, "backward_aux_weights", has_aux_weights)
        _require_aux_input(present, has_aux_weights)


def _backward_input_size(present: AbstractSet[str], aux_weights: str) -> str:
    """Letter of the size that the backward direction reads in place of the input."""
    is_parallel = "aux_input" in present and aux_weights not in present
    return "a" if is_parallel else "i"


def _require_aux_input(present: AbstractSet[str], has_aux_weights: bool) -> None:
    """Check that there is something to weigh."""
    require(
        "aux_input" in present or not has_aux_weights,
        "the auxiliary input is missing",
        expected="aux_input, as it has weights",
        actual="none",
    )


def _output_shapes(
    sizes: dict[str, Dimension], time_axes: str, letters: str, merged: bool
) -> tuple[Shape, ...]:
    """Shapes of the sequences that come out."""
    sequence = tuple(sizes[axis] for axis in time_axes)
    forward, backward = (sizes[letter] for letter in letters)
    if not merged:
        return (*sequence, forward), (*sequence, backward)
    both = None if forward is None or backward is None else forward + backward
    return ((*sequence, both),)
