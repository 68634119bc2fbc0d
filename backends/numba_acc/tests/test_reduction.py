"""Reductions and positions of extremes, against CpuRef, on every instruction set."""

from __future__ import annotations

import re

import numpy as np
import pytest
from armpy_numba_acc.kernels import reduce
from armpy_numba_acc.llvm.compiler import compile_assembly
from armpy_numba_acc.machine.isa import Isa, make_isa

from armpy import DataType, Network, Quantization, TensorInfo, ops
from armpy.ops.operation import Operation

from .support import (
    ISA_NAMES,
    ISAS,
    check_against_reference,
    random_array,
    run_compiled,
    run_reference,
)

F32 = TensorInfo((1,), DataType.FLOAT32)
I32 = TensorInfo((1,), DataType.SIGNED32)
I64 = TensorInfo((1,), DataType.SIGNED64)
U8 = TensorInfo((1,), DataType.QASYMM_U8, quantization=Quantization.per_tensor(0.5, 3))
S8 = TensorInfo((1,), DataType.QASYMM_S8, quantization=Quantization.per_tensor(0.5, -3))
BOOL = TensorInfo((1,), DataType.BOOLEAN)

AXES = (
    ((2, 7, 5, 67), (1, 2), False),
    ((2, 7, 5, 67), (1, 2), True),
    ((3, 70), (-1,), True),
    ((3, 70), (0,), False),
    ((2, 3, 4, 5, 6), (0, 2, 4), False),
    ((2, 3, 4, 5, 6), (1, 3), False),
    ((4, 5, 9), None, False),
    ((1, 33, 1, 2100), (1,), True),
)

REAL = tuple(ops.ReduceOperation)[:5]


FIRST = ISA_NAMES[0]
"""Has every kernel; the others only those that are unlike each other."""


def _isa(name: str) -> Isa:
    return ISAS[ISA_NAMES.index(name)]


def _check(
    operation: Operation, info: TensorInfo, isa: str, output: TensorInfo | None = None
) -> None:
    """Compare one layer with CpuRef."""
    network = Network()
    x = network.input("x", info)
    network.output("y", network.add(operation, x, output=output))
    check_against_reference(network, {"x": random_array(info)}, _isa(isa))


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("operation", REAL, ids=lambda operation: operation.name)
def test_numbers_are_reduced_as_cpuref_does(operation: ops.ReduceOperation, isa: str) -> None:
    if isa != FIRST and operation.name not in ("MEAN", "MAX"):
        pytest.skip("differs little from MEAN and MAX")
    for shape, axes, keep_dims in AXES:
        layer = ops.Reduce(operation, axes=axes, keep_dims=keep_dims)
        _check(layer, F32.with_shape(shape), isa)
        if isa == FIRST:
            _check(layer, I32.with_shape(shape), isa)
            _check(layer, I64.with_shape(shape), isa)


@pytest.mark.slow
@pytest.mark.parametrize("rounds_down", [False, True])
def test_means_of_large_integers_are_those_of_the_reference(rounds_down: bool) -> None:
    values = np.array([[2**31 - 1] * 5, [-(2**31)] * 5, [-7, 0, 0, 0, -1], [7, 0, 0, 0, 2]])
    for info in (I32, I64):
        given = values.astype(info.data_type.dtype)
        for axis in (0, 1):
            network = Network()
            x = network.input("x", info.with_shape(values.shape))
            layer = ops.Reduce(ops.ReduceOperation.MEAN, (axis,), rounds_down=rounds_down)
            network.output("y", network.add(layer, x))
            check_against_reference(network, {"x": given}, ISAS[0])


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("kind", [U8, S8], ids=lambda kind: kind.data_type.name)
def test_quantised_numbers_are_reduced_and_requantised(kind: TensorInfo, isa: str) -> None:
    output = TensorInfo(None, kind.data_type, quantization=Quantization.per_tensor(0.7, 10))
    for shape, axes, keep_dims in AXES:
        for operation in (ops.ReduceOperation.SUM, ops.ReduceOperation.MEAN):
            layer = ops.Reduce(operation, axes=axes, keep_dims=keep_dims)
            _check(layer, kind.with_shape(shape), isa, output)
        if isa != FIRST:
            continue
        for operation in (ops.ReduceOperation.MAX, ops.ReduceOperation.MIN):
            _check(ops.Reduce(operation, axes, keep_dims), kind.with_shape(shape), isa)
        layer = ops.Reduce(ops.ReduceOperation.MEAN, axes, keep_dims, rounds_down=True)
        _check(layer, kind.with_shape(shape), isa)


