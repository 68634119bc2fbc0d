"""Memory domains: memory that is described by roles, on devices and in ordinary memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from armpy.backend import DeviceInfo
from armpy.errors import BackendError, MemoryLimitError
from armpy.ops import BinaryOperation
from armpy.types import DeviceType
from armpy_nnapi import (
    Burst,
    Compilation,
    DeviceManager,
    Execution,
    Memory,
    MemoryDesc,
    Model,
    ModelBuilder,
    OperandCode,
    OperandType,
    OperationCode,
    ResultCode,
)
from armpy_nnapi.memory_domains.described_memory import DescribedMemory
from armpy_testing.backends.device_memory import BufferDevice
from armpy_testing.backends.fake_backends import FakeBackend

from .nnapi_models import (
    BOOL_1,
    FLOAT_2,
    FLOAT_OPEN,
    INT,
    add_operands,
    compiled,
    devices_of,
    fails,
    floats,
    sum_model,
)

BAD_DATA, BAD_STATE = ResultCode.BAD_DATA, ResultCode.BAD_STATE
OP_FAILED, NULL = ResultCode.OP_FAILED, ResultCode.UNEXPECTED_NULL
QUANTIZED = OperandType(OperandCode.TENSOR_QUANT8_ASYMM, (2,), 0.5, 3)


@pytest.fixture
def npu() -> BufferDevice:
    return BufferDevice()


@pytest.fixture
def manager(npu: BufferDevice) -> Iterator[DeviceManager]:
    with devices_of(npu) as manager:
        yield manager


@pytest.fixture
def summed(manager: DeviceManager) -> Compilation:
    """x + y on the device, with the reference to fall back to."""
    return compiled(sum_model(manager=manager))


def chosen(model: Model, *names: str) -> Compilation:
    """A compilation for some devices."""
    devices = [device for device in model.manager.devices if device.name in names]
    compilation = Compilation.create_for_devices(model, devices)
    compilation.finish()
    return compilation


def described(*roles: tuple[Compilation, str, int], dimensions: tuple[int, ...] = ()) -> MemoryDesc:
    """A finished description."""
    desc = MemoryDesc()
    for compilation, kind, index in roles:
        add = desc.add_input_role if kind == "input" else desc.add_output_role
        add(compilation, index, 1.0)
    desc.set_dimensions(dimensions)
    desc.finish()
    return desc


def memory_for(
    *roles: tuple[Compilation, str, int], dimensions: tuple[int, ...] = ()
) -> DescribedMemory:
    """Memory for some roles."""
    return Memory.create_from_desc(described(*roles, dimensions=dimensions))


def filled(memory: DescribedMemory, *values: float) -> DescribedMemory:
    """Memory with elements."""
    Memory.copy(Memory(floats(*values)), memory)
    return memory


def contents(memory: Memory) -> list[float]:
    """The contents of memory of two floats."""
    out = Memory.shared(8)
    Memory.copy(memory, out)
    numbers: list[float] = np.frombuffer(out.data, np.float32).tolist()
    return numbers


def executed(compilation: Compilation, first: object, second: object, total: object) -> Execution:
    """An execution of a sum whose arguments are arrays or memory."""
    execution = Execution(compilation)
    for index, value in enumerate((first, second)):
        if isinstance(value, Memory):
            execution.set_input_from_memory(index, value, 0, 0)
        else:
            execution.set_input(index, value)
    if isinstance(total, Memory):
        execution.set_output_from_memory(0, total, 0, 0)
    else:
        execution.set_output(0, total)
    execution.compute()
    return execution


# Descriptions.


@pytest.mark.parametrize("frequency", [0.0, -0.5, 1.01, "often", float("nan")])
def test_a_frequency_is_above_0_and_at_most_1(summed: Compilation, frequency: float) -> None:
    desc = MemoryDesc()
    with fails(BAD_DATA, "the frequency cannot be"):
        desc.add_input_role(summed, 0, frequency)
    desc.add_input_role(summed, 0, 0.001)


def test_types_and_quantisation_are_those_of_the_other_roles(manager: DeviceManager) -> None:
    first = compiled(sum_model(QUANTIZED, QUANTIZED, QUANTIZED, manager))
    for other in (
        FLOAT_2,
        OperandType(QUANTIZED.type, (2,), 0.25, 3),
        OperandType(QUANTIZED.type, (2,), 0.5, 4),
    ):
        two = compiled(sum_model(other, other, other, manager))
        with fails(BAD_DATA, "the type is not that of the other roles"):
            described((first, "output", 0), (two, "input", 0))


def test_dimensions_combine_with_those_of_the_other_roles(manager: DeviceManager) -> None:
    three = OperandType(OperandCode.TENSOR_FLOAT32, (3,))
    known = compiled(sum_model(manager=manager))
    other = compiled(sum_model(three, three, three, manager))
    open_one = compiled(sum_model(FLOAT_OPEN, FLOAT_OPEN, FLOAT_OPEN, manager))
    with fails(BAD_DATA, "the dimensions are not those that are known"):
        described((known, "input", 0), (other, "input", 0))
    assert memory_for((open_one, "input", 0), (known, "output", 0)).dimensions == (2,)
    assert memory_for((open_one, "input", 0), dimensions=(5,)).dimensions == (5,)
    assert memory_for((open_one, "input", 0), dimensions=(5,)).size == 20


def test_a_scalar_has_no_dimensions(manager: DeviceManager) -> None:
    model = Model(manager)
    a, activation, total = add_operands(model, FLOAT_2, INT, FLOAT_2)
    model.add_operation(OperationCode.ADD, [a, a, activation], [total])
    model.identify_inputs_and_outputs([a, activation], [total])
    model.finish()
    compilation = compiled(model)
    desc = MemoryDesc()
    desc.add_input_role(compilation, 1, 1.0)
    desc.set_dimensions(())
    with fails(BAD_DATA, "the dimensions are not those that are known"):
        desc.set_dimensions((1,))


# Who makes the memory.


def test_the_one_device_of_all_roles_makes_the_memory(
    summed: Compilation, npu: BufferDevice
) -> None:
    memory = memory_for((summed, "input", 1), (summed, "output", 0))
    assert memory.device == "Npu"
    (buffer,) = npu.buffers
    request = buffer.request
    assert request.info.shape == (2,)
    assert request.info.data_type.dtype == np.float32
    network, network_id = summed.loaded(())
    assert [role.network_id for role in (*request.inputs, *request.outputs)] == [network_id] * 2
    assert request.inputs[0].name == network.graph.inputs[1].name
    assert request.outputs[0].name == network.graph.output_names[0]
    assert memory is not Memory.create_from_desc(described((summed, "input", 1)))


@pytest.mark.parametrize("answer", [None, MemoryLimitError("full"), ZeroDivisionError(), "junk"])
def test_ordinary_memory_takes_the_place_of_what_a_device_does_not_make(
    summed: Compilation, npu: BufferDevice, answer: object
) -> None:
    npu.gives = answer
    memory = memory_for((summed, "input", 0), (summed, "output", 0))
    assert memory.device == ""
    executed(summed, floats(1, 2), floats(10, 20), memory)
    assert contents(memory) == [11, 22]


@pytest.mark.parametrize("answer", [None, MemoryLimitError("full")])
def test_a_chosen_device_has_no_ordinary_memory_in_its_place(
    manager: DeviceManager, npu: BufferDevice, answer: object
) -> None:
    npu.gives = answer
    compilation = chosen(sum_model(manager=manager), "Npu")
    with fails(OP_FAILED, "no chosen device makes memory for all roles"):
        memory_for((compilation, "input", 0))


def test_a_chosen_device_that_works_in_ordinary_memory_makes_that() -> None:
    with devices_of(FakeBackend("Plain")) as manager:
        for name in ("Plain", "nnapi-reference"):
            compilation = chosen(sum_model(manager=manager), name)
            memory = memory_for((compilation, "output", 0))
            executed(compilation, floats(1, 2), floats(10, 20), memory)
            assert contents(memory) == [11, 22]


@pytest.mark.parametrize("answer", [None, MemoryLimitError("full")])
def test_memory_of_unknown_size_needs_a_device(
    manager: DeviceManager, npu: BufferDevice, answer: object
) -> None:
    compilation = compiled(sum_model(FLOAT_OPEN, FLOAT_OPEN, FLOAT_OPEN, manager))
    npu.gives = answer
    with fails(OP_FAILED, "the size is not known"):
        memory_for((compilation, "output", 0))


class OldDevice(BufferDevice):
    """A device of a feature level that knows no memory domains."""

    def get_devices(self) -> Sequence[DeviceInfo]:
        return (DeviceInfo(device_type=DeviceType.ACCELERATOR, feature_level=29),)


def test_a_device_of_an_older_feature_level_is_not_asked_for_memory() -> None:
    npu = OldDevice()
    with devices_of(npu) as manager:
        compilation = compiled(sum_model(manager=manager))
        memory = memory_for((compilation, "input", 0), (compilation, "output", 0))
        assert memory.device == ""
        assert not npu.buffers
        executed(compilation, floats(1, 2), floats(10, 20), memory)
        assert contents(memory) == [11, 22]
        explicit = chosen(sum_model(manager=manager), "Npu")
        with fails(OP_FAILED, "no chosen device makes memory for all roles"):
            memory_for((explicit, "input", 0))


def test_control_flow_has_ordinary_memory(npu: BufferDevice, manager: DeviceManager) -> None:
    summing = sum_model(manager=manager)
    builder = ModelBuilder(manager)
    condition, *values = (builder.input(kind) for kind in (BOOL_1, FLOAT_2, FLOAT_2))
    model = builder.finish(*builder.if_(condition, summing, summing, values, [FLOAT_2]))
    compilation = compiled(model)
    memory = memory_for((compilation, "input", 1), (compilation, "output", 0))
    assert memory.device == ""
    assert not npu.buffers
    filled(memory, 1, 2)
    execution = Execution(compilation)
    result = np.zeros(2, np.float32)
    execution.set_input(0, np.array([True]))
    execution.set_input_from_memory(1, memory, 0, 0)
    execution.set_input(2, floats(10, 20))
    execution.set_output(0, result)
    execution.compute()
    assert result.tolist() == [11, 22]


def two_devices() -> tuple[BufferDevice, BufferDevice]:
    """One that adds, and one that multiplies."""
    return (
        BufferDevice("Adder", [BinaryOperation.ADD]),
        BufferDevice("Multiplier", [BinaryOperation.MUL]),
    )


def mixed_model(manager: DeviceManager) -> Model:
    """``s = a + b`` and ``p = s * b``, both outputs."""
    builder = ModelBuilder(manager)
    a, b = builder.input(FLOAT_2), builder.input(FLOAT_2)
    total = builder.add(a, b, outputs=[FLOAT_2])
    return builder.finish(total, builder.mul(total, b, outputs=[FLOAT_2]))


def test_roles_of_several_devices_have_ordinary_memory() -> None:
    devices = two_devices()
    with devices_of(*devices) as manager:
        compilation = compiled(mixed_model(manager))
        assert memory_for((compilation, "input", 0)).device == "Adder"
        assert memory_for((compilation, "output", 1)).device == "Multiplier"
        assert memory_for((compilation, "input", 1)).device == ""  # both read it
        assert memory_for((compilation, "input", 0), (compilation, "output", 1)).device == ""
        explicit = chosen(mixed_model(manager), "Adder", "Multiplier")
        with fails(OP_FAILED, "no chosen device makes memory for all roles"):
            memory_for((explicit, "input", 1))


# Executions.


def test_elements_stay_on_the_device_between_networks(
    manager: DeviceManager, npu: BufferDevice
) -> None:
    first, second = (compiled(sum_model(manager=manager)) for _ in range(2))
    memory = memory_for((first, "output", 0), (second, "input", 0), (second, "input", 1))
    result = np.zeros(2, np.float32)
    executed(first, floats(1, 2), floats(10, 20), memory)
    uploads, downloads = npu.transfers
    assert (uploads, downloads) == (2, 0)  # the arrays only
    executed(second, memory, memory, result)
    assert result.tolist() == [22, 44]
    assert npu.transfers == (0, 1)  # the result only


def open_sum(manager: DeviceManager) -> Compilation:
    """x + y of any length on the device."""
    return chosen(sum_model(FLOAT_OPEN, FLOAT_OPEN, FLOAT_OPEN, manager), "Npu")


def test_a_devices_memory_of_unknown_size_has_the_size_of_what_is_written(
    manager: DeviceManager, npu: BufferDevice
) -> None:
    compilation = open_sum(manager)
    memory = memory_for((compilation, "output", 0), (compilation, "input", 0))
    assert memory.device == "Npu"
    assert memory.size == 0
    for size in (3, 5):
        kind = OperandType(OperandCode.TENSOR_FLOAT32, (size,))
        execution = Execution(compilation)
        execution.set_input(0, np.ones(size, np.float32), kind)
        execution.set_input(1, np.ones(size, np.float32), kind)
        execution.set_output_from_memory(0, memory, 0, 0)
        execution.compute()
        assert memory.dimensions == (size,)
        out = Memory.shared(4 * size)
        Memory.copy(memory, out)
        assert np.frombuffer(out.data, np.float32).tolist() == [2] * size
    execution = Execution(compilation)
    execution.set_input_from_memory(0, memory, 0, 0, OperandType(kind.type, (3,)))
    execution.set_input(1, np.ones(3, np.float32), OperandType(kind.type, (3,)))
    execution.set_output(0, np.zeros(3, np.float32))
    with fails(OP_FAILED, "the elements in the memory have other dimensions"):
        execution.compute()


def test_the_dimensions_of_an_argument_agree_with_those_of_the_memory(
    manager: DeviceManager,
) -> None:
    compilation = open_sum(manager)
    memory = memory_for((compilation, "output", 0), (compilation, "input", 0), dimensions=(4,))
    execution = Execution(compilation)
    three = OperandType(OperandCode.TENSOR_FLOAT32, (3,))
    with fails(BAD_DATA, "the dimensions are not those of the memory"):
        execution.set_input_from_memory(0, memory, 0, 0, three)
    with fails(BAD_DATA, "the dimensions are not those of the memory"):
        execution.set_output_from_memory(0, memory, 0, 0, three)


@pytest.mark.parametrize("answer", ["right", None])
def test_an_output_that_does_not_fit_its_memory_fails(
    manager: DeviceManager, npu: BufferDevice, answer: object
) -> None:
    npu.gives = answer
    compilation = compiled(sum_model(FLOAT_OPEN, FLOAT_OPEN, FLOAT_OPEN, manager))
    memory = memory_for((compilation, "output", 0), (compilation, "input", 0), dimensions=(2,))
    filled(memory, 1, 2)
    execution = Execution(compilation)
    for index in range(2):
        three = OperandType(OperandCode.TENSOR_FLOAT32, (3,))
        execution.set_input(index, floats(1, 2, 3), three)
    execution.set_output_from_memory(0, memory, 0, 0)
    with fails(OP_FAILED, "the output does not fit its memory"):
        execution.compute()
    assert not memory.is_initialized


def test_elements_are_copied_where_a_network_cannot_use_the_buffer(
    summed: Compilation, npu: BufferDevice
) -> None:
    source = filled(memory_for((summed, "input", 0)), 1, 2)
    total = memory_for((summed, "output", 0))
    npu.refusal = "the bus is too narrow"
    executed(summed, source, floats(10, 20), total)
    assert contents(total) == [11, 22]
    npu.refusal = ""
    executed(summed, source, floats(20, 30), total)
    assert contents(total) == [21, 32]


def on_fire(npu: BufferDevice) -> None:
    """Let a device fail whenever it is to use its buffers, and nothing else."""
    npu.fault = BackendError("the device is on fire")


class FailingDevice(BufferDevice):
    """A device that fails whatever it executes."""

    def __init__(self) -> None:
        super().__init__()
        self.faults = {"execute": BackendError("the device is on fire")}


def test_another_device_takes_over_from_one_that_fails_while_it_executes() -> None:
    with devices_of(FailingDevice()) as manager:
        compilation = compiled(sum_model(manager=manager))
        source = filled(memory_for((compilation, "input", 0)), 1, 2)
        total = memory_for((compilation, "output", 0))
        assert total.device == "Npu"
        for number in (10, 20):  # the second time without asking the device
            executed(compilation, source, floats(number, number), total)
            assert contents(total) == [1 + number, 2 + number]
        event = prepared(compilation, source, floats(1, 1), total).start_compute()
        event.wait()
        assert contents(total) == [2, 3]


def test_no_other_device_writes_memory_that_was_made_without_dimensions() -> None:
    npu = BufferDevice()
    with devices_of(npu) as manager:
        compilation = compiled(sum_model(FLOAT_OPEN, FLOAT_OPEN, FLOAT_OPEN, manager))
        two = [floats(1, 2), floats(10, 20)]
        compilation(*two)  # now it is known who adds
        memory = memory_for((compilation, "output", 0))
        assert memory.device == "Npu"
        on_fire(npu)
        execution = Execution(compilation)
        for index, value in enumerate(two):
            execution.set_input(index, value, FLOAT_2)
        execution.set_output_from_memory(0, memory, 0, 0)
        with fails(OP_FAILED, "no other can write memory without dimensions"):
            execution.compute()
        assert not memory.is_initialized


def prepared(
    compilation: Compilation, first: DescribedMemory, second: object, total: DescribedMemory
) -> Execution:
    """An execution of a sum that has not started."""
    execution = Execution(compilation)
    execution.set_input_from_memory(0, first, 0, 0)
    execution.set_input(1, second)
    execution.set_output_from_memory(0, total, 0, 0)
    return execution


@pytest.mark.parametrize("refusal", ["", "the bus is too narrow"])
def test_executions_on_other_threads_leave_elements_on_the_device(
    summed: Compilation, npu: BufferDevice, refusal: str
) -> None:
    first, second = (memory_for((summed, "input", 0), (summed, "output", 0)) for _ in range(2))
    filled(first, 1, 2)
    npu.refusal = refusal
    npu.transfers  # noqa: B018 - forgets
    event = prepared(summed, first, floats(10, 20), second).start_compute()
    event.wait()
    if not refusal:
        assert npu.transfers == (1, 0)  # the array only
    assert contents(second) == [11, 22]


def test_a_fenced_execution_reads_what_its_dependency_writes(
    summed: Compilation, npu: BufferDevice
) -> None:
    memories = [memory_for((summed, "input", 0), (summed, "output", 0)) for _ in range(3)]
    filled(memories[0], 1, 2)
    npu.transfers  # noqa: B018 - forgets
    first = prepared(summed, memories[0], floats(1, 1), memories[1])
    two = prepared(summed, memories[1], floats(1, 1), memories[2])  # not written yet
    event = two.start_compute_with_dependencies([first.start_compute_with_dependencies([])])
    event.wait()
    assert npu.transfers == (2, 0)
    assert contents(memories[2]) == [3, 4]


def test_a_reusable_execution_in_a_burst_uses_the_same_buffers(
    summed: Compilation, npu: BufferDevice
) -> None:
    source = filled(memory_for((summed, "input", 0)), 1, 2)
    total = memory_for((summed, "output", 0))
    more = floats(10, 20)
    execution = prepared(summed, source, more, total)
    execution.set_reusable(True)
    npu.transfers  # noqa: B018 - forgets
    with Burst(summed) as burst:
        for number in range(3):
            more[:] = number
            burst.compute(execution)
    assert npu.transfers == (3, 0)
    assert contents(total) == [3, 4]


def test_truth_values_are_those_at_the_time_of_the_execution(manager: DeviceManager) -> None:
    kind = OperandType(OperandCode.TENSOR_BOOL8, (2,))
    builder = ModelBuilder(manager)
    compilation = compiled(builder.finish(builder.logical_not(builder.input(kind))))
    memory, result = memory_for((compilation, "input", 0)), np.zeros(2, np.bool_)
    execution = Execution(compilation)
    execution.set_input_from_memory(0, memory, 0, 0)
    execution.set_output(0, result)
    Memory.copy(Memory(bytearray([0, 2])), memory)
    execution.compute()
    assert result.tolist() == [True, False]


# Copies.


@pytest.mark.parametrize(("first", "second"), [(8, 4), (4, 8)])
def test_a_copy_is_of_everything(summed: Compilation, first: int, second: int) -> None:
    with fails(BAD_DATA, f"another size. Expected {second} bytes; got {first} bytes"):
        Memory.copy(Memory.shared(first), Memory.shared(second))
    described_one = memory_for((summed, "input", 0))
    if first == 4:
        with fails(BAD_DATA, "another size. Expected 8 bytes; got 4 bytes"):
            Memory.copy(Memory.shared(4), described_one)
    else:
        with fails(BAD_DATA, "another size. Expected 4 bytes; got 8 bytes"):
            Memory.copy(filled(described_one, 1, 2), Memory.shared(4))


def test_a_copy_is_between_the_same_types_and_dimensions(manager: DeviceManager) -> None:
    column = OperandType(OperandCode.TENSOR_FLOAT32, (2, 1))
    number = OperandType(OperandCode.TENSOR_INT32, (2,))
    row = compiled(sum_model(manager=manager))
    source = filled(memory_for((row, "input", 0)), 1, 2)
    for kind, text in ((column, "the source has other dimensions"), (number, "the types of the")):
        other = compiled(sum_model(kind, kind, kind, manager))
        target = memory_for((other, "input", 0))
        with fails(BAD_DATA, text):
            Memory.copy(source, target)
        assert not target.is_initialized


def test_a_copy_sets_unknown_dimensions(manager: DeviceManager) -> None:
    compilation = open_sum(manager)
    source = memory_for((compilation, "input", 0), dimensions=(2,))
    target = memory_for((compilation, "input", 0))
    with fails(BAD_DATA, "another size. Expected 0 bytes; got 8 bytes"):
        filled(target, 1, 2)  # plain memory has no size to check
    Memory.copy(filled(source, 1, 2), target)
    assert target.dimensions == (2,)
    assert contents(target) == [1, 2]


def test_a_device_that_fails_to_copy_leaves_no_elements(
    summed: Compilation, npu: BufferDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = filled(memory_for((summed, "input", 0)), 1, 2)
    monkeypatch.setattr(npu.buffers[0], "copy_in_from", None)
    with fails(OP_FAILED, "Npu / copy_in_from"):
        filled(memory, 3, 4)
    with fails(BAD_DATA, "the source has no elements yet"):
        contents(memory)


def test_dimensions_that_follow_from_those_of_the_inputs_are_known(manager: DeviceManager) -> None:
    compilation = compiled(sum_model(output=FLOAT_OPEN, manager=manager))
    assert memory_for((compilation, "output", 0)).dimensions == (2,)
