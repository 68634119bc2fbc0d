"""Products of one vector with constant weights: saturation, fusion, ties."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.machine.isa import Isa

from armpy import DataType, Network, Quantization, TensorInfo, ops
from armpy.graph import Value

from .support import (
    ISA_NAMES,
    ISAS,
    check_against_reference,
    program_of,
    random_array,
    run_compiled,
    run_reference,
)

FLOAT32, QASYMM_U8, QASYMM_S8 = DataType.FLOAT32, DataType.QASYMM_U8, DataType.QASYMM_S8
KINDS = (FLOAT32, QASYMM_U8, QASYMM_S8)


def _isa(name: str) -> Isa:
    return ISAS[ISA_NAMES.index(name)]


def _input(network: Network, name: str, shape: tuple[int, ...], kind: DataType) -> Value:
    quantization = None if kind is FLOAT32 else Quantization.per_tensor(0.02, 5)
    return network.input(name, TensorInfo(shape, kind, quantization=quantization))


def _weights(
    network: Network, shape: tuple[int, ...], kind: DataType, is_per_axis: bool
) -> tuple[Value, Value]:
    """Weights and bias; those of uint8 have a zero point with which they do not fit int8."""
    random = np.random.default_rng(shape)
    if kind is FLOAT32:
        return (
            network.constant(random.normal(size=shape).astype(np.float32)),
            network.constant(random.normal(size=shape[0]).astype(np.float32)),
        )
    bias = network.constant(random.integers(-9000, 9000, shape[0]).astype(np.int32))
    if kind is QASYMM_U8:
        stored = random.integers(0, 256, shape).astype(np.uint8)
        zero = Quantization.per_tensor(0.01, 100)
        return network.constant(stored, data_type=kind, quantization=zero), bias
    stored = random.integers(-127, 128, shape).astype(np.int8)
    scales = random.uniform(0.005, 0.02, shape[0]).tolist() if is_per_axis else [0.01]
    quantization = (
        Quantization.per_axis(scales, 0) if is_per_axis else Quantization.per_tensor(0.01, 0)
    )
    return network.constant(stored, data_type=DataType.QSYMM_S8, quantization=quantization), bias


def _output(kind: DataType) -> TensorInfo | None:
    if kind is FLOAT32:
        return None
    return TensorInfo(None, kind, quantization=Quantization.per_tensor(0.11, 7))


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("least", [-128, -127])
def test_no_sum_of_the_largest_bytes_saturates(least: int, isa: str) -> None:
    """All elements and weights have the largest magnitudes, with equal and with mixed signs."""
    random, network, inputs = np.random.default_rng(-least), Network(), {}
    unit = Quantization.per_tensor(1.0, 0)
    output = TensorInfo(None, QASYMM_S8, quantization=Quantization.per_tensor(20000.0, 0))
    for columns, depth in ((3, 130), (67, 41), (128, 64)):
        signs = random.integers(0, 2, (columns, depth), dtype=bool)
        signs[:3] = np.arange(3)[:, None] == 1
        stored = np.where(signs, 127, least).astype(np.int8)
        weights = network.constant(stored, data_type=DataType.QSYMM_S8, quantization=unit)
        for kind in ("least", "most", "mixed"):
            name = f"{kind}{columns}"
            x = network.input(name, TensorInfo((1, depth), QASYMM_S8, quantization=unit))
            chosen = random.choice([-128, 127, 0], (1, depth), p=[0.45, 0.45, 0.1])
            fixed = {"least": -128, "most": 127}.get(kind, chosen)
            inputs[name] = np.broadcast_to(fixed, (1, depth)).astype(np.int8)
            y = network.add(ops.FullyConnected(), x, weights, output=output)
            network.output(f"y{name}", y)
    check_against_reference(network, inputs, _isa(isa))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_window_as_large_as_the_image_is_one_vector(kind: DataType) -> None:
    network = Network()
    x = _input(network, "x", (1, 3, 2, 21), kind)
    weights = _weights(network, (35, 3, 2, 21), kind, is_per_axis=True)
    y = network.add(ops.Convolution2d(stride=(2, 1)), x, *weights, output=_output(kind))
    weights = _weights(network, (140, 1, 1, 35), kind, is_per_axis=True)
    network.output("y", network.add(ops.Convolution2d(), y, *weights, output=_output(kind)))
    inputs = {"x": random_array(x.info)}
    expected = run_reference(network, inputs)
    for isa in (ISAS[0], ISAS[-1]):
        check_against_reference(network, inputs, isa, expected)
    program = program_of(network)
    names = {kernel.name for kernel in program.kernels} - {"copy", "flip"}
    assert all(name.startswith("vector_") for name in names), names


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("columns", [3, 200])
def test_what_is_added_to_a_vector_is_fused(columns: int, isa: str) -> None:
    network = Network()
    x = _input(network, "x", (1, 67), FLOAT32)
    other = _input(network, "other", (1, columns), FLOAT32)
    weights = _weights(network, (columns, 67), FLOAT32, is_per_axis=False)
    y = network.add(ops.FullyConnected(), x, *weights)
    addition = ops.ElementwiseBinary(ops.BinaryOperation.ADD, activation=ops.FusedActivation.RELU6)
    network.output("y", network.add(addition, y, other))
    inputs = {"x": random_array(x.info), "other": random_array(other.info, 1)}
    check_against_reference(network, inputs, _isa(isa))


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_nothing_after_a_vector_is_multiplied(isa: str) -> None:
    """NaN after the elements would become NaN times the zeros after the weights."""
    network = Network()
    x = _input(network, "x", (1, 40), FLOAT32)
    first, second = network.add_layer(ops.Splitter(axis=1, sizes=(19, 21)), [x]).outputs
    for name, part, size in (("first", first, 19), ("second", second, 21)):
        weights = _weights(network, (2, size), FLOAT32, is_per_axis=False)
        network.output(name, network.add(ops.FullyConnected(), part, *weights))
    vector = random_array(x.info)
    vector[0, 19:] = np.nan
    check_against_reference(network, {"x": vector}, _isa(isa))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("scale", "isas"), [(4, ISAS), (2, ISAS[:1])])
def test_ties_are_rounded_away_from_zero(scale: int, isas: tuple[Isa, ...]) -> None:
    """As TFLite rounds in fully connected layers, once; CpuRef is not asked."""
    network = Network()
    unit = Quantization.per_tensor(1.0, 0)
    x = network.input("x", TensorInfo((1, 1), QASYMM_S8, quantization=unit))
    stored = np.arange(-127, 128, dtype=np.int8).reshape(255, 1)
    weights = network.constant(stored, data_type=DataType.QSYMM_S8, quantization=unit)
    output = TensorInfo(None, QASYMM_S8, quantization=Quantization.per_tensor(scale, 0))
    network.output("y", network.add(ops.FullyConnected(), x, weights, output=output))
    steps = stored[:, 0].astype(np.float64) / scale
    expected = np.copysign(np.floor(np.abs(steps) + 0.5), steps).astype(np.int8)
    for isa in isas:
        actual = run_compiled(network, {"x": np.ones((1, 1), np.int8)}, isa)["y"]
        np.testing.assert_array_equal(actual[0], expected)
