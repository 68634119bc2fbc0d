"""Operations with states, against CpuRef, on every instruction set of this processor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from armpy_numba_acc.passes.support import support

from armpy import DataType, Model, Network, Quantization, Runtime, RuntimeOptions, TensorInfo, ops
from armpy.graph import Value
from armpy.ops.operation import Array, Operation

from .support import (
    ISA_NAMES,
    ISAS,
    check_against_reference,
    isas_of_this_test,
    random_array,
    run_compiled,
)

F32 = DataType.FLOAT32


def _info(
    shape: tuple[int, ...] | None,
    data_type: DataType = F32,
    scale: float = 0.0,
    zero_point: int = 0,
) -> TensorInfo:
    """A tensor, quantised if there is a scale."""
    quantization = Quantization.per_tensor(scale, zero_point) if scale else None
    return TensorInfo(shape, data_type, quantization=quantization)


def _check(
    operation: Operation,
    infos: Sequence[TensorInfo | None],
    constants: Mapping[int, Array],
    outputs: Sequence[TensorInfo],
    isa: str,
) -> None:
    """Compare one layer, whose inputs are constants where there are arrays."""
    network = Network()
    inputs = {}
    values: list[Value | None] = []
    for number, info in enumerate(infos):
        if info is None:
            values.append(None)
        elif number in constants:
            values.append(
                network.constant(
                    constants[number], data_type=info.data_type, quantization=info.quantization
                )
            )
        else:
            values.append(network.input(f"x{number}", info))
            inputs[f"x{number}"] = random_array(info, number)
    layer = network.add_layer(operation, values, outputs=outputs)
    for number, value in enumerate(layer.outputs):
        network.output(f"y{number}", value)
    check_against_reference(network, inputs, ISAS[ISA_NAMES.index(isa)])


@pytest.mark.sampled(13)
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("shifts_first", [True, False])
@pytest.mark.parametrize("activation", [ops.RecurrentActivation.RELU, ops.RecurrentActivation.TANH])
def test_svdf_filters_over_time_in_float32(
    activation: ops.RecurrentActivation, shifts_first: bool, isa: str
) -> None:
    for batch, size, filters, memory, rank in ((2, 5, 6, 3, 2), (1, 37, 4, 19, 1), (1, 3, 2, 1, 2)):
        infos = [
            _info((batch, size)),
            _info((filters, size)),
            _info((filters, memory)),
            _info((filters // rank,)),
            _info((batch, filters * memory)),
        ]
        constants = {number: random_array(infos[number], number) for number in (1, 2, 3)}
        operation = ops.Svdf(rank, activation, shifts_first)
        _check(operation, infos, constants, (), isa)


_STATES = {
    "16 bits": (_info(None, DataType.QSYMM_S16, 0.005), DataType.QSYMM_S16),
    "8 bits": (_info(None, DataType.QASYMM_S8, 0.7, -9), DataType.QSYMM_S8),
    "8 bits, symmetric": (_info(None, DataType.QSYMM_S8, 0.7), DataType.QASYMM_S8),
}
"""What a Svdf of integers may remember, and the type of the weights that filter it."""


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("shifts_first", [True, False])
@pytest.mark.parametrize("kind", _STATES)
def test_svdf_filters_over_time_in_integers(kind: str, shifts_first: bool, isa: str) -> None:
    state, time_type = _STATES[kind]
    is_wide = state.data_type is DataType.QSYMM_S16
    for batch, size, filters, memory, rank in ((2, 5, 6, 3, 2), (1, 37, 4, 19, 1), (1, 3, 2, 1, 2)):
        infos: list[TensorInfo | None] = [
            _info((batch, size), DataType.QASYMM_S8, 0.03, -7),
            _info((filters, size), DataType.QSYMM_S8, 0.02),
            _info((filters, memory), time_type, 0.001),
            _info((filters // rank,), DataType.SIGNED32),
            replace(state, shape=(batch, filters * memory)),
        ]
        constants = {
            n: random_array(info, n) for n, info in enumerate(infos) if info and n in (1, 2)
        }
        if is_wide:
            constants[2] //= 64
        constants[3] = np.arange(filters // rank, dtype=np.int32) * 100
        if memory == 1:  # a bias may be left out
            infos[3] = None
        output = _info(None, DataType.QASYMM_S8, 0.3, 5)
        operation = ops.Svdf(rank, ops.RecurrentActivation.RELU, shifts_first)
        _check(operation, infos, constants, (state, output), isa)


@pytest.mark.slow
def test_a_keyword_network_that_remembers_bytes_is_one_part() -> None:
    info = _info((1, 32), DataType.QASYMM_S8, 0.05, 3)
    state = _info((1, 32 * 8), DataType.QASYMM_S8, 0.1, -5)
    random, network = np.random.default_rng(0), Network()
    value = network.input("x", info)
    for number in range(7):
        remembered = network.variable(f"state {number}", state)
        weights = [
            network.constant(
                random.integers(-127, 128, (32, size), np.int8),
                data_type=DataType.QSYMM_S8,
                quantization=Quantization.per_tensor(0.005),
            )
            for size in (32, 8)
        ]
        layer = network.add_layer(
            ops.Svdf(), [value, *weights, None, remembered], outputs=(state, info)
        )
        network.assign(remembered, layer.outputs[0])
        value = layer.outputs[1]
    network.output("y", value)
    steps = [random.integers(-128, 128, (1, 32), np.int8) for _ in range(12)]
    outputs = []
    for backend in ("NumbaAcc", "CpuRef"):
        options = RuntimeOptions(backends=[backend])
        with Model(network, runtime=Runtime(options)) as model:
            outputs.append(np.array([model(step) for step in steps]))
            assert model.placement is not None
            assert model.placement.num_partitions == 1
            assert model.placement.layers_by_backend == {backend: 7}
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert len(np.unique(outputs[0][-1])) > 16  # it neither dies out nor saturates


def _lstm_operands(
    batch: int,
    time: int,
    size: int,
    cells: int,
    outputs: int,
    parts: Sequence[str],
    time_major: bool,
) -> dict[str, tuple[int, ...]]:
    """Shapes by operand of an LSTM that has some of its parts."""
    gates = ["input", "forget", "cell", "output"][0 if "input" in parts else 1 :]
    shapes: dict[str, tuple[int, ...]] = {}
    shapes["input"] = (time, batch, size) if time_major else (batch, time, size)
    for gate in gates:
        shapes[f"input_to_{gate}_weights"] = (cells, size)
        shapes[f"recurrent_to_{gate}_weights"] = (cells, outputs)
        shapes["cell_bias" if gate == "cell" else f"{gate}_gate_bias"] = (cells,)
        if "peephole" in parts and gate != "cell":
            shapes[f"cell_to_{gate}_weights"] = (cells,)
        if "norm" in parts:
            shapes[f"{gate}_layer_norm_weights"] = (cells,)
    if "projection" in parts:
        shapes["projection_weights"] = (outputs, cells)
    if "projection bias" in parts:
        shapes["projection_bias"] = (outputs,)
    shapes["output_state_in"], shapes["cell_state_in"] = (batch, outputs), (batch, cells)
    return shapes


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize(
    ("parts", "activation", "outputs", "time_major"),
    [
        (("input",), "TANH", 20, False),
        ((), "SIGMOID", 20, True),
        (("input", "peephole", "norm", "projection", "projection bias"), "TANH", 7, False),
        (("peephole", "projection"), "RELU6", 18, True),
    ],
    ids=str,
)
def test_lstm_runs_over_time_in_float32(
    parts: Sequence[str], activation: str, outputs: int, time_major: bool, isa: str
) -> None:
    shapes = _lstm_operands(3, 4, 5, 20, outputs, parts, time_major)
    operation = ops.UnidirectionalSequenceLstm(
        ops.RecurrentActivation[activation], 0.9, 0.5 * ("norm" in parts), time_major
    )
    names = [operand.name for operand in operation.inputs]
    infos = [_info(shapes[name]) if name in shapes else None for name in names]
    constants = {
        number: random_array(info, number) * np.float32(0.5)
        for number, info in enumerate(infos)
        if info is not None and names[number] not in ("input", "output_state_in", "cell_state_in")
    }
    _check(operation, infos, constants, (), isa)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize(("parts", "time_major"), [(("input",), False), ((), True)], ids=str)
def test_lstm_runs_over_time_in_integers(parts: Sequence[str], time_major: bool, isa: str) -> None:
    shapes = _lstm_operands(3, 5, 9, 20, 20, parts, time_major)
    operation = ops.UnidirectionalSequenceLstm(
        cell_clip=10.0,
        time_major=time_major,
        hidden_state_scale=0.007,
        hidden_state_zero_point=4,
    )
    states = {
        "input": (DataType.QASYMM_S8, 0.02, -3),
        "output_state_in": (DataType.QASYMM_S8, 0.007, 4),
        "cell_state_in": (DataType.QSYMM_S16, 2.0**-11, 0),
    }
    infos: list[TensorInfo | None] = []
    constants: dict[int, Array] = {}
    for number, operand in enumerate(operation.inputs):
        name = operand.name
        if name not in shapes:
            infos.append(None)
        elif name in states:
            infos.append(_info(shapes[name], *states[name]))
        elif "bias" in name:
            info = _info(shapes[name], DataType.SIGNED32)
            infos.append(info)
            constants[number] = random_array(info, number) >> 18
        else:
            info = _info(shapes[name], DataType.QSYMM_S8, 0.01 + number / 1000)
            infos.append(info)
            constants[number] = random_array(info, number)
    outputs = [_info(None, *states[name]) for name in ("output_state_in", "cell_state_in")]
    _check(operation, infos, constants, (*outputs, outputs[0]), isa)


_DEPTH, _UNITS = 5, 20


def _gru(batch: int) -> tuple[ops.RecurrentSequence, list[TensorInfo | None], dict[int, Array]]:
    """A GRU that resets ahead of its product, run backwards over sequences of three lengths."""
    operation = ops.RecurrentSequence(ops.RecurrentCell.GRU, clip=2.0, is_reversed=True)
    rows = 3 * _UNITS
    infos: list[TensorInfo | None] = [
        _info((4, batch, _DEPTH)),
        _info((rows, _DEPTH)),
        _info((rows, _UNITS)),
        _info((rows,)),
        _info((rows,)),
        _info((batch,), DataType.SIGNED32),
        _info((batch, _UNITS)),
    ]
    by_number = {n: info for n, info in enumerate(infos) if info is not None}
    constants = {n: random_array(by_number[n], n) * np.float32(0.5) for n in range(1, 5)}
    return operation, infos, {**constants, 5: np.array([4, 1, 3], np.int32)[:batch]}


@pytest.mark.slow
@pytest.mark.parametrize("isa", ISA_NAMES)
def test_recurrent_sequences_run_over_time_in_float32(isa: str) -> None:
    operation, infos, constants = _gru(3)
    _check(operation, infos, constants, (), isa)


@pytest.mark.slow
def test_a_recurrent_sequence_has_the_same_bits_alone_and_in_a_batch() -> None:
    data, outputs = (
        [random_array(_info((4, 3, _DEPTH)), 7), random_array(_info((3, _UNITS)), 8)],
        [],
    )
    for batch in (3, 1):
        operation, infos, constants = _gru(batch)
        network = Network()
        values = [
            network.constant(constants[n]) if n in constants else network.input(f"x{n}", info)
            for n, info in enumerate(infos)
            if info is not None
        ]
        network.output("y", network.add_layer(operation, values).outputs[0])
        inputs = {"x0": data[0][:, :batch], "x6": data[1][:batch]}
        outputs.append(run_compiled(network, inputs, ISAS[0])["y"][:, :1])
    np.testing.assert_array_equal(outputs[0], outputs[1])


_FUNCTIONS = (
    (ops.RecurrentCell.LSTM, "HARD_SIGMOID SOFTSIGN SCALED_TANH"),
    (ops.RecurrentCell.LSTM, "SIGMOID TANH ELU"),
    (ops.RecurrentCell.GRU, "THRESHOLDED_RELU LEAKY_RELU"),
    (ops.RecurrentCell.GRU, "SOFTPLUS RELU"),
    (ops.RecurrentCell.RNN, "AFFINE"),
)


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize(("cell", "names"), _FUNCTIONS)
def test_gates_may_have_any_function(cell: ops.RecurrentCell, names: str) -> None:
    functions = tuple(ops.GateFunction[name] for name in names.split())
    parameters = (0.25,) * len(functions), (0.5,) * len(functions)
    operation = ops.RecurrentSequence(cell, functions, *parameters)
    shapes = ((4, 3, _DEPTH), (cell.num_gates * 20, _DEPTH), (cell.num_gates * 20, 20))
    infos = [_info(shape) for shape in shapes]
    constants = {n: random_array(infos[n], n) * np.float32(0.3) for n in (1, 2)}
    for isa in isas_of_this_test():
        _check(operation, infos, constants, (), isa.name)


def test_lengths_of_64_bits_are_refused() -> None:
    operation = ops.RecurrentSequence(ops.RecurrentCell.RNN)
    infos = [_info(shape) for shape in ((4, 3, 5), (20, 5), (20, 20))]
    weights = [replace(info, is_constant=True) for info in infos[1:]]
    lengths, state = _info((3,), DataType.SIGNED64), _info((3, 20))
    given = [infos[0], *weights, None, None, lengths]
    refusal = support(operation, given, [_info((4, 3, 20)), state])
    assert refusal.text == "sequence lengths of SIGNED64 are not supported"
