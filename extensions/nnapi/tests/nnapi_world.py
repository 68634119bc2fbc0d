"""One object of each kind in a chosen state, and every call on them, for tables of states."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from armpy.errors import BackendError
from armpy_nnapi import (
    Burst,
    Compilation,
    DurationCode,
    Event,
    Execution,
    Memory,
    MemoryDesc,
    Model,
    OperandCode,
    OperandType,
    OperationCode,
    PreferenceCode,
    Priority,
    ResultCode,
)
from armpy_testing.backends.device_memory import BufferDevice
from armpy_testing.backends.scripted_backend import ScriptedBackend, raises, waits

from .nnapi_models import FLOAT_2, FLOAT_ANY, add_operands, devices_of, fails, floats, sum_model

BAD_DATA, OP_FAILED = ResultCode.BAD_DATA, ResultCode.OP_FAILED
SHORT = ResultCode.OUTPUT_INSUFFICIENT_SIZE
FLOAT_3 = OperandType(OperandCode.TENSOR_FLOAT32, (3,))


class World:
    """One object of each kind on a device that follows a script, in the states that are made.

    Attributes
    ----------
    gate : threading.Event
        What a device that is blocked waits for.
    """

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.gate = threading.Event()
        self.backend = ScriptedBackend()
        self.manager = stack.enter_context(devices_of(self.backend, execution_threads=1))
        stack.callback(self.gate.set)
        self.output: OperandType = FLOAT_2
        self.values, self.total = floats(1, 2), floats(0, 0)
        self.model = Model(self.manager)
        self.desc = MemoryDesc()

    # Compilations

    def compile(self, num_devices: int = 1, *, finish: bool = True) -> None:
        """Make the compilation, for this many chosen devices; for all if there are none."""
        model = sum_model(output=self.output, manager=self.manager)
        devices = self.manager.devices[:num_devices]
        self.compilation = (
            Compilation.create_for_devices(model, devices) if devices else Compilation(model)
        )
        if finish:
            self.compilation.finish()

    def compiled(self) -> Compilation:
        """Make the compilation and return it."""
        self.compile()
        return self.compilation

    def fail_to_compile(self) -> None:
        self.compilation = Compilation(sum_model(FLOAT_2, FLOAT_3, FLOAT_ANY, self.manager))
        with fails(OP_FAILED, "Compilation.finish / .*ADD_0"):
            self.compilation.finish()

    # Executions

    def execute(self, *, reusable: bool = False, num_devices: int = 1) -> None:
        """Make the execution, with nothing set."""
        self.compile(num_devices)
        self.execution = Execution(self.compilation)
        self.execution.set_reusable(reusable)
        self.burst = Burst(self.compilation)

    def prepare(self, *, reusable: bool = False, num_devices: int = 1) -> None:
        """Make the execution, ready to compute."""
        self.execute(reusable=reusable, num_devices=num_devices)
        self.fill(self.execution)

    def fill(self, execution: Execution) -> None:
        """Set the arguments of an execution."""
        execution.set_input(0, self.values)
        execution.set_input(1, floats(10, 20))
        execution.set_output(0, self.total)

    def run(self, *, reusable: bool = False, num_devices: int = 1) -> None:
        """Make the execution and compute it."""
        self.prepare(reusable=reusable, num_devices=num_devices)
        self.execution.compute()

    def start(self, *, reusable: bool = False) -> None:
        """Make the execution, under way on another thread."""
        self.prepare(reusable=reusable)
        self.begin()

    def begin(self) -> None:
        """Start the execution on another thread, where the device waits for the gate."""
        self.block()
        self.event = self.execution.start_compute()
        self.wait_until_busy()

    def fence(self) -> tuple[Event, int]:
        """Make a fence, and the descriptor that signals it."""
        reader, writer = os.pipe()
        self.stack.callback(os.close, reader)
        return Event.create_from_sync_fence_fd(reader), writer

    def delay(self) -> None:
        """Make the execution, which waits for a fence."""
        self.prepare()
        self.await_fence()

    def await_fence(self) -> None:
        """Start the execution after a fence, which `signal` signals."""
        event, writer = self.fence()
        self.event = self.execution.start_compute_with_dependencies([event])
        self.signal = partial(os.write, writer, b"x")
        self.stack.callback(self.event.wait, 30)
        self.stack.callback(os.close, writer)
        self.stack.callback(self.signal)

    def fail(self, *, reusable: bool = False) -> None:
        """Make the execution, which has failed."""
        self.prepare(reusable=reusable)
        self.backend.script["execute"] = raises(BackendError("planted"))
        with fails(OP_FAILED, "planted"):
            self.execution.compute()
        del self.backend.script["execute"]

    def overflow(self) -> None:
        """Make the execution, whose output has not fitted its buffer."""
        self.output, self.total = FLOAT_ANY, floats(7)
        self.prepare()
        with fails(SHORT, "output 0 does not fit its buffer"):
            self.execution.compute()

    def block(self) -> None:
        """Let what the device executes from now on wait for the gate."""
        self.backend.forget()
        self.backend.script["execute"] = waits(self.gate)

    def wait_until_busy(self) -> None:
        """Wait until the device executes."""
        for _ in range(3000):
            if self.backend.calls_of("execute"):
                return
            self.gate.wait(0.01)
        raise AssertionError("the device has not begun in 30 s")

    # Bursts and events

    def occupy(self, *, reusable: bool = False) -> None:
        """Let another thread compute in the burst."""
        self.prepare(reusable=reusable)
        self.block()
        thread = threading.Thread(target=self.burst.compute, args=(self.execution,))
        thread.start()
        self.stack.callback(thread.join)
        self.stack.callback(self.gate.set)
        self.wait_until_busy()

    def launch(self, *, fenced: bool, outcome: str) -> None:
        """Make an event of an execution that is under way, has ended or has failed."""
        self.prepare()
        self.backend.script["execute"] = (
            raises(BackendError("planted")) if outcome == "failed" else waits(self.gate)
        )
        if fenced:
            self.event = self.execution.start_compute_with_dependencies([])
        else:
            self.event = self.execution.start_compute()
        if outcome == "done":
            self.gate.set()
            self.event.wait(30)
        elif outcome == "failed":
            with fails(OP_FAILED, "planted"):
                self.event.wait(30)

    def import_fence(self, outcome: str) -> None:
        """Make an event of a pipe that is open, signalled, or broken."""
        self.event, writer = self.fence()
        if outcome == "signalled":
            os.write(writer, b"x")
        if outcome == "broken":
            os.close(writer)
        else:
            self.stack.callback(os.close, writer)

    # Models

    def build(self, *, finish: bool) -> None:
        """Make the model, complete but for finishing it."""
        per_channel = OperandType(OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL, (1, 2))
        add_operands(self.model, FLOAT_2, FLOAT_2, per_channel)
        self.model.set_operand_symm_per_channel_quant_params(2, [1.0], 0)
        self.model.set_operand_value(2, b"\1\2")
        self.model.add_operation(OperationCode.RELU, [0], [1])
        self.model.identify_inputs_and_outputs([0], [1])
        if finish:
            self.model.finish()

    def spoil(self) -> None:
        """Make the model invalid."""
        with fails(BAD_DATA, "there are no operands"):
            self.model.finish()

    # Memory

    def describe(self, *, finish: bool = True) -> None:
        """Make the description, of memory for the first input and the output."""
        self.compile()
        self.desc.add_input_role(self.compilation, 0, 1.0)
        self.desc.add_output_role(self.compilation, 0, 0.5)
        if finish:
            self.desc.finish()

    def share(self, buffer: object) -> None:
        """Make memory of a buffer, and what can use it."""
        self.execute()
        self.memory = Memory(buffer)
        self.region = (0, 8)

    def allocate(self, *, on_device: bool, elements: bool) -> None:
        """Make memory from a description, a device's own or ordinary."""
        device = BufferDevice() if on_device else ScriptedBackend()
        self.manager = self.stack.enter_context(devices_of(device))
        self.compile(0)
        self.desc.add_input_role(self.compilation, 0, 1.0)
        self.desc.finish()
        self.memory = memory = Memory.create_from_desc(self.desc)
        assert memory.device == ("Npu" if on_device else "")
        self.execution = Execution(self.compilation)
        self.region = (0, 0)
        if elements:
            Memory.copy(Memory(floats(1, 2)), self.memory)

    def compute_memory(self, *, is_started: bool) -> None:
        """Compute with the memory as first input."""
        self.execution.set_input_from_memory(0, self.memory, *self.region)
        self.execution.set_input(1, floats(10, 20))
        self.execution.set_output(0, self.total)
        if is_started:
            self.execution.start_compute().wait(30)
        else:
            self.execution.compute()


