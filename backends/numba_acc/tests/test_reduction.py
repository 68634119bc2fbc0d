"""Extremes: compared as bytes where they are bytes, and NaN where a number is none."""

from __future__ import annotations

import re

import numpy as np
import pytest
from armpy_numba_acc.kernels import reduce
from armpy_numba_acc.llvm.compiler import compile_assembly
from armpy_numba_acc.machine.isa import Isa, make_isa

from armpy import DataType, Network, Quantization, TensorInfo, ops

from .support import (
    ISA_NAMES,
    ISAS,
    check_against_reference,
    run_compiled,
    run_reference,
)

F32 = TensorInfo((1,), DataType.FLOAT32)
U8 = TensorInfo((1,), DataType.QASYMM_U8, quantization=Quantization.per_tensor(0.5, 3))
S8 = TensorInfo((1,), DataType.QASYMM_S8, quantization=Quantization.per_tensor(0.5, -3))


FIRST = ISA_NAMES[0]
"""Has every kernel; the others only those that are unlike each other."""


def _isa(name: str) -> Isa:
    return ISAS[ISA_NAMES.index(name)]


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
