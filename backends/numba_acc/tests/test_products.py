"""Grouped and transposed convolutions and matrix products, against CpuRef."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.passes.support import support

import armpy
from armpy import DataType, Network, Quantization, TensorInfo, ops
from armpy.ops.operation import Operation
from armpy.ops.tolerance import EXACT

from .support import ISA_NAMES, ISAS, check_against_reference, random_array

SAME, VALID = ops.Padding.SAME, ops.Padding.VALID


def _isa(name: str) -> Isa:
    return ISAS[ISA_NAMES.index(name)]


def _check_weighted(
    operation: Operation,
    shape: tuple[int, ...],
    weights_shape: tuple[int, ...],
    kind: DataType,
    isa: str,
) -> None:
    """Compare a layer with constant weights with CpuRef; 8 bits per channel where signed."""
    network = Network()
    random = np.random.default_rng(3)
    filters = weights_shape[0]
    output = None
    if kind is DataType.FLOAT32:
        info = TensorInfo(shape, kind)
        weights = network.constant(random.normal(size=weights_shape).astype(np.float32))
        bias = network.constant(random.normal(size=filters).astype(np.float32))
    else:
        info = TensorInfo(shape, kind, quantization=Quantization.per_tensor(0.02, 5))
        if kind is DataType.QASYMM_U8:
            stored = random.integers(0, 256, weights_shape).astype(np.uint8)
            weights = network.constant(
                stored, data_type=kind, quantization=Quantization.per_tensor(0.01, 120)
            )
        else:
            stored = random.integers(-127, 128, weights_shape).astype(np.int8)
            scales = random.uniform(0.005, 0.02, filters).tolist()
            weights = network.constant(
                stored,
                data_type=DataType.QSYMM_S8,
                quantization=Quantization.per_axis(scales, 0),
            )
        bias = network.constant(random.integers(-9000, 9000, filters).astype(np.int32))
        output = TensorInfo(None, kind, quantization=Quantization.per_tensor(0.11, 7))
    x = network.input("x", info)
    network.output("y", network.add(operation, x, weights, bias, output=output))
    check_against_reference(network, {"x": random_array(info)}, _isa(isa))


KINDS = (DataType.FLOAT32, DataType.QASYMM_U8, DataType.QASYMM_S8)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_filters_of_a_group_see_its_channels_only(kind: DataType, isa: str) -> None:
    relu = ops.FusedActivation.RELU
    for groups, depth, size, kernel, stride, dilation, padding in (
        (3, 5, 7, 3, 1, 1, SAME),
        (2, 16, 24, 1, 1, 1, VALID),
        (4, 3, 1, 3, 2, 2, SAME),
    ):
        operation = ops.Convolution2d(
            stride=(stride, stride), padding=padding, dilation=(dilation,) * 2, activation=relu
        )
        weights = (groups * size, kernel, kernel, depth)
        _check_weighted(operation, (2, 9, 8, groups * depth), weights, kind, isa)


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_transposed_convolutions_spread_their_input(kind: DataType, isa: str) -> None:
    relu = ops.FusedActivation.RELU
    for kernel, stride, padding, depth, filters in (
        (3, (2, 2), SAME, 5, 7),
        (4, (2, 3), VALID, 16, 20),
        (2, (3, 3), VALID, 3, 2),
        (3, (1, 1), ((1, 0), (2, 1)), 4, 18),
    ):
        operation = ops.TransposeConvolution2d(stride=stride, padding=padding, activation=relu)
        weights = (filters, kernel, kernel, depth)
        _check_weighted(operation, (2, 5, 6, depth), weights, kind, isa)


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_transposed_convolution_may_be_cut_to_a_size(isa: str) -> None:
    for size in ((1, 7, 8, 4), (1, 10, 11, 4)):
        operation = ops.TransposeConvolution2d((2, 2), SAME, output_shape=size)
        _check_weighted(operation, (1, 4, 5, 3), (4, 3, 3, 3), DataType.FLOAT32, isa)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize(("transpose_x", "transpose_y"), [(False, False), (True, True)])
def test_matrices_are_multiplied_pair_by_pair(
    transpose_x: bool, transpose_y: bool, is_constant: bool, isa: str
) -> None:
    for x_batches, y_batches, rows, depth, columns in (
        ((2, 3), (2, 3), 5, 7, 40),
        ((4,), (1,), 6, 33, 64),
        ((2, 1), (3,), 1, 4, 3),
    ):
        x_shape = (depth, rows) if transpose_x else (rows, depth)
        y_shape = (columns, depth) if transpose_y else (depth, columns)
        network = Network()
        x = network.input("x", TensorInfo((*x_batches, *x_shape), DataType.FLOAT32))
        info = TensorInfo((*y_batches, *y_shape), DataType.FLOAT32)
        inputs = {"x": random_array(x.info, 1), "y": random_array(info, 2)}
        y = network.constant(inputs.pop("y")) if is_constant else network.input("y", info)
        network.output("z", network.add(ops.BatchMatMul(transpose_x, transpose_y), x, y))
        check_against_reference(network, inputs, _isa(isa))


BYTES = [
    (DataType.QASYMM_S8, DataType.QASYMM_S8, (5, -7)),
    (DataType.QASYMM_S8, DataType.QSYMM_S8, (-128, 0)),
    (DataType.QASYMM_S8, DataType.QASYMM_S8, (127, -128)),
    (DataType.QASYMM_U8, DataType.QASYMM_U8, (130, 255)),
    (DataType.QSYMM_S16, DataType.QSYMM_S16, (0, 0)),
]
"""Types and zero points of both operands."""

SIZES = [
    ((2, 3), (2, 3), 5, 7, 40),
    ((4,), (1,), 6, 33, 64),
    ((2, 1), (3,), 1, 4, 3),
    ((), (), 9, 130, 17),
]
"""Batches of both operands, rows, depth, columns."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize(("transpose_x", "transpose_y"), [(False, False), (True, True)])
def test_matrices_of_traced_sizes_are_multiplied_as_those_of_known_ones(
    transpose_x: bool, transpose_y: bool, isa: str
) -> None:
    network, random = Network(), np.random.default_rng(6)
    x = network.input("x", TensorInfo((None, 3, None, None), DataType.FLOAT32))
    y = network.input("y", TensorInfo((None, 3, None, None), DataType.FLOAT32))
    operation = ops.BatchMatMul(transpose_x=transpose_x, transpose_y=transpose_y)
    network.output("z", network.add(operation, x, y))
    options = {"NumbaAcc": {"isa": isa, "num_threads": 2}}
    runtime = armpy.Runtime(armpy.RuntimeOptions(["NumbaAcc"], backend_options=options))
    model = armpy.Model(network, runtime)
    for batch, rows, depth, columns in ((2, 5, 7, 9), (3, 8, 40, 3), (2, 21, 6, 77), (5, 4, 9, 65)):
        one = random.normal(size=(batch, 3, rows, depth)).astype(np.float32)
        other = random.normal(size=(batch, 3, depth, columns)).astype(np.float32)
        given = (
            one.swapaxes(-1, -2) if transpose_x else one,
            other.swapaxes(-1, -2) if transpose_y else other,
        )
        np.testing.assert_allclose(model(*given), one @ other, rtol=1e-4, atol=1e-4)


