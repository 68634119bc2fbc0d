"""QLstm and QuantizedLstm: hand-worked values, and a formula in real numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from armpy.ops import QLstm, QuantizedLstm
from armpy.ops.operation import Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.run_operation import run_operation, tensor

Operand = tuple[TensorInfo, npt.NDArray[Any]]  # Any: every element type occurs

S8, S16, WEIGHTS = DataType.QASYMM_S8, DataType.QSYMM_S16, DataType.QSYMM_S8
SCALES = {f"{gate}_intermediate_scale": 2.0**-12 for gate in ("input", "forget", "cell", "output")}
QLSTM = QLstm(hidden_state_scale=1 / 128).with_attributes(**SCALES)


def one_cell(cell_state: int, output_zero_point: int = 0) -> dict[str, Operand]:
    """One cell without input gate whose gates are all 1/2 and whose candidate is 0."""
    operands: dict[str, Operand] = {
        "input": tensor([[5]], S8, 1 / 64, 3),
        "output_state_in": tensor([[7]], S8, 1 / 128, output_zero_point),
        "cell_state_in": tensor([[cell_state]], S16, 2.0**-11),
    }
    for gate in ("forget", "cell", "output"):
        operands[f"input_to_{gate}_weights"] = tensor([[0]], WEIGHTS, 1 / 64)
        operands[f"recurrent_to_{gate}_weights"] = tensor([[0]], WEIGHTS, 1 / 64)
        bias = "cell_bias" if gate == "cell" else f"{gate}_gate_bias"
        operands[bias] = tensor([0], DataType.SIGNED32)
    return operands


def run_qlstm(
    operation: Operation, operands: dict[str, Operand], constants: bool = True
) -> list[int]:
    """Run one cell; returns output state, cell state and output."""
    operand_list = [operands.get(operand.name) for operand in QLstm.inputs]
    states = [operands[name][0] for name in ("output_state_in", "cell_state_in")]
    weights = [i for i in range(len(operand_list)) if i not in (0, 18, 19)] if constants else []
    outputs = run_operation(operation, operand_list, [*states, states[0]], constants=weights)
    return [output.item() for output in outputs]


@pytest.mark.parametrize("constants", [True, False])
def test_qlstm_halves_the_cell_state(constants: bool) -> None:
    # tanh(1000 / 2048) / 2 is 28.98 / 128.
    assert run_qlstm(QLSTM, one_cell(2000), constants) == [29, 1000, 29]


def test_qlstm_weighs_input_and_output_state_without_their_zero_points() -> None:
    # (5 - 3) * 50 / (64 * 64) and (7 - 4) * 100 / (128 * 64), half of their tanh taken.
    operands = one_cell(0, output_zero_point=4)
    operands["input_to_cell_weights"] = tensor([[50]], WEIGHTS, 1 / 64)
    operands["recurrent_to_cell_weights"] = tensor([[100]], WEIGHTS, 1 / 64)
    expected = math.tanh(100 / 4096 + 300 / 8192) / 2 * 2048
    assert run_qlstm(QLSTM, operands)[1] == pytest.approx(expected, abs=1.5)


def test_qlstm_has_no_bias_without_layer_normalization() -> None:
    operands = one_cell(2000)
    operands["cell_bias"] = tensor([4096], DataType.SIGNED32)
    assert run_qlstm(QLSTM, operands)[1] == 1000


def test_qlstm_bias_comes_after_layer_normalization() -> None:
    # One cell alone is its mean: the bias 1024 * 2048 is all there is, 2048 * 2**-15 a candidate
    # of 1/16 with 12 fraction bits is 256; half of tanh(1/16) is taken.
    operands = one_cell(0)
    for gate in ("forget", "cell", "output"):
        operands[f"{gate}_layer_norm_weights"] = tensor([1], S16, 2.0**-15)
    operands["cell_bias"] = tensor([1024 * 2048], DataType.SIGNED32)
    expected = math.tanh(1 / 16) / 2 * 2048
    assert run_qlstm(QLSTM, operands)[1] == pytest.approx(expected, abs=1.5)


def test_qlstm_clips_the_cell_state() -> None:
    # tanh(512 / 2048) / 2 is 15.67 / 128.
    operation = QLSTM.with_attributes(cell_clip=0.25)
    assert run_qlstm(operation, one_cell(2000)) == [16, 512, 16]


def test_qlstm_projects() -> None:
    # The hidden 29 / 128 times 64 / 64, plus 10 / 128.
    operands = one_cell(2000)
    operands["projection_weights"] = tensor([[64]], WEIGHTS, 1 / 64)
    operands["projection_bias"] = tensor([640], DataType.SIGNED32)
    assert run_qlstm(QLSTM, operands)[0] == 29 + 10


def test_qlstm_peephole_opens_the_output_gate() -> None:
    # The peephole adds 1000 / 2048 * 2 to the output gate: its sigmoid times tanh(0.488).
    operands = one_cell(2000)
    for gate, weight in (("forget", 0), ("output", 16384)):
        operands[f"cell_to_{gate}_weights"] = tensor([weight], S16, 2.0**-13)
    real = 1000 / 2048
    expected = 128 * math.tanh(real) / (1 + math.exp(-2 * real))
    assert run_qlstm(QLSTM, operands)[0] == pytest.approx(expected, abs=1)


def quantized_operands(
    rng: np.random.Generator, batch: int, size: int, cells: int
) -> list[Operand]:
    """Random operands of a QuantizedLstm."""
    u8 = DataType.QASYMM_U8

    def bytes_of(*shape: int) -> npt.NDArray[np.int64]:
        return rng.integers(0, 256, shape)

    return [
        tensor(bytes_of(batch, size), u8, 1 / 128, 128),
        *(tensor(bytes_of(cells, size), u8, 1 / 256, 100) for _ in range(4)),
        *(tensor(bytes_of(cells, cells), u8, 1 / 256, 100) for _ in range(4)),
        *(tensor(rng.integers(-30000, 30000, cells), DataType.SIGNED32) for _ in range(4)),
        tensor(rng.integers(-3000, 3000, (batch, cells)), S16, 2.0**-11),
        tensor(bytes_of(batch, cells), u8, 1 / 128, 128),
    ]


def real_step(operands: list[Operand], batch: int, cell: int) -> tuple[float, float]:
    """Cell state and output of one cell in real numbers."""
    real = [
        (array.astype(float) - info.zero_point) * (info.scale if info.quantization else 2.0**-15)
        for info, array in operands
    ]
    joined = [*real[0][batch], *real[14][batch]]
    sums = []
    for gate in range(4):
        row = [*real[5 + gate][cell], *real[1 + gate][cell]]  # recurrent weights come first
        products = (w * v for w, v in zip(row, joined, strict=True))
        sums.append(math.fsum(products) + real[9 + gate][cell])
    update, retained, passed = (1 / (1 + math.exp(-sums[i])) for i in (0, 1, 3))
    state = retained * real[13][batch, cell] + update * math.tanh(sums[2])
    return state, passed * math.tanh(state)


@pytest.mark.parametrize("seed", range(5))
def test_quantized_lstm_is_near_the_real_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    batch, size, cells = 2, 3, 4
    operands = quantized_operands(rng, batch, size, cells)
    outputs = [operands[13][0].with_shape(None), operands[14][0].with_shape(None)]
    cell_state, output = run_operation(QuantizedLstm(), operands, outputs)
    for b in range(batch):
        for n in range(cells):
            state, passed = real_step(operands, b, n)
            assert cell_state[b, n] / 2048 == pytest.approx(state, abs=3 / 2048)
            assert (int(output[b, n]) - 128) / 128 == pytest.approx(passed, abs=1.5 / 128)


def test_quantized_lstm_halves_the_cell_state() -> None:
    # Gates of 1/2, a candidate of 0: 1000 remain, and tanh(1000 / 2048) / 2 is 28.98 / 128.
    u8 = DataType.QASYMM_U8
    operands = [
        tensor([[200]], u8, 1 / 128, 128),
        *(tensor([[100]], u8, 1 / 256, 100) for _ in range(8)),
        *(tensor([0], DataType.SIGNED32) for _ in range(4)),
        tensor([[2000]], S16, 2.0**-11),
        tensor([[50]], u8, 1 / 128, 128),
    ]
    outputs = [operands[13][0], operands[14][0]]
    results = run_operation(QuantizedLstm(), operands, outputs)
    assert [result.item() for result in results] == [1000, 128 + 29]
