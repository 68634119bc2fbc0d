"""Small models, built through the API, and checks of what calls come to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import IBackendInternal
from armpy.execution import RuntimeOptions
from armpy_nnapi import (
    Compilation,
    DeviceManager,
    Execution,
    FuseCode,
    Model,
    ModelBuilder,
    ModelOperand,
    NnapiError,
    OperandCode,
    OperandType,
    OperationCode,
    ResultCode,
)
from armpy_testing.backends.fake_backends import registry_of

FLOAT_2 = OperandType(OperandCode.TENSOR_FLOAT32, (2,))
FLOAT_OPEN = OperandType(OperandCode.TENSOR_FLOAT32, (0,))
FLOAT_ANY = OperandType(OperandCode.TENSOR_FLOAT32)
BOOL_1 = OperandType(OperandCode.TENSOR_BOOL8, (1,))
COUNT = OperandType(OperandCode.TENSOR_INT32, (1,))
INT = OperandType(OperandCode.INT32)
MODEL = OperandType(OperandCode.MODEL)


@contextmanager
def fails(code: ResultCode, match: str) -> Iterator[None]:
    """The block must raise this result code with a text that matches."""
    with pytest.raises(NnapiError, match=match) as caught:
        yield
    assert caught.value.code is code


def bad_data(match: str) -> AbstractContextManager[None]:
    """The block must raise BAD_DATA with a text that matches."""
    return fails(ResultCode.BAD_DATA, match)


def devices_of(*backends: IBackendInternal, **options: object) -> DeviceManager:
    """The devices of some backends, preferred in this order, the reference last."""
    everything = [*backends, ReferenceBackend()]
    ids = [backend.get_id() for backend in everything]
    chosen = RuntimeOptions(backends=ids, registry=registry_of(*everything))
    return DeviceManager(replace(chosen, **options))  # type: ignore[arg-type]  # checked at run time


def add_operands(model: Model, *types: OperandType) -> list[int]:
    """Add operands of several types."""
    return [model.add_operand(operand_type) for operand_type in types]


def add_activation(model: Model, code: int = FuseCode.NONE) -> int:
    """Add a constant FuseCode."""
    index = model.add_operand(INT)
    model.set_operand_value(index, int(code))
    return index


def sum_model(
    first: OperandType = FLOAT_2,
    second: OperandType = FLOAT_2,
    output: OperandType = FLOAT_2,
    manager: DeviceManager | None = None,
) -> Model:
    """A finished model that adds two inputs."""
    model = Model(manager)
    a, b, total = add_operands(model, first, second, output)
    model.add_operation(OperationCode.ADD, [a, b, add_activation(model)], [total])
    model.identify_inputs_and_outputs([a, b], [total])
    model.finish()
    return model


def doubled(builder: ModelBuilder, x: ModelOperand) -> ModelOperand:
    """Twice a tensor, of the same type."""
    total: ModelOperand = builder.add(x, x, outputs=[x.type])
    return total


def counting_loop(
    step: Callable[[ModelBuilder, ModelOperand], ModelOperand],
    num_turns: int,
    tensor: OperandType = FLOAT_2,
    manager: DeviceManager | None = None,
    tail: str = "",
) -> Model:
    """Change a tensor while a counter is below a number; then an operation of this name."""
    until, body, outer = (ModelBuilder(manager) for _ in range(3))
    until.input(tensor)
    is_less = until.less(until.input(COUNT), np.array([num_turns], np.int32), outputs=[BOOL_1])
    x, count = body.input(tensor), body.input(COUNT)
    changed = step(body, x)
    counted = body.add(count, np.array([1], np.int32), outputs=[COUNT])
    models = until.finish(is_less), body.finish(changed, counted)
    looped, _ = outer.while_(*models, [outer.input(tensor), outer.input(COUNT)], [tensor, COUNT])
    return outer.finish(getattr(outer, tail)(looped) if tail else looped)


def truth_loop(*, ends: bool, manager: DeviceManager | None = None) -> Model:
    """A WHILE over a truth value, which its body makes false or keeps."""
    condition, body, outer = (ModelBuilder(manager) for _ in range(3))
    more = condition.logical_and(condition.input(BOOL_1), np.array([True]), outputs=[BOOL_1])
    left = body.logical_and(body.input(BOOL_1), np.array([not ends]), outputs=[BOOL_1])
    models = condition.finish(more), body.finish(left)
    return outer.finish(*outer.while_(*models, [outer.input(BOOL_1)], [BOOL_1]))


def compiled(model: Model) -> Compilation:
    """A finished compilation for all devices."""
    compilation = Compilation(model)
    compilation.finish()
    return compilation


def computed(model: Model, inputs: Sequence[object], outputs: Sequence[object]) -> Execution:
    """An execution that has computed."""
    execution = Execution(compiled(model))
    for index, value in enumerate(inputs):
        execution.set_input(index, value)
    for index, buffer in enumerate(outputs):
        execution.set_output(index, buffer)
    execution.compute()
    return execution


def floats(*values: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """A one-dimensional float32 array."""
    return np.array(values, np.float32)


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that other threads do."""
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come about in 30 s")