Do = Callable[[World], object]


def then(*steps: Do) -> Do:
    """Several steps as one."""

    def do(world: World) -> None:
        for step in steps:
            step(world)

    return do


def drop_compilation(world: World) -> None:
    """Close the compilation."""
    world.compilation.close()


def leave_compilation(world: World) -> None:
    """Use the compilation as a context manager, which closes it."""
    with world.compilation:
        pass


def other_execution(world: World) -> Execution:
    """Another execution of the same compilation, ready to compute."""
    execution = Execution(world.compilation)
    world.fill(execution)
    return execution


def foreign_execution(world: World) -> Execution:
    """An execution of another compilation."""
    compilation = Compilation(sum_model(manager=world.manager))
    compilation.finish()
    return Execution(compilation)


def set_as_value(world: World) -> None:
    """Set an operand of another model to the model."""
    other = Model(world.manager)
    index = other.add_operand(OperandType(OperandCode.MODEL))
    other.set_operand_value_from_model(index, world.model)


def supported_operations(world: World, model: Model) -> object:
    """What the devices support of a model."""
    return world.manager.get_supported_operations_for_devices(model, world.manager.devices)


MODEL_STATES: dict[str, Do] = {
    "empty": lambda w: None,
    "complete": lambda w: w.build(finish=False),
    "finished": lambda w: w.build(finish=True),
    "invalid": lambda w: w.spoil(),
}
# Calls with None also have an index or code that is wrong, which is found later.
MODEL_CALLS: dict[str, Do] = {
    "add_operand": lambda w: w.model.add_operand(FLOAT_2),
    "add_operand:None": lambda w: w.model.add_operand(None),  # type: ignore[arg-type]
    "set_value": lambda w: w.model.set_operand_value(0, None),
    "set_memory": lambda w: w.model.set_operand_value_from_memory(0, Memory(floats(1, 2)), 0, 8),
    "set_memory:None": lambda w: w.model.set_operand_value_from_memory(9, None, 0, 0),  # type: ignore[arg-type]
    "set_model": lambda w: w.model.set_operand_value_from_model(0, sum_model(manager=w.manager)),
    "set_model:None": lambda w: w.model.set_operand_value_from_model(9, None),  # type: ignore[arg-type]
    "set_scales": lambda w: w.model.set_operand_symm_per_channel_quant_params(2, [1.0], 0),
    "set_scales:None": lambda w: w.model.set_operand_symm_per_channel_quant_params(9, None, 0),  # type: ignore[arg-type]
    "set_extension_data": lambda w: w.model.set_operand_extension_data(0, b"x"),
    "add_operation": lambda w: w.model.add_operation(OperationCode.RELU, [0], [1]),
    "add_operation:None,[]": lambda w: w.model.add_operation(-5, None, []),  # type: ignore[arg-type]
    "add_operation:[],None": lambda w: w.model.add_operation(-5, [], None),  # type: ignore[arg-type]
    "identify": lambda w: w.model.identify_inputs_and_outputs([], []),
    "identify:None,[]": lambda w: w.model.identify_inputs_and_outputs(None, []),  # type: ignore[arg-type]
    "identify:[],None": lambda w: w.model.identify_inputs_and_outputs([], None),  # type: ignore[arg-type]
    "relax": lambda w: w.model.relax_computation_float32_to_float16(),
    "finish": lambda w: w.model.finish(),
    "description": lambda w: w.model.description,
    "operation_order": lambda w: w.model.operation_order,
    "as_value": set_as_value,
    "Compilation": lambda w: Compilation(w.model),
    "Compilation:None": lambda w: Compilation(None),  # type: ignore[arg-type]
    "Compilation:text": lambda w: Compilation("model"),  # type: ignore[arg-type]
    "create_for_devices": lambda w: Compilation.create_for_devices(w.model, w.manager.devices),
    "supported_operations": lambda w: supported_operations(w, w.model),
}

