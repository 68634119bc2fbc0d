"""Svdf and UnidirectionalSequenceLstm against LiteRT's reference kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from armpy.ops import RecurrentActivation, Svdf, UnidirectionalSequenceLstm
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_testing.litert_oracle import litert_or_skip
from tests.differential.recurrent_case import ACTIVATIONS, Array, Case, Draw, compare, zeros

NUM_CASES = 200


def svdf_float(draw: Draw) -> Case:
    """Return a random float Svdf."""
    batch, size, memory, rank, units = (draw.size(n) for n in (3, 9, 6, 3, 5))
    filters = units * rank
    activation = list(ACTIVATIONS)[draw.size(5) - 1]
    operands = {
        "input": draw.floats(batch, size),
        "weights_feature": draw.floats(filters, size),
        "weights_time": draw.floats(filters, memory),
        "state_in": zeros(TensorInfo((batch, memory * filters), DataType.FLOAT32)),
    }
    if draw.chance():
        operands["bias"] = draw.floats(units)
    return Case(
        Svdf(rank, activation),
        "SVDF",
        {"rank": rank, "fused_activation_function": ACTIVATIONS[activation]},
        operands,
        [TensorInfo((batch, units), DataType.FLOAT32)],
        ("state_in",),
    )


def svdf_integer(draw: Draw) -> Case:
    """Return a random Svdf with 8-bit activations and a 16-bit state."""
    batch, size, memory, rank, units = (draw.size(n) for n in (3, 20, 9, 3, 5))
    filters = units * rank
    scale, feature, time = draw.scale(0.01, 0.1), draw.scale(1e-3, 1e-2), draw.scale(1e-5, 1e-4)
    state = draw.scale(0.5, 2) * scale * feature * 128 * 128 * size**0.5 / 32768
    spread = state * time * 2e4 * 2e4 * (memory * rank) ** 0.5
    state_info = TensorInfo(
        (batch, memory * filters),
        DataType.QSYMM_S16,
        Quantization.per_tensor(float(np.float32(state))),
    )
    output = Quantization.per_tensor(float(np.float32(spread / 100)), draw.zero_point())
    operands = {
        "input": draw.integers(
            DataType.QASYMM_S8, scale, batch, size, zero_point=draw.zero_point()
        ),
        "weights_feature": draw.integers(DataType.QASYMM_S8, feature, filters, size),
        "weights_time": draw.integers(DataType.QSYMM_S16, time, filters, memory),
        "state_in": zeros(state_info),
    }
    if draw.chance():
        operands["bias"] = draw.bias(10**6, units)
    return Case(
        Svdf(rank, RecurrentActivation.RELU),
        "SVDF",
        {"rank": rank, "fused_activation_function": "RELU"},
        operands,
        [TensorInfo((batch, units), DataType.QASYMM_S8, output)],
        ("state_in",),
    )


@dataclass
class LstmShape:
    """Random sizes and variant of an LSTM."""

    draw: Draw

    def __post_init__(self) -> None:
        draw = self.draw
        self.batch, self.time, self.size, self.cells = (draw.size(n) for n in (3, 4, 7, 9))
        self.has_projection, self.has_peephole = draw.chance(), draw.chance()
        self.has_input_gate, self.normalizes = draw.chance(), draw.chance()
        self.time_major = draw.chance()
        self.outputs = draw.size(self.cells) if self.has_projection else self.cells
        self.cell_clip = float(draw.rng.choice([0.0, 0.5, 3.0]))
        self.projection_clip = float(draw.rng.choice([0.0, 0.3]))

    @property
    def gates(self) -> list[str]:
        """Names of the gates that have weights."""
        return ["input", "forget", "cell", "output"][not self.has_input_gate :]

    def sequence(self, features: int) -> tuple[int, int, int]:
        """Return the shape of the input or output."""
        first, second = self.batch, self.time
        return (second, first, features) if self.time_major else (first, second, features)

    def weight_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the weights that this variant has."""
        shapes: dict[str, tuple[int, ...]] = {}
        for gate in self.gates:
            shapes[f"input_to_{gate}_weights"] = (self.cells, self.size)
            shapes[f"recurrent_to_{gate}_weights"] = (self.cells, self.outputs)
            bias = "cell_bias" if gate == "cell" else f"{gate}_gate_bias"
            shapes[bias] = (self.cells,)
            if self.has_peephole and gate != "cell":
                shapes[f"cell_to_{gate}_weights"] = (self.cells,)
            if self.normalizes:
                shapes[f"{gate}_layer_norm_weights"] = (self.cells,)
        if self.has_projection:
            shapes["projection_weights"] = (self.outputs, self.cells)
            if self.draw.chance():
                shapes["projection_bias"] = (self.outputs,)
        return shapes

    def case(
        self,
        operands: dict[str, tuple[TensorInfo, Array]],
        output: TensorInfo,
        activation: RecurrentActivation = RecurrentActivation.TANH,
        intermediates: list[tuple[float, int]] | None = None,
    ) -> Case:
        """Return the case for the given operands."""
        scales = intermediates or [(0.0, 0)] * 5
        first, second, third, fourth = (scale for scale, _ in scales[:4])
        operation = UnidirectionalSequenceLstm(
            activation,
            self.cell_clip,
            self.projection_clip,
            self.time_major,
            first,
            second,
            third,
            fourth,
            *scales[4],
        )
        options = {
            "fused_activation_function": ACTIVATIONS[activation],
            "cell_clip": self.cell_clip,
            "proj_clip": self.projection_clip,
            "time_major": self.time_major,
        }
        states = ("output_state_in", "cell_state_in")
        code = "UNIDIRECTIONAL_SEQUENCE_LSTM"
        return Case(operation, code, options, operands, [output], states, intermediates or [])


