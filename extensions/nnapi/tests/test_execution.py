"""Calls that run a compiled model, in the order in which they check their arguments."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from armpy_nnapi import (
    MAXIMUM_LOOP_TIMEOUT_NS,
    Burst,
    Compilation,
    DeviceManager,
    Execution,
    Memory,
    Model,
    NnapiError,
    OperandCode,
    OperandType,
    OperationCode,
    ResultCode,
)

from .nnapi_models import (
    FLOAT_2,
    FLOAT_ANY,
    FLOAT_OPEN,
    INT,
    add_operands,
    compiled,
    computed,
    devices_of,
    fails,
    floats,
    sum_model,
    truth_loop,
)

C = OperandCode
MATRIX_OPEN = OperandType(C.TENSOR_FLOAT32, (2, 0))
OUT = ResultCode.OUTPUT_INSUFFICIENT_SIZE


@pytest.fixture(scope="module")
def compilation() -> Compilation:
    """The sum of two tensors of 2 elements."""
    return compiled(sum_model())


@pytest.fixture
def execution(compilation: Compilation) -> Execution:
    return Execution(compilation)


@pytest.mark.parametrize("setter", ["set_input", "set_output"])
def test_a_buffer_has_the_length_that_the_dimensions_say(execution: Execution, setter: str) -> None:
    with fails(ResultCode.BAD_DATA, "wrong length. Expected 8 bytes.*got 12 bytes"):
        getattr(execution, setter)(0, floats(1, 2, 3))
    with fails(ResultCode.BAD_DATA, "the buffer has no bytes"):
        getattr(execution, setter)(0, floats())
    with fails(ResultCode.BAD_DATA, "wrong dtype"):
        getattr(execution, setter)(0, np.zeros(2, np.int32))


def test_an_output_needs_a_buffer_that_can_be_written(execution: Execution) -> None:
    with fails(ResultCode.BAD_DATA, "the buffer is read-only"):
        execution.set_output(0, bytes(8))
    frozen = floats(1, 2)
    frozen.flags.writeable = False
    with fails(ResultCode.BAD_DATA, "the array is read-only"):
        execution.set_output(0, frozen)
    with fails(ResultCode.BAD_DATA, "the array is not contiguous"):
        execution.set_output(0, floats(1, 2, 3, 4)[::2])


def test_elements_may_be_bytes(compilation: Compilation) -> None:
    execution = Execution(compilation)
    total = bytearray(8)
    execution.set_input(0, floats(1, 2).tobytes())
    execution.set_input(1, floats(10, 20).data)
    execution.set_output(0, total)
    execution.compute()
    assert total == floats(11, 22).tobytes()


# Dimensions


def open_sum(first: OperandType, output: OperandType = FLOAT_ANY) -> Execution:
    """An execution of a sum whose first input and output are as given."""
    return Execution(compiled(sum_model(first, FLOAT_ANY, output)))


@pytest.mark.parametrize("setter", ["set_input", "set_input_from_memory"])
@pytest.mark.parametrize("operand_type", [FLOAT_OPEN, FLOAT_ANY, MATRIX_OPEN])
def test_an_inputs_dimensions_must_be_given_if_the_model_does_not_say_them(
    setter: str, operand_type: OperandType
) -> None:
    value = (floats(1, 2),) if setter == "set_input" else (Memory(floats(1, 2)), 0, 8)
    for type_given in (None, operand_type):
        with fails(ResultCode.BAD_DATA, "does not say all dimensions|not fully given"):
            getattr(open_sum(operand_type), setter)(0, *value, type_given)


@pytest.mark.parametrize("dimensions", [(3, 1), (2,), (2, 1, 1)])
@pytest.mark.parametrize("setter", ["set_input", "set_output"])
def test_given_dimensions_are_those_of_the_model(setter: str, dimensions: tuple[int, ...]) -> None:
    execution = open_sum(MATRIX_OPEN, MATRIX_OPEN)
    type_given = OperandType(C.TENSOR_FLOAT32, dimensions)
    with fails(ResultCode.BAD_DATA, r"not those of the model. Expected \(2, 0\)"):
        getattr(execution, setter)(0, np.zeros(dimensions, np.float32), type_given)


# Outputs


def test_a_smaller_buffer_is_not_written_and_the_needed_dimensions_are_reported() -> None:
    execution = open_sum(FLOAT_2)
    execution.set_input(0, floats(1, 2))
    execution.set_input(1, floats(10), OperandType(C.TENSOR_FLOAT32, (1,)))
    total = floats(7)
    execution.set_output(0, total)
    with fails(OUT, r"output 0 does not fit its buffer. Expected 8 bytes .* got 4 bytes"):
        execution.compute()
    assert total.tolist() == [7]
    for ask, answer in (
        (execution.get_output_operand_rank, 1),
        (execution.get_output_operand_dimensions, (2,)),
    ):
        with pytest.raises(NnapiError, match="does not fit its buffer") as caught:
            ask(0)
        assert (caught.value.code, caught.value.value) == (OUT, answer)


def test_of_two_outputs_the_fitting_one_is_marked() -> None:
    model = Model()
    a, b, c, d = add_operands(model, FLOAT_2, FLOAT_2, FLOAT_ANY, FLOAT_ANY)
    model.add_operation(OperationCode.RELU, [a], [c])
    model.add_operation(OperationCode.RELU, [b], [d])
    model.identify_inputs_and_outputs([a, b], [c, d])
    model.finish()
    execution = Execution(compiled(model))
    buffers = floats(7, 7), floats(7)
    for index in (0, 1):
        execution.set_input(index, floats(1, 2))
        execution.set_output(index, buffers[index])
    with fails(OUT, "output 1 does not fit"):
        execution.compute()
    assert execution.get_output_operand_dimensions(0) == (2,)
    with fails(OUT, "output 1 does not fit"):
        execution.get_output_operand_dimensions(1)
    assert [buffer.tolist() for buffer in buffers] == [[7, 7], [7]]


def test_an_output_of_other_dimensions_than_given_fails() -> None:
    execution = open_sum(FLOAT_2)
    execution.set_input(0, floats(1, 2))
    execution.set_input(1, floats(1, 2), FLOAT_2)
    type_given = OperandType(C.TENSOR_FLOAT32, (3,))
    execution.set_output(0, floats(7, 7, 7), type_given)
    with fails(ResultCode.OP_FAILED, r"output 0 has other dimensions.*\(3,\); got \(2,\)"):
        execution.compute()


def test_a_scalar_output_has_rank_0_and_no_dimensions() -> None:
    model = Model()
    a, rank = add_operands(model, FLOAT_2, INT)
    model.add_operation(OperationCode.RANK, [a], [rank])
    model.identify_inputs_and_outputs([a], [rank])
    model.finish()
    number = np.zeros(1, np.int32)
    execution = computed(model, [floats(1, 2)], [number])
    assert number.tolist() == [1]
    assert execution.get_output_operand_rank(0) == 0
    with fails(ResultCode.BAD_DATA, "a scalar has no dimensions"):
        execution.get_output_operand_dimensions(0)


def test_truth_values_are_single_bytes_and_any_other_than_0_is_true() -> None:
    model = Model()
    a, b = add_operands(model, OperandType(C.TENSOR_BOOL8, (3,)), OperandType(C.TENSOR_BOOL8, (3,)))
    model.add_operation(OperationCode.LOGICAL_NOT, [a], [b])
    model.identify_inputs_and_outputs([a], [b])
    model.finish()
    for buffer in (np.zeros(3, np.bool_), np.zeros(3, np.uint8), bytearray(3)):
        computed(model, [np.array([0, 1, 200], np.uint8)], [buffer])
        assert list(buffer) == [1, 0, 0]


def test_an_output_that_is_needed_must_have_a_buffer(execution: Execution) -> None:
    execution.set_input(0, floats(1, 2))
    execution.set_input(1, floats(1, 2))
    execution.set_output(0, None)
    with fails(ResultCode.OP_FAILED, "output 0 has no buffer"):
        execution.compute()


# Loops


def endless(manager: DeviceManager | None = None) -> Execution:
    """A loop whose condition is an input that nothing changes."""
    execution = Execution(compiled(truth_loop(ends=False, manager=manager)))
    execution.set_input(0, np.array([True]))
    execution.set_output(0, bytearray(1))
    return execution


@pytest.mark.parametrize("way", ["computed", "started", "fenced", "in a burst"])
def test_a_loop_is_stopped_however_it_is_executed(way: str) -> None:
    execution = endless()
    execution.set_loop_timeout(20_000_000)
    with fails(ResultCode.MISSED_DEADLINE_TRANSIENT, "WHILE_0"):
        if way == "computed":
            execution.compute()
        elif way == "started":
            execution.start_compute().wait()
        elif way == "fenced":
            execution.start_compute_with_dependencies([]).wait()
        else:
            with Burst(execution.compilation) as burst:
                burst.compute(execution)


def test_a_time_of_0_stops_a_loop_at_its_first_turn() -> None:
    execution = endless()
    execution.set_loop_timeout(0)
    with fails(ResultCode.MISSED_DEADLINE_TRANSIENT, "WHILE_0.*within 0 s"):
        execution.compute()


def test_times_above_the_maximum_stand_for_it(caplog: pytest.LogCaptureFixture) -> None:
    execution = endless()
    execution.set_loop_timeout(MAXIMUM_LOOP_TIMEOUT_NS + 1)
    assert "more than the maximum" in caplog.text
    assert execution._limits.loop_timeout_ns == MAXIMUM_LOOP_TIMEOUT_NS


@pytest.mark.parametrize("limit_s", [0.02, None])
def test_without_a_time_of_its_own_an_execution_has_that_of_the_options(
    limit_s: float | None,
) -> None:
    with devices_of(loop_timeout_s=limit_s) as manager:
        execution = endless(manager=manager)
        if limit_s is None:  # the execution can still say less
            execution.set_loop_timeout(20_000_000)
        began = time.perf_counter()
        with fails(ResultCode.MISSED_DEADLINE_TRANSIENT, "WHILE_0"):
            execution.compute()
        assert time.perf_counter() - began < 1.9  # NNAPI's default is 2 s


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (
            lambda execution: execution.set_input("0", floats(1, 2)),
            "the input's index is not an integer",
        ),
        (lambda execution: execution.set_input(0, floats(1, 2), (2,)), "Expected OperandType"),
        (lambda execution: execution.set_input_from_memory(0, bytes(8), 0, 8), "Expected Memory"),
        (lambda execution: execution.set_output_from_memory(0, bytes(8), 0, 8), "Expected Memory"),
        (lambda execution: execution.set_loop_timeout(None), "Expected nanoseconds"),
        (lambda execution: execution.set_loop_timeout(True), "Expected nanoseconds"),
        (lambda execution: execution.set_input(0, [1.0, 2.0]), "these are not elements.*got list"),
    ],
)
def test_arguments_of_another_kind_are_rejected(
    execution: Execution, call: Callable[[Execution], object], problem: str
) -> None:
    with fails(ResultCode.BAD_DATA, problem):
        call(execution)


def test_a_run_that_could_not_begin_can_be_tried_again(execution: Execution) -> None:
    for wrong in ([floats(1, 2), floats(1)], [floats(1, 2)]):
        with fails(ResultCode.BAD_DATA, "not those of the model|number of inputs"):
            execution.run(wrong)
    assert execution.run([floats(1, 2), floats(3, 4)])[0].tolist() == [4, 6]