COMPILATION_STATES: dict[str, Do] = {
    "open": lambda w: w.compile(0, finish=False),
    "for-one": lambda w: w.compile(1, finish=False),
    "for-two": lambda w: w.compile(2, finish=False),
    "finished": lambda w: w.compile(),
    "failed": lambda w: w.fail_to_compile(),
    "closed": then(World.compile, leave_compilation),
}
COMPILATION_CALLS: dict[str, Do] = {
    "set_preference": lambda w: w.compilation.set_preference(PreferenceCode.LOW_POWER),
    "set_preference:3": lambda w: w.compilation.set_preference(3),
    "set_priority": lambda w: w.compilation.set_priority(Priority.HIGH),
    "set_priority:91": lambda w: w.compilation.set_priority(91),
    "set_timeout": lambda w: w.compilation.set_timeout(10**10),
    "set_timeout:-1": lambda w: w.compilation.set_timeout(-1),
    "set_caching": lambda w: w.compilation.set_caching("nowhere", bytes(32)),
    "set_caching:None": lambda w: w.compilation.set_caching(None, bytes(32)),  # type: ignore[arg-type]
    "set_caching:token": lambda w: w.compilation.set_caching("nowhere", bytes(31)),
    "finish": lambda w: w.compilation.finish(),
    "Execution": lambda w: Execution(w.compilation),
    "Execution:None": lambda w: Execution(None),  # type: ignore[arg-type]
    "Execution:text": lambda w: Execution("compilation"),  # type: ignore[arg-type]
    "Burst": lambda w: Burst(w.compilation),
    "Burst:None": lambda w: Burst(None),  # type: ignore[arg-type]
    "Burst:text": lambda w: Burst("compilation"),  # type: ignore[arg-type]
    "call": lambda w: w.compilation(floats(1, 2), floats(10, 20)),
    "network": lambda w: w.compilation.network(()),
    "alignment:in": lambda w: w.compilation.get_preferred_memory_alignment_for_input(0),
    "padding:in": lambda w: w.compilation.get_preferred_memory_padding_for_input(0),
    "alignment:out": lambda w: w.compilation.get_preferred_memory_alignment_for_output(0),
    "padding:out": lambda w: w.compilation.get_preferred_memory_padding_for_output(0),
    "padding:out,9": lambda w: w.compilation.get_preferred_memory_padding_for_output(9),
    "add_input_role": lambda w: w.desc.add_input_role(w.compilation, 0, 1.0),
    "add_output_role": lambda w: w.desc.add_output_role(w.compilation, 0, 1.0),
    "free": lambda w: w.compilation.free_working_memory(),
    "close": lambda w: w.compilation.close(),
}