def lstm_float(draw: Draw) -> Case:
    """Return a random float LSTM."""
    shape = LstmShape(draw)
    operands = {name: draw.floats(*dims) for name, dims in shape.weight_shapes().items()}
    operands["input"] = draw.floats(*shape.sequence(shape.size))
    for name, size in (("output_state_in", shape.outputs), ("cell_state_in", shape.cells)):
        operands[name] = zeros(TensorInfo((shape.batch, size), DataType.FLOAT32))
    # With NONE LiteRT lets the candidate out instead of the cell state: its activation
    # leaves the destination, the candidate's scratch memory, as it was. armpy does not.
    activation = list(ACTIVATIONS)[draw.size(4)]
    output = TensorInfo(shape.sequence(shape.outputs), DataType.FLOAT32)
    return shape.case(operands, output, activation)


def lstm_integer(draw: Draw) -> Case:
    """Return a random integer LSTM."""
    shape = LstmShape(draw)
    operands = {}
    for name, dims in shape.weight_shapes().items():
        if name.endswith("bias"):
            operands[name] = draw.bias(20000, *dims)
        elif len(dims) == 1:
            operands[name] = draw.integers(DataType.QSYMM_S16, draw.scale(1e-5, 1e-4), *dims)
        else:
            operands[name] = draw.integers(DataType.QASYMM_S8, draw.scale(2e-3, 1e-2), *dims)
    operands["input"] = draw.integers(
        DataType.QASYMM_S8,
        draw.scale(4e-3, 2e-2),
        *shape.sequence(shape.size),
        zero_point=draw.zero_point(),
    )
    state = Quantization.per_tensor(draw.scale(4e-3, 1e-2), draw.zero_point())
    cell = Quantization.per_tensor(2.0 ** int(draw.rng.integers(-15, -8)))
    batch = shape.batch
    operands["output_state_in"] = zeros(
        TensorInfo((batch, shape.outputs), DataType.QASYMM_S8, state)
    )
    operands["cell_state_in"] = zeros(TensorInfo((batch, shape.cells), DataType.QSYMM_S16, cell))
    output = TensorInfo(shape.sequence(shape.outputs), DataType.QASYMM_S8, state)
    intermediates = [(draw.scale(1e-4, 1e-3), 0) for _ in range(4)]
    hidden = (draw.scale(4e-3, 1e-2), draw.zero_point())
    if not shape.has_projection:
        hidden = (state.scale, state.zero_point)
    return shape.case(operands, output, intermediates=[*intermediates, hidden])


@pytest.mark.slow
@pytest.mark.parametrize("make", [svdf_float, svdf_integer, lstm_float, lstm_integer])
def test_random_instances_agree_with_litert(make: Any) -> None:  # Any: the four functions above
    """Integers are equal, floats within the float tolerance of the largest element."""
    litert_or_skip()
    for seed in range(NUM_CASES):
        case = make(Draw(seed))
        try:
            compare(case, invocations=1 + seed % 3)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {case.operation}\n{error}") from error
