"""Operations that carry a state from one execution to the next."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.ops.operand_checks import (
    bind_size,
    bind_sizes,
    require_one_scale,
    require_same_quantization,
)
from armpy.ops.operation import Operand, Operation, TypeRule, require, rule
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType

__all__ = ["RecurrentActivation", "Rnn", "Svdf", "UnidirectionalSequenceRnn"]

_S8_WEIGHTS = (DataType.QASYMM_S8, DataType.QSYMM_S8)


class RecurrentActivation(enum.Enum):
    """Activation of recurrent operations; numbers are those of Arm NN, NNAPI and TFLite."""

    NONE = 0
    RELU = 1
    RELU1 = 2
    RELU6 = 3
    TANH = 4
    SIGMOID = 6


@dataclass(frozen=True, slots=True)
class Svdf(Operation):
    """Filter the input, remember the results, and filter the memory.

    Notes
    -----
    input (b, i); weights_feature (f, i); weights_time (f, m); bias (f / rank); state_in and
    state_out (b, f * m), the oldest entry of each filter first; output (b, f / rank). The
    state is symmetric if it has 16 bits. A quantised bias has the scale
    ``state scale * weights_time scale``.

    References
    ----------
    NNAPI and TFLite SVDF; Nakkiran et al., "Compressing Deep Neural Networks using a
    Rank-Constrained Topology", 2015.
    """

    rank: int = 1
    """Number of filters that are summed per unit."""
    activation: RecurrentActivation = RecurrentActivation.NONE
    """Activation of the output; integers have none but the output's range."""
    shifts_state_first: bool = True
    """Whether the memory moves before the newest entry is written (TFLite), so that `state_out`
    ends with it, or after the output is computed (NNAPI), so that it ends with a 0 that the next
    execution overwrites.
    """

    inputs: ClassVar[tuple[Operand, ...]] = (
        Operand("input", ranks=(2,)),
        Operand("weights_feature", ranks=(2,)),
        Operand("weights_time", ranks=(2,)),
        Operand("bias", optional=True, ranks=(1,)),
        Operand("state_in", ranks=(2,)),
    )
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("state_out"), Operand("output"))
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        rule((DataType.FLOAT32,) * 5, (DataType.FLOAT32,) * 2),
        rule((DataType.FLOAT16,) * 5, (DataType.FLOAT16,) * 2),
        *(
            rule(
                (DataType.QASYMM_S8, _S8_WEIGHTS, time, DataType.SIGNED32, state),
                (state, DataType.QASYMM_S8),
            )
            for time, state in (
                (DataType.QSYMM_S16, DataType.QSYMM_S16),
                (_S8_WEIGHTS, DataType.QASYMM_S8),
                (_S8_WEIGHTS, DataType.QSYMM_S8),
            )
        ),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(b, f * m) and (b, f / rank)."""
        require(self.rank >= 1, "the rank is too small", expected="1 or more", actual=self.rank)
        sizes = bind_sizes(self, inputs, ("bi", "fi", "fm", "u", "bs"))
        filters, memory = sizes["f"], sizes["m"]
        if filters is not None:
            require(
                filters % self.rank == 0,
                "the filters do not split into units",
                expected=f"a multiple of {self.rank} filters",
                actual=filters,
            )
            bind_size(sizes, "u", filters // self.rank, "bias")
            if memory is not None:
                bind_size(sizes, "s", filters * memory, "state_in")
        return (sizes["b"], sizes["s"]), (sizes["b"], sizes.get("u"))

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """Give the state's and the input's."""
        return inputs[4].data_type, inputs[0].data_type

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """One scale per tensor, a state that keeps its quantisation, a clamp as activation."""
        if not inputs[0].data_type.is_quantized:
            return
        require_one_scale(self, inputs)
        require_same_quantization(inputs[4], outputs[0], "state_in and state_out")
        require(
            self.activation not in (RecurrentActivation.TANH, RecurrentActivation.SIGMOID),
            "the activation cannot be computed in integers",
            expected="an activation that clamps",
            actual=self.activation.name,
        )


def rnn_operands(prefix: str = "") -> tuple[Operand, ...]:
    """Weights and state of one recurrent network, as NNAPI and TFLite order them."""
    return (
        Operand(f"{prefix}weights", ranks=(2,)),
        Operand(f"{prefix}recurrent_weights", ranks=(2,)),
        Operand(f"{prefix}bias", ranks=(1,)),
        Operand(f"{prefix}hidden_state_in", ranks=(2,)),
    )


RNN_AXES = ("ni", "nn", "n", "bn")
_RNN_RULES = tuple(rule((t,), (t, t)) for t in (DataType.FLOAT32, DataType.FLOAT16))


@dataclass(frozen=True, slots=True)
class Rnn(Operation):
    """Run a fully connected recurrent network for one time step.

    Notes
    -----
    input (b, i); weights (n, i); recurrent_weights (n, n); bias (n); hidden_state (b, n);
    output (b, n), equal to the new state: the activation of ``input @ weights.T +
    hidden_state @ recurrent_weights.T + bias``, accumulated in float32.

    References
    ----------
    NNAPI and TFLite RNN.
    """

    activation: RecurrentActivation = RecurrentActivation.NONE

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input", ranks=(2,)), *rnn_operands())
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("hidden_state_out"), Operand("output"))
    type_rules: ClassVar[tuple[TypeRule, ...]] = _RNN_RULES

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(b, n) twice."""
        sizes = bind_sizes(self, inputs, ("bi", *RNN_AXES))
        return ((sizes["b"], sizes["n"]),) * 2


@dataclass(frozen=True, slots=True)
class UnidirectionalSequenceRnn(Operation):
    """Run a fully connected recurrent network over a sequence.

    Notes
    -----
    input (b, t, i), or (t, b, i) if time-major; weights and state as of `Rnn`; output as
    input with n instead of i. The new state is that after the last time step.

    References
    ----------
    NNAPI and TFLite UNIDIRECTIONAL_SEQUENCE_RNN.
    """

    activation: RecurrentActivation = RecurrentActivation.NONE
    time_major: bool = False
    """Whether the input's and output's first axis is time, not batch."""

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input", ranks=(3,)), *rnn_operands())
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("hidden_state_out"), Operand("output"))
    type_rules: ClassVar[tuple[TypeRule, ...]] = _RNN_RULES

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(b, n), and the input's shape with n at its end."""
        axes = "tbi" if self.time_major else "bti"
        sizes = bind_sizes(self, inputs, (axes, *RNN_AXES))
        sequence = tuple(sizes[axis] for axis in axes[:2])
        return (sizes["b"], sizes["n"]), (*sequence, sizes["n"])
