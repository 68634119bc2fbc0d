"""Operands of NNAPI operations: whatever they hold, an error is an `NnapiError`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from armpy.execution import RuntimeOptions
from armpy.ops.operation import Array
from armpy_nnapi import NnapiError
from armpy_nnapi.codes import OPERAND_TRAITS, OperandCode, OperationCode
from armpy_nnapi.compile.compilation import Compilation
from armpy_nnapi.conformance.random_graphs.making import assemble, random_call, results_of
from armpy_nnapi.conformance.random_graphs.recipes import recipes
from armpy_nnapi.description.model_description import Lifetime, ModelDescription, Operand
from armpy_nnapi.devices import DeviceManager
from armpy_nnapi.model.model import Model
from armpy_nnapi.operations import definitions
from armpy_nnapi.run.execution import Execution

from .damaged_models import Editor

pytestmark = pytest.mark.slow

ODD_NUMBERS: dict[str, tuple[float, ...]] = {
    "i": (0, 1, -1, -9, 1000, 2**31 - 1, -(2**31)),
    "u": (0, 255),
    "b": (0, 1),
    "f": (0.0, -1.0, 1e30, float("inf"), float("-inf"), float("nan")),
}
ODD_SHAPES = ((0,), (1,), (3,), (2, 2))
TENSORS = {
    OperandCode.INT32: OperandCode.TENSOR_INT32,
    OperandCode.FLOAT32: OperandCode.TENSOR_FLOAT32,
    OperandCode.FLOAT16: OperandCode.TENSOR_FLOAT16,
    OperandCode.BOOL: OperandCode.TENSOR_BOOL8,
}
"""What a scalar becomes when it has several elements."""
MEMORY_LIMIT_BYTES = 64 << 20
TRIES = 40
INTEGERS = (OperandCode.TENSOR_INT32, OperandCode.TENSOR_BOOL8)
MOST_TENSORS = 8
"""Operands of an operation of which all are tried: cells have more, but those are weights."""


@pytest.fixture(scope="module")
def manager() -> Iterator[DeviceManager]:
    options = RuntimeOptions(backends=["CpuRef"], memory_limit_bytes=MEMORY_LIMIT_BYTES)
    with DeviceManager(options) as device_manager:
        yield device_manager


def one_call(code: int) -> tuple[ModelDescription, tuple[Array, ...]] | None:
    """A model of one operation with floats if it takes any; None if none could be made up."""
    random = np.random.default_rng(code)
    definition = definitions()[code]
    signatures = list(definition.signatures())
    for number in range(TRIES):
        form, row = signatures[number % len(signatures)]
        random_model = random_call(random, definition, form, row, [])
        if random_model is not None:
            call, operands = random_model
            return assemble(random, [(call, results_of(call, operands))])
    return None


def deciding(description: ModelDescription) -> Iterator[int]:
    """Numbers of the operands of a model's only operation that may decide."""
    indexes = description.main.operations[0].inputs
    for index in indexes:
        operand = description.main.operands[index]
        is_given = operand.lifetime in (Lifetime.CONSTANT_COPY, Lifetime.SUBGRAPH_INPUT)
        decides = not operand.is_tensor or operand.type in INTEGERS
        if is_given and (decides or len(indexes) <= MOST_TENSORS):
            yield index


def odd_operands(operand: Operand) -> Iterator[tuple[Operand, Array]]:
    """An operand with odd elements, and of odd shapes."""
    code = OperandCode(operand.type)
    dtype = OPERAND_TRAITS[code].dtype
    shape = operand.dimensions
    for number in ODD_NUMBERS[dtype.kind]:
        with np.errstate(over="ignore"):
            yield operand, np.full(shape, number).astype(dtype)
    tensor = TENSORS.get(code, code)
    for shape in ODD_SHAPES:
        yield replace(operand, type=tensor, dimensions=shape), np.full(shape, 2, dtype)


def variants(
    description: ModelDescription, inputs: tuple[Array, ...], index: int
) -> Iterator[tuple[ModelDescription, tuple[Array, ...]]]:
    """A model whose operand is odd, as a constant and as an input."""
    by_operand = dict(zip(description.main.inputs, inputs, strict=True))
    for operand, elements in odd_operands(description.main.operands[index]):
        for lifetime in (Lifetime.CONSTANT_COPY, Lifetime.SUBGRAPH_INPUT):
            is_constant = lifetime is Lifetime.CONSTANT_COPY
            data = elements.tobytes() if is_constant else None
            editor = Editor(description, np.random.default_rng(0))
            editor.operands[index] = replace(operand, lifetime=lifetime, data=data)
            rest = [other for other in editor.inputs if other != index]
            editor.inputs = rest if is_constant else [*rest, index]
            feeds = [elements if other == index else by_operand[other] for other in editor.inputs]
            yield editor.finish(), tuple(feeds)


def attempt(description: ModelDescription, inputs: tuple[Array, ...], at: DeviceManager) -> None:
    """Compile and run a model."""
    built = Model.from_description(description, at)
    with Compilation.create_for_devices(built, at.devices) as compilation:
        compilation.finish()
        Execution(compilation).run(inputs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("code", recipes(), ids=lambda code: OperationCode(code).name)
def test_odd_numbers_work_or_are_refused(code: int, manager: DeviceManager) -> None:
    model_and_inputs = one_call(code)
    assert model_and_inputs is not None
    description, inputs = model_and_inputs
    wrong = []
    for index in deciding(description):
        for changed, feeds in variants(description, inputs, index):
            try:
                attempt(changed, feeds, manager)
            except NnapiError:
                continue
            except Exception as error:  # noqa: BLE001  # the test looks for any other error
                wrong.append(f"{index} {changed.main.operands[index]}: {error!r}")
    assert wrong == []
