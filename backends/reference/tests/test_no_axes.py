"""Tensors without axes: what comes out is what comes out for one axis of one element.

The cases are those of the conformance kit, each with its tensors cut down to one element; what
they give with axes is compared with TFLite's kernels elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import armpy
from armpy.errors import LayerValidationError
from armpy.graph.network import Network
from armpy.ops import BinaryOperation, ElementwiseBinary
from armpy.ops.operation import Array, Operation
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance import Case
from armpy_conformance.cases import operation_cases
from armpy_testing.run_operation import run_operation

COUNTS_AXES = ("Rank", "Shape")

Tensors = list[tuple[TensorInfo, Array] | None]


def cut(case: Case, shape: tuple[int, ...], *, first_only: bool) -> Tensors:
    """A case's inputs, or the first of them, with one element each."""
    tensors: Tensors = []
    for number, item in enumerate(case.inputs):
        if item is None:
            tensors.append(None)
        elif number and first_only:
            tensors.append((item.info, item.data))
        else:
            element = item.data.reshape(-1)[:1].reshape(shape)
            tensors.append((item.info.with_shape(shape), element))
    return tensors


def can_be_cut(case: Case) -> bool:
    """Whether every tensor has an element, and none has several scales."""
    infos = [item.info for item in case.inputs if item is not None] + list(case.outputs)
    has_elements = all(item is None or item.data.size for item in case.inputs)
    scales = (info.quantization for info in infos)
    return has_elements and all(scale is None or scale.axis is None for scale in scales)


def is_allowed(operation: Operation, tensors: Tensors, outputs: list[TensorInfo]) -> bool:
    """Whether an operation takes such tensors."""
    try:
        operation.infer([None if item is None else item[0] for item in tensors], outputs)
    except LayerValidationError:
        return False
    return True


def cases() -> Iterator[tuple[Case, Tensors, bool]]:
    """Cases whose operation takes tensors without axes, and whether all of them are."""
    for case in operation_cases():
        if not case.operation.has_data_dependent_outputs and can_be_cut(case):
            outputs = [info.with_shape(None) for info in case.outputs]
            for first_only in (False, True):
                tensors = cut(case, (), first_only=first_only)
                if is_allowed(case.operation, tensors, outputs):
                    yield case, tensors, not first_only


@pytest.mark.slow
def test_one_element_without_axes_gives_what_one_with_an_axis_gives() -> None:
    compared: set[str] = set()
    for case, tensors, is_whole in cases():
        outputs = [info.with_shape(None) for info in case.outputs]
        results = run_operation(case.operation, tensors, outputs)
        with_axis = cut(case, (1,), first_only=not is_whole)
        if case.operation.name in COUNTS_AXES:
            continue
        if not is_allowed(case.operation, with_axis, outputs):
            continue
        expected = run_operation(case.operation, with_axis, outputs)
        for output, other in zip(results, expected, strict=True):
            np.testing.assert_array_equal(output.reshape(-1), other.reshape(-1), case.id)
        compared.add(f"{case.operation.name} {case.data_type}")
    assert len(compared) > 60


@pytest.mark.parametrize("backend", ["CpuRef", "NumbaAcc"])
@pytest.mark.parametrize("is_constant", [False, True])
def test_a_sum_of_16_bits_without_axes_runs_and_is_folded(backend: str, is_constant: bool) -> None:
    scale = Quantization.per_tensor(0.5)
    info = TensorInfo((), DataType.QSYMM_S16, scale)
    net = Network()
    lhs, rhs = (
        net.constant(np.int16(number), data_type=info.data_type, quantization=scale)
        if is_constant
        else net.input(name, info)
        for name, number in (("lhs", 7), ("rhs", -300))
    )
    add = ElementwiseBinary(BinaryOperation.ADD)
    net.output("sum", net.add(add, lhs, rhs, output=info))
    options = armpy.RuntimeOptions(backends=[backend, "CpuRef"])
    with armpy.Model(net, armpy.Runtime(options), closes_runtime=True) as model:
        feeds = {} if is_constant else {"lhs": np.int16(7), "rhs": np.int16(-300)}
        assert model.run(feeds)["sum"] == np.int16(-293)
