"""Operations that carry a state from one execution to the next."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from armpy.ops.operation import Operand, Operation, TypeRule, require, rule
from armpy.tensor import Dimension, Shape, TensorInfo
from armpy.types import DataType

__all__ = ["RecurrentActivation", "Svdf", "UnidirectionalSequenceLstm"]

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
    """Filter the input, remember the results, and filter what is remembered.

    Attributes
    ----------
    rank : int
        How many filters are summed per unit.
    activation : RecurrentActivation
        Of the output. The integer kernel applies none; its clamp is the output's range.
    shifts_state_first : bool
        Whether the memory moves on before the newest entry is written (TFLite), so that
        `state_out` ends with it, or after the output is computed (NNAPI), so that
        `state_out` ends with a 0 that the next execution overwrites.

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
    activation: RecurrentActivation = RecurrentActivation.NONE
    shifts_state_first: bool = True

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
        sizes = _bind_sizes(self, inputs, ("bi", "fi", "fm", "u", "bs"))
        filters, memory = sizes["f"], sizes["m"]
        if filters is not None:
            require(
                filters % self.rank == 0,
                "the filters do not split into units",
                expected=f"a multiple of {self.rank} filters",
                actual=filters,
            )
            _bind_size(sizes, "u", filters // self.rank, "bias")
            if memory is not None:
                _bind_size(sizes, "s", filters * memory, "state_in")
        return (sizes["b"], sizes["s"]), (sizes["b"], sizes.get("u"))

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """Give the state's and the input's."""
        return inputs[4].data_type, inputs[0].data_type

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """One scale per tensor, a state that keeps its quantisation, a clamp as activation."""
        if not inputs[0].data_type.is_quantized:
            return
        _check_quantized(self, inputs)
        _check_same_quantization(inputs[4], outputs[0], "state_in and state_out")
        require(
            self.activation not in (RecurrentActivation.TANH, RecurrentActivation.SIGMOID),
            "the activation cannot be computed in integers",
            expected="an activation that clamps",
            actual=self.activation.name,
        )


_GATE_WEIGHTS = tuple(
    Operand(f"{source}_to_{gate}_weights", optional=gate == "input", ranks=(2,))
    for source in ("input", "recurrent")
    for gate in ("input", "forget", "cell", "output")
)
_LSTM_INPUTS = (
    Operand("input", ranks=(3,)),
    *_GATE_WEIGHTS,
    Operand("cell_to_input_weights", optional=True, ranks=(1,)),
    Operand("cell_to_forget_weights", optional=True, ranks=(1,)),
    Operand("cell_to_output_weights", optional=True, ranks=(1,)),
    Operand("input_gate_bias", optional=True, ranks=(1,)),
    Operand("forget_gate_bias", ranks=(1,)),
    Operand("cell_bias", ranks=(1,)),
    Operand("output_gate_bias", ranks=(1,)),
    Operand("projection_weights", optional=True, ranks=(2,)),
    Operand("projection_bias", optional=True, ranks=(1,)),
    Operand("output_state_in", ranks=(2,)),
    Operand("cell_state_in", ranks=(2,)),
    Operand("input_layer_norm_weights", optional=True, ranks=(1,)),
    Operand("forget_layer_norm_weights", optional=True, ranks=(1,)),
    Operand("cell_layer_norm_weights", optional=True, ranks=(1,)),
    Operand("output_layer_norm_weights", optional=True, ranks=(1,)),
)
# One letter per axis: batch, time, input size, cells (n), output size.
_LSTM_AXES = ("ni",) * 4 + ("no",) * 4 + ("n",) * 7 + ("on", "o", "bo", "bn") + ("n",) * 4
_INDEX = {operand.name: index for index, operand in enumerate(_LSTM_INPUTS)}
_OUTPUT_STATE, _CELL_STATE = _INDEX["output_state_in"], _INDEX["cell_state_in"]


def _lstm_rule(
    data: DataType, weights: object, peephole: object, bias: object, cell: DataType
) -> TypeRule:
    """Type rule of an LSTM; layer normalisation weights have the peephole weights' type."""
    columns = (data, *(weights,) * 8, *(peephole,) * 3, *(bias,) * 4, weights, bias, data, cell)
    return rule((*columns, peephole), (data, cell, data))  # type: ignore[arg-type]  # TypeSpecs


@dataclass(frozen=True, slots=True)
class UnidirectionalSequenceLstm(Operation):
    """Run a long short-term memory over a sequence.

    Attributes
    ----------
    activation : RecurrentActivation
        Of the candidate and of the cell state on its way out; integers need TANH.
    cell_clip, projection_clip : float
        Limits of the absolute values of the cell state and of the projection; 0 for none.
    time_major : bool
        Whether the input's and output's first axis is time, not batch.
    input_intermediate_scale, forget_intermediate_scale, cell_intermediate_scale, \
output_intermediate_scale : float
        Of the gates ahead of layer normalisation, for integers only. Not used without
        layer normalisation.
    hidden_state_scale : float
    hidden_state_zero_point : int
        Of what the output gate lets through, ahead of the projection, for integers only.
        Without a projection this is the output's quantisation.

    Notes
    -----
    input (b, t, i), or (t, b, i) if time-major; input_to_*_weights (n, i);
    recurrent_to_*_weights (n, o); cell_to_*_weights, biases and layer normalisation
    weights (n); projection_weights (o, n); projection_bias (o); output_state (b, o);
    cell_state (b, n); output as input with o instead of i. Without a projection o is n.

    Without the input gate's operands the input gate is one minus the forget gate. Peephole
    (cell_to_*) and layer normalisation weights are there for all gates or for none (never
    for the missing input gate; the peephole never for the cell gate).

    The states are ordinary operands: the caller feeds back what came out. A quantised cell
    state has a power of two as its scale, 2**-15 to 2**-9.

    References
    ----------
    Arm NN UnidirectionalSequenceLstm; NNAPI and TFLite UNIDIRECTIONAL_SEQUENCE_LSTM;
    Sak et al., "Long Short-Term Memory Recurrent Neural Network Architectures for Large
    Scale Acoustic Modeling", 2014.
    """

    activation: RecurrentActivation = RecurrentActivation.TANH
    cell_clip: float = 0.0
    projection_clip: float = 0.0
    time_major: bool = False
    input_intermediate_scale: float = 0.0
    forget_intermediate_scale: float = 0.0
    cell_intermediate_scale: float = 0.0
    output_intermediate_scale: float = 0.0
    hidden_state_scale: float = 0.0
    hidden_state_zero_point: int = 0

    inputs: ClassVar[tuple[Operand, ...]] = _LSTM_INPUTS
    outputs: ClassVar[tuple[Operand, ...]] = (
        Operand("output_state_out"),
        Operand("cell_state_out"),
        Operand("output"),
    )
    type_rules: ClassVar[tuple[TypeRule, ...]] = (
        _lstm_rule(*(DataType.FLOAT32,) * 5),
        _lstm_rule(*(DataType.FLOAT16,) * 5),
        _lstm_rule(
            DataType.QASYMM_S8,
            _S8_WEIGHTS,
            DataType.QSYMM_S16,
            DataType.SIGNED32,
            DataType.QSYMM_S16,
        ),
    )

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """(b, o), (b, n), and the input's shape with o at its end."""
        axes = "tbi" if self.time_major else "bti"
        sizes = _bind_sizes(self, inputs, (axes, *_LSTM_AXES))
        if not _has(inputs, "projection_weights"):
            _bind_size(sizes, "n", sizes["o"], "recurrent_to_output_weights")
            _bind_size(sizes, "o", sizes["n"], "recurrent_to_output_weights")
        batch, output = sizes["b"], sizes["o"]
        sequence = tuple(sizes[axis] for axis in axes[:2])
        return (batch, output), (batch, sizes["n"]), (*sequence, output)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """Give the states' and the input's."""
        return (
            inputs[_OUTPUT_STATE].data_type,
            inputs[_CELL_STATE].data_type,
            inputs[0].data_type,
        )

    def validate(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Which optional operands go together, clips, and the quantisation of integers."""
        _check_presence(inputs)
        for name in ("cell_clip", "projection_clip"):
            clip = getattr(self, name)
            require(clip >= 0, f"the {name} is negative", expected="0 or more", actual=clip)
        if inputs[0].data_type.is_quantized:
            _check_quantized(self, inputs)
            self._check_integers(inputs, outputs)

    def _check_integers(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Check what only the integer kernel asks for."""
        require(
            self.activation is RecurrentActivation.TANH,
            "the activation cannot be computed in integers",
            expected="TANH",
            actual=self.activation.name,
        )
        output_state, cell_state = inputs[_OUTPUT_STATE], inputs[_CELL_STATE]
        _check_same_quantization(output_state, outputs[0], "output_state_in and output_state_out")
        _check_same_quantization(output_state, outputs[2], "output_state_in and output")
        _check_same_quantization(cell_state, outputs[1], "cell_state_in and cell_state_out")
        exponent = math.log2(cell_state.scale)
        require(
            abs(exponent - round(exponent)) < 1e-3 and -15 <= round(exponent) <= -9,
            "the cell state's scale cannot be used",
            expected="a power of two from 2**-15 to 2**-9",
            actual=cell_state.scale,
        )
        needed = ["hidden_state_scale"]
        if _has(inputs, "forget_layer_norm_weights"):
            gates = ("input", "forget", "cell", "output")
            needed += [
                f"{gate}_intermediate_scale"
                for gate in gates
                if _has(inputs, f"{gate}_layer_norm_weights")
            ]
        for name in needed:
            scale = getattr(self, name)
            require(
                0 < scale < math.inf,
                f"the {name} cannot be used",
                expected="a positive finite number",
                actual=scale,
            )


def _has(inputs: Sequence[TensorInfo | None], name: str) -> bool:
    """Whether an optional operand of an LSTM is there."""
    index = _INDEX[name]
    return index < len(inputs) and inputs[index] is not None


def _check_presence(inputs: Sequence[TensorInfo]) -> None:
    """Check which optional operands of an LSTM go together."""
    has_input_gate = _has(inputs, "input_to_input_weights")
    _require_together(inputs, has_input_gate, "recurrent_to_input_weights", "input_gate_bias")
    has_peephole = _has(inputs, "cell_to_forget_weights")
    _require_together(inputs, has_peephole, "cell_to_output_weights")
    _require_together(inputs, has_peephole and has_input_gate, "cell_to_input_weights")
    normalizes = _has(inputs, "forget_layer_norm_weights")
    _require_together(inputs, normalizes, "cell_layer_norm_weights", "output_layer_norm_weights")
    _require_together(inputs, normalizes and has_input_gate, "input_layer_norm_weights")
    if not _has(inputs, "projection_weights"):
        _require_together(inputs, False, "projection_bias")


def _require_together(inputs: Sequence[TensorInfo], expected: bool, *names: str) -> None:
    """Check that optional operands are there, or not there, as others are."""
    for name in names:
        require(
            _has(inputs, name) == expected,
            f"{name} is {'missing' if expected else 'there without its gate or its companions'}",
            fix="The input gate's, the peephole's and the layer normalisation's operands are "
            "each given together or not at all",
        )


def _bind_sizes(
    operation: Operation, inputs: Sequence[TensorInfo], axes: Sequence[str]
) -> dict[str, Dimension]:
    """Sizes by axis letter, checked to be the same in every operand.

    Operands have one string each, with one letter per axis.
    """
    sizes: dict[str, Dimension] = {}
    for index, (info, letters) in enumerate(zip(inputs, axes, strict=False)):
        shape = info.shape or () if info is not None else ()
        for letter, dim in zip(letters, shape, strict=False):
            _bind_size(sizes, letter, dim, operation.input_name(index))
    return sizes


def _bind_size(sizes: dict[str, Dimension], letter: str, dim: Dimension, name: str) -> None:
    """Enter one more observation of an axis."""
    known = sizes.get(letter)
    require(
        known is None or dim is None or known == dim,
        f"the size of {name} does not fit the other operands",
        expected=str(known),
        actual=dim,
    )
    sizes[letter] = dim if known is None else known


def _check_quantized(operation: Operation, inputs: Sequence[TensorInfo]) -> None:
    """Check that every quantised operand has one scale."""
    for index, info in enumerate(inputs):
        if info is not None and info.data_type.is_quantized:
            require(
                info.quantization is not None and not info.has_per_axis_quantization,
                f"{operation.input_name(index)} cannot be used as it is quantised",
                expected="one scale",
                actual="scales per axis" if info.quantization else "none",
            )


def _check_same_quantization(first: TensorInfo, second: TensorInfo, names: str) -> None:
    """Check that two tensors that hold the same stored elements mean the same by them."""
    require(
        math.isclose(first.scale, second.scale, rel_tol=1e-6)
        and first.zero_point == second.zero_point,
        f"{names} are quantised differently",
        expected=f"scale {first.scale:g} and zero point {first.zero_point}",
        actual=f"{second.scale:g} and {second.zero_point}",
    )