EXECUTION_STATES: dict[str, Do] = {
    "new": lambda w: w.execute(),
    "ready": lambda w: w.prepare(),
    "running": lambda w: w.start(),
    "waiting": lambda w: w.delay(),
    "ended": lambda w: w.run(),
    "failed": lambda w: w.fail(),
    "short": lambda w: w.overflow(),
    "closed": then(World.prepare, lambda w: w.execution.close()),
    "orphan": then(World.prepare, drop_compilation),
}
REUSABLE_STATES: dict[str, Do] = {
    "ready": lambda w: w.prepare(reusable=True),
    "running": lambda w: w.start(reusable=True),
    "ended": lambda w: w.run(reusable=True),
    "failed": lambda w: w.fail(reusable=True),
    "closed": then(lambda w: w.run(reusable=True), lambda w: w.execution.close()),
    "orphan": then(lambda w: w.prepare(reusable=True), drop_compilation),
    "orphaned": then(lambda w: w.run(reusable=True), drop_compilation),
    # Not reusable; no device was chosen, or two were.
    "any": lambda w: w.prepare(num_devices=0),
    "any-end": lambda w: w.run(num_devices=0),
    "two": lambda w: w.execute(num_devices=2),
}
EXECUTION_CALLS: dict[str, Do] = {
    "set_input": lambda w: w.execution.set_input(0, floats(1, 2)),
    "set_input:9": lambda w: w.execution.set_input(9, floats(1, 2)),
    "set_input:-1": lambda w: w.execution.set_input(-1, floats(1, 2)),
    "set_input:long": lambda w: w.execution.set_input(0, floats(1, 2, 3)),
    "set_input:three": lambda w: w.execution.set_input(0, floats(1, 2), FLOAT_3),
    "set_output": lambda w: w.execution.set_output(0, floats(1, 2)),
    "set_output:9": lambda w: w.execution.set_output(9, floats(1, 2)),
    "set_output:-1": lambda w: w.execution.set_output(-1, floats(1, 2)),
    "input_memory": lambda w: w.execution.set_input_from_memory(0, Memory(floats(1, 2)), 0, 8),
    "input_memory:-1": lambda w: w.execution.set_input_from_memory(-1, Memory(floats(1, 2)), 0, 8),
    "input_memory:9": lambda w: w.execution.set_input_from_memory(9, Memory(floats(1, 2)), 0, 8),
    "input_memory:None": lambda w: w.execution.set_input_from_memory(0, None, 0, 8),  # type: ignore[arg-type]
    "output_memory": lambda w: w.execution.set_output_from_memory(0, Memory(floats(1, 2)), 0, 8),
    "output_memory:9": lambda w: w.execution.set_output_from_memory(9, Memory(floats(1, 2)), 0, 8),
    "output_memory:-1": lambda w: w.execution.set_output_from_memory(
        -1, Memory(floats(1, 2)), 0, 8
    ),
    "output_memory:None": lambda w: w.execution.set_output_from_memory(0, None, 0, 8),  # type: ignore[arg-type]
    "set_measure_timing": lambda w: w.execution.set_measure_timing(True),
    "set_timeout": lambda w: w.execution.set_timeout(10**10),
    "set_timeout:-1": lambda w: w.execution.set_timeout(-1),
    "set_loop_timeout": lambda w: w.execution.set_loop_timeout(1),
    "set_loop_timeout:-1": lambda w: w.execution.set_loop_timeout(-1),
    "set_reusable": lambda w: w.execution.set_reusable(False),
    "compute": lambda w: w.execution.compute(),
    "burst": lambda w: w.burst.compute(w.execution),
    "run": lambda w: w.execution.run([floats(1, 2), floats(1, 2)]),
    "start": lambda w: w.execution.start_compute(),
    "fenced": lambda w: w.execution.start_compute_with_dependencies([]),
    "fenced:time": lambda w: w.execution.start_compute_with_dependencies([], 10**10),
    "fenced:-1": lambda w: w.execution.start_compute_with_dependencies([], -1),
    "fenced:None": lambda w: w.execution.start_compute_with_dependencies(None, -1),  # type: ignore[arg-type]
    "fenced:[None]": lambda w: w.execution.start_compute_with_dependencies([None], -1),  # type: ignore[list-item]
    "fenced:[7]": lambda w: w.execution.start_compute_with_dependencies([7], -1),  # type: ignore[list-item]
    "rank": lambda w: w.execution.get_output_operand_rank(0),
    "rank:9": lambda w: w.execution.get_output_operand_rank(9),
    "rank:-1": lambda w: w.execution.get_output_operand_rank(-1),
    "dimensions": lambda w: w.execution.get_output_operand_dimensions(0),
    "dimensions:9": lambda w: w.execution.get_output_operand_dimensions(9),
    "dimensions:-1": lambda w: w.execution.get_output_operand_dimensions(-1),
    "duration": lambda w: w.execution.get_duration(DurationCode.IN_DRIVER),
    "duration:4": lambda w: w.execution.get_duration(4),
    "release": lambda w: w.execution.release(),
    "close": lambda w: w.execution.close(),
}

