"""Grouped and transposed convolutions and matrix products, against CpuRef."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.codegen.isa import Isa

from armpy import DataType, Network, Quantization, TensorInfo, ops
from armpy.ops.operation import Operation
from backends.numba_acc.tests.support import ISA_NAMES, ISAS, check_against_reference, random_array

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
        given = TensorInfo(shape, kind)
        weights = network.constant(random.normal(size=weights_shape).astype(np.float32))
        bias = network.constant(random.normal(size=filters).astype(np.float32))
    else:
        given = TensorInfo(shape, kind, quantization=Quantization.per_tensor(0.02, 5))
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
    x = network.input("x", given)
    network.output("y", network.add(operation, x, weights, bias, output=output))
    check_against_reference(network, {"x": random_array(given)}, _isa(isa))


KINDS = (DataType.FLOAT32, DataType.QASYMM_U8, DataType.QASYMM_S8)


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
        given = {"x": random_array(x.info, 1), "y": random_array(info, 2)}
        y = network.constant(given.pop("y")) if is_constant else network.input("y", info)
        network.output("z", network.add(ops.BatchMatMul(transpose_x, transpose_y), x, y))
        check_against_reference(network, given, _isa(isa))