@pytest.mark.sampled(71)
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("types", BYTES, ids=str)
@pytest.mark.parametrize(
    ("transpose_x", "transpose_y"), [(False, False), (True, True), (False, True)]
)
def test_matrices_of_integers_are_multiplied_exactly(
    transpose_x: bool,
    transpose_y: bool,
    types: tuple[DataType, DataType, tuple[int, int]],
    is_constant: bool,
    isa: str,
) -> None:
    x_type, y_type, zero_points = types
    for (x_batches, y_batches, rows, depth, columns), ratio in zip(
        SIZES, (0.002, 0.0005, 0.03, 1.5), strict=True
    ):
        x_shape = (depth, rows) if transpose_x else (rows, depth)
        y_shape = (columns, depth) if transpose_y else (depth, columns)
        infos = [
            TensorInfo(shape, kind, Quantization.per_tensor(0.05, zero_point))
            for shape, kind, zero_point in zip(
                ((*x_batches, *x_shape), (*y_batches, *y_shape)),
                (x_type, y_type),
                zero_points,
                strict=True,
            )
        ]
        network = Network()
        x, inputs = network.input("x", infos[0]), {"x": random_array(infos[0], 1)}
        stored = random_array(infos[1], 2)
        if is_constant:
            quantization = infos[1].quantization
            y = network.constant(stored, data_type=y_type, quantization=quantization)
        else:
            y, inputs["y"] = network.input("y", infos[1]), stored
        is_wide = x_type is DataType.QSYMM_S16
        scale = 0.05**2 / ratio * (256 if is_wide else 1)
        output = TensorInfo(None, x_type, Quantization.per_tensor(scale, 0 if is_wide else 3))
        operation = ops.BatchMatMul(transpose_x, transpose_y)
        network.output("z", network.add(operation, x, y, output=output))
        check_against_reference(network, inputs, _isa(isa), tolerance=EXACT)


def test_matrices_of_bytes_that_are_too_deep_are_refused() -> None:
    quantization = Quantization.per_tensor(0.1, 0)
    x, y, z = (
        TensorInfo(shape, DataType.QASYMM_S8, quantization)
        for shape in ((1, 40000), (40000, 2), (1, 2))
    )
    answer = support(ops.BatchMatMul(), [x, y], [z])
    assert not answer
    assert "sums of 40000 products" in str(answer)