@pytest.mark.slow
@pytest.mark.parametrize("isa", ISA_NAMES)
def test_truth_values_are_reduced(isa: str) -> None:
    for shape, axes, keep_dims in AXES if isa == FIRST else AXES[:1]:
        for operation in (ops.ReduceOperation.ANY, ops.ReduceOperation.ALL):
            _check(ops.Reduce(operation, axes, keep_dims), BOOL.with_shape(shape), isa)


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("data_type", [DataType.UNSIGNED8, DataType.SIGNED8])
def test_extremes_of_bytes_are_those_of_the_reference(data_type: DataType, isa: str) -> None:
    for shape, axes, keep_dims in AXES if isa == FIRST else AXES[:1]:
        for operation in (ops.ReduceOperation.MAX, ops.ReduceOperation.MIN):
            layer = ops.Reduce(operation, axes, keep_dims)
            _check(layer, TensorInfo(shape, data_type), isa)


@pytest.mark.parametrize("form", ["rows", "columns"])
@pytest.mark.parametrize("kind", ["u8", "i8"])
def test_extremes_of_bytes_are_compared_as_bytes(kind: str, form: str) -> None:
    isa = make_isa("avx512vnni", "x86_64-unknown-linux-gnu", "icelake-server", frozenset())
    text = compile_assembly(reduce.make(isa, "max", kind, form), "function", isa)
    assert len(re.findall(r"vpmax[us]b\s.*[yz]mm", text)) >= 4
    assert not re.search("vpmax[us]d", text)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("name", ["MAX", "MIN"])
def test_nan_is_the_extreme_and_zeros_are_alike(name: str, isa: str) -> None:
    values = np.random.default_rng(0).normal(size=(6, 40)).astype(np.float32)
    values[1, ::2] = np.nan
    values[4] = values[:, 3] = np.nan
    values[2, 0], values[2, 1], values[2, 3] = np.inf, -np.inf, 0
    values[3] = np.where(values[3] > 0, 0.0, -0.0)
    values[:, 5:9], values[:2, 5], values[1, 6], values[5, 7] = -0.0, 0.0, 0.0, 0.0
    for axis in (0, 1):
        network = Network()
        x = network.input("x", F32.with_shape((6, 40)))
        operation = ops.ReduceOperation[name]
        network.output("y", network.add(ops.Reduce(operation, axes=(axis,)), x))
        function = ops.ArgMinMaxFunction[name]
        network.output("at", network.add(ops.ArgMinMax(function, axis=axis), x))
        check_against_reference(network, {"x": values}, _isa(isa))
        extremes = run_compiled(network, {"x": values}, _isa(isa))["y"]
        expected = run_reference(network, {"x": values})["y"]
        is_zero = expected == 0
        np.testing.assert_array_equal(np.signbit(extremes[is_zero]), np.signbit(expected[is_zero]))


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("output_type", [DataType.SIGNED32, DataType.SIGNED64])
@pytest.mark.parametrize("function", ops.ArgMinMaxFunction)
def test_first_of_the_extremes_is_found(
    function: ops.ArgMinMaxFunction, output_type: DataType, isa: str
) -> None:
    for kind in (F32, I32, U8, S8, BOOL) if isa == FIRST else (F32, U8, S8):
        for shape, axis in (((5, 21), 1), ((70, 3), 0), ((2, 9, 130), 1), ((4, 300), -1)):
            layer = ops.ArgMinMax(function, axis=axis, output_type=output_type)
            network = Network()
            x = network.input("x", kind.with_shape(shape))
            turned = network.add(ops.ReverseV2(axes=(0,)), x)
            network.output("y", network.add(layer, x))
            network.output("z", network.add(layer, turned))
            values = random_array(x.info)
            values = values if kind is F32 or kind is BOOL else values // 64
            check_against_reference(network, {"x": values}, _isa(isa))