BURST_STATES: dict[str, Do] = {
    "idle": lambda w: w.prepare(),
    "computing": lambda w: w.occupy(),
    "closed": then(World.prepare, lambda w: w.burst.close()),
}
BURST_CALLS: dict[str, Do] = {
    "compute": lambda w: w.burst.compute(other_execution(w)),
    "compute:unset": lambda w: w.burst.compute(Execution(w.compilation)),
    "compute:None": lambda w: w.burst.compute(None),  # type: ignore[arg-type]
    "compute:text": lambda w: w.burst.compute("execution"),  # type: ignore[arg-type]
    "compute:foreign": lambda w: w.burst.compute(foreign_execution(w)),
    "close": lambda w: w.burst.close(),
}

EVENT_STATES: dict[str, Do] = {
    "running": lambda w: w.launch(fenced=False, outcome="running"),
    "done": lambda w: w.launch(fenced=False, outcome="done"),
    "failed": lambda w: w.launch(fenced=False, outcome="failed"),
    "f-running": lambda w: w.launch(fenced=True, outcome="running"),
    "f-done": lambda w: w.launch(fenced=True, outcome="done"),
    "f-failed": lambda w: w.launch(fenced=True, outcome="failed"),
    "pipe": lambda w: w.import_fence("open"),
    "signalled": lambda w: w.import_fence("signalled"),
    "broken": lambda w: w.import_fence("broken"),
}
EVENT_CALLS: dict[str, Do] = {
    "wait:0": lambda w: w.event.wait(0),
    "wait:-1": lambda w: w.event.wait(-1.0),
    "is_done": lambda w: w.event.is_done,
    "fence": lambda w: w.stack.callback(os.close, w.event.get_sync_fence_fd()),
}

