"""Networks with states, and sequences in a batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from armpy_numba_acc.passes.support import support

from armpy import DataType, Model, Network, Quantization, Runtime, RuntimeOptions, TensorInfo, ops
from armpy.ops.operation import Array

from .support import (
    ISAS,
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


def test_lengths_of_64_bits_are_refused() -> None:
    operation = ops.RecurrentSequence(ops.RecurrentCell.RNN)
    infos = [_info(shape) for shape in ((4, 3, 5), (20, 5), (20, 20))]
    weights = [replace(info, is_constant=True) for info in infos[1:]]
    lengths, state = _info((3,), DataType.SIGNED64), _info((3, 20))
    given = [infos[0], *weights, None, None, lengths]
    refusal = support(operation, given, [_info((4, 3, 20)), state])
    assert refusal.text == "sequence lengths of SIGNED64 are not supported"