DESCRIPTION_STATES: dict[str, Do] = {
    "empty": lambda w: w.compile(),
    "roles": lambda w: w.describe(finish=False),
    "finished": lambda w: w.describe(),
}
DESCRIPTION_CALLS: dict[str, Do] = {
    "input": lambda w: w.desc.add_input_role(w.compilation, 1, 1.0),
    "input:same": lambda w: w.desc.add_input_role(w.compilation, 0, 1.0),
    "input:2": lambda w: w.desc.add_input_role(w.compilation, 2, 1.0),
    "input:-1": lambda w: w.desc.add_input_role(w.compilation, -1, 1.0),
    "input:None": lambda w: w.desc.add_input_role(None, 0, 1.0),  # type: ignore[arg-type]
    "input:model": lambda w: w.desc.add_input_role(w.model, 0, 1.0),  # type: ignore[arg-type]
    "input:unfinished": lambda w: w.desc.add_input_role(
        Compilation(sum_model(manager=w.manager)), 0, 1.0
    ),
    "input:0.0": lambda w: w.desc.add_input_role(w.compilation, 1, 0.0),
    "output": lambda w: w.desc.add_output_role(w.compilation, 0, 1.0),
    "output:1": lambda w: w.desc.add_output_role(w.compilation, 1, 1.0),
    "output:-1": lambda w: w.desc.add_output_role(w.compilation, -1, 1.0),
    "dimensions": lambda w: w.desc.set_dimensions((2,)),
    "dimensions:3": lambda w: w.desc.set_dimensions((3,)),
    "dimensions:None": lambda w: w.desc.set_dimensions(None),  # type: ignore[arg-type]
    "finish": lambda w: w.desc.finish(),
    "create": lambda w: Memory.create_from_desc(w.desc),
    "create:None": lambda w: Memory.create_from_desc(None),  # type: ignore[arg-type]
}

MEMORY_STATES: dict[str, Do] = {
    "writable": lambda w: w.share(floats(1, 2)),
    "read-only": lambda w: w.share(floats(1, 2).tobytes()),
    "closed": then(lambda w: w.share(floats(1, 2)), lambda w: w.memory.close()),
    "d-new": lambda w: w.allocate(on_device=True, elements=False),
    "d-full": lambda w: w.allocate(on_device=True, elements=True),
    "d-gone": then(lambda w: w.allocate(on_device=True, elements=True), lambda w: w.memory.close()),
    "h-new": lambda w: w.allocate(on_device=False, elements=False),
    "h-full": lambda w: w.allocate(on_device=False, elements=True),
    "h-gone": then(
        lambda w: w.allocate(on_device=False, elements=True), lambda w: w.memory.close()
    ),
}
MEMORY_CALLS: dict[str, Do] = {
    "size": lambda w: w.memory.size,
    "data": lambda w: w.memory.data,
    "is_writable": lambda w: w.memory.is_writable,
    "constant": lambda w: w.model.set_operand_value_from_memory(
        w.model.add_operand(FLOAT_2), w.memory, 0, 8
    ),
    "input": lambda w: w.execution.set_input_from_memory(0, w.memory, *w.region),
    "input:part": lambda w: w.execution.set_input_from_memory(0, w.memory, 0, 8),
    "input:1": lambda w: w.execution.set_input_from_memory(1, w.memory, *w.region),
    "input:foreign": lambda w: foreign_execution(w).set_input_from_memory(0, w.memory, *w.region),
    "output": lambda w: w.execution.set_output_from_memory(0, w.memory, *w.region),
    "compute": lambda w: w.compute_memory(is_started=False),
    "start": lambda w: w.compute_memory(is_started=True),
    "copy:out": lambda w: Memory.copy(w.memory, Memory.shared(8)),
    "copy:in": lambda w: Memory.copy(Memory(floats(3, 4)), w.memory),
    "copy:self": lambda w: Memory.copy(w.memory, w.memory),
    "copy:None": lambda w: Memory.copy(w.memory, None),  # type: ignore[arg-type]
    "copy:None,in": lambda w: Memory.copy(None, w.memory),  # type: ignore[arg-type]
    "copy:bytes": lambda w: Memory.copy(w.memory, bytearray(8)),  # type: ignore[arg-type]
    "close": lambda w: w.memory.close(),
}
