"""Wrong behaviour of kinds that drivers and delegates had, invented without a look at the kit."""

from __future__ import annotations

import gc
import os
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count

import numpy as np
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy.backend import (
    BackendOption,
    Capabilities,
    Capability,
    ExternalMemory,
    HostTensorHandle,
    IBackendContext,
    IBackendInternal,
    ICompletion,
    IPrograms,
    ITensorArena,
    ITensorHandle,
    ITensorHandleFactory,
    IWorkload,
    IWorkloadFactory,
    Lifetime,
    NetworkResources,
    OptionValues,
    ProgramCheck,
    ProgramFit,
    ReasonCode,
    SavedProgram,
    Support,
    WorkloadInfo,
)
from armpy.errors import UnimplementedError
from armpy.graph import SubgraphView, Value
from armpy.ops import (
    Activation,
    BatchMatMul,
    Cast,
    Convolution2d,
    ElementwiseBinary,
    FullyConnected,
    Pad,
)
from armpy.ops.activation_layers import ActivationFunction
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.backends.fake_backends import (
    FakeHandleFactory,
    FunctionWorkload,
    Handles,
    Outputs,
    Step,
)

from .blind_objects import BLIND_OBJECT_FAULTS
from .blind_subtle import BLIND_SUBTLE_FAULTS
from .blind_values import BLIND_VALUE_FAULTS
from .faults import (
    Call,
    Factory,
    Fault,
    Flow,
    Fused,
    OwnHandle,
    OwnHandles,
    Plain,
    Planted,
    Programs,
    Turn,
    spoil,
    spoil_tensor,
)

# --- Constants and weights


class KeptConstants(Fault):
    """Constants are kept by a key, of all networks; layers with constants of a key share them."""

    def __init__(self, key: Callable[[Step, Array], object]) -> None:
        self._key = key
        self._kept: dict[object, Array] = {}

    def wrap(self, step: Step) -> IWorkload:
        constants = [
            None if constant is None else self._kept_for(step, index, constant)
            for index, constant in enumerate(step.info.constants)
        ]
        info = replace(step.info, constants=tuple(constants))
        right = ReferenceWorkloadFactory().create_workload(step.operation, info)

        def execute(inputs: Handles, outputs: Outputs) -> None:
            handles = [
                handle if handle is None or kept is None else HostTensorHandle(handle.info, kept)
                for handle, kept in zip(inputs, constants, strict=True)
            ]
            right.execute(handles, outputs)

        return FunctionWorkload(execute)

    def _kept_for(self, step: Step, index: int, constant: Array) -> Array:
        """A copy of the first constant with the key of this one."""
        key = (index, constant.shape, constant.dtype.str, self._key(step, constant))
        return self._kept.setdefault(key, constant.copy())


def by_address(_: Step, constant: Array) -> object:
    """Where it lies."""
    return constant.ctypes.data


def by_name(step: Step, _: Array) -> object:
    """The layer's name."""
    return step.info.name


def by_ends(_: Step, constant: Array) -> object:
    """The first and the last element."""
    return constant.reshape(-1)[:1].tobytes(), constant.reshape(-1)[-1:].tobytes()


class PackedOnce(Fault):
    """Weights that change are packed in the first execution only."""

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)

    def wrap(self, step: Step) -> IWorkload:
        is_weighted = isinstance(step.operation, Convolution2d | FullyConnected | BatchMatMul)
        if not is_weighted or step.info.constants[1] is not None:
            return step.right
        kept: list[Array] = []

        def execute(inputs: Handles, outputs: Outputs) -> None:
            weights = inputs[1]
            assert weights is not None
            if not kept:
                kept.append(np.array(weights.map(write=False)))
                weights.unmap()
            step.right.execute(
                [inputs[0], HostTensorHandle(weights.info, kept[0]), *inputs[2:]], outputs
            )

        return FunctionWorkload(execute)


class Remembers(Fault):
    """A layer whose first input begins with the bytes of the last time is not computed again."""

    def wrap(self, step: Step) -> IWorkload:
        last: list[tuple[bytes, list[Array]]] = []

        def execute(inputs: Handles, outputs: Outputs) -> None:
            first = next((handle for handle in inputs if handle is not None), None)
            start = b""
            if first is not None and not first.info.data_type.is_string:
                start = first.map(write=False).tobytes()[:64]
                first.unmap()
            if last and start and last[0][0] == start:
                for handle, array in zip(outputs, last[0][1], strict=True):
                    handle.copy_in_from(array)
                return
            step.right.execute(inputs, outputs)
            results = []
            for handle in outputs:
                results.append(np.array(handle.map(write=False)))
                handle.unmap()
            last[:] = [(start, results)]

        return FunctionWorkload(execute)


# --- Memory of tensors


class InPlace(Fault):
    """Activation functions write their results over the input as well."""

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)
        if not isinstance(step.operation, Activation) or inputs[0] is None:
            return
        target = inputs[0].map()
        if target.flags.writeable and target.dtype == outputs[0].map(write=False).dtype:
            target[...] = outputs[0].map(write=False)
        inputs[0].unmap()


class AssumesZeros(Fault):
    """Zeros that are added at the edge are not written, as if the output held them already."""

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        if not isinstance(step.operation, Pad):
            step.right.execute(inputs, outputs)
            return
        before = np.array(outputs[0].map())
        step.right.execute(inputs, outputs)
        result = outputs[0].map()
        np.copyto(result, before, where=result == result.dtype.type(0))
        outputs[0].unmap()


class RingHandles(FakeHandleFactory):
    """Tensors of at most 64 bytes lie in a ring of 24 places."""

    def __init__(self, places: list[Array], next_place: count[int]) -> None:
        super().__init__({})
        self._places = places
        self._next = next_place

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        if info.data_type.is_string or not 0 < info.size_bytes <= 64:
            return super().create_tensor_handle(info, memory)
        place = self._places[next(self._next) % len(self._places)]
        elements = place[: info.size_bytes].view(info.data_type.dtype)
        return HostTensorHandle(info, elements.reshape(info.known_shape))

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        return FakeHandleFactory({}).import_memory(info, memory, read=read, write=write)


class Ring(Plain):
    """A ring for small tensors of all networks."""

    def __init__(self) -> None:
        super().__init__()
        self._places = [np.zeros(64, np.uint8) for _ in range(24)]
        self._next = count()

    def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
        return RingHandles(self._places, self._next)


class ShortLives(ITensorArena):
    """Its own plan, in which a tensor that is needed for long is given up a step too early."""

    def __init__(self) -> None:
        self._placed: list[tuple[Lifetime, Array]] = []

    def create_tensor_handle(
        self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
    ) -> ITensorHandle:
        start, end = lifetime
        lives = (start, end - 1 if end - start > 1 else end)
        size = info.size_bytes
        for index, (other, memory) in enumerate(self._placed):
            if memory.size >= size and (other[1] < lives[0] or lives[1] < other[0]):
                self._placed[index] = ((min(other[0], lives[0]), max(other[1], lives[1])), memory)
                return self._handle(info, memory)
        memory = np.zeros(max(size, 1), np.uint8)
        self._placed.append((lives, memory))
        return self._handle(info, memory)

    def _handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        """The tensor in some bytes."""
        elements = memory[: info.size_bytes].view(info.data_type.dtype)
        return HostTensorHandle(info, elements.reshape(info.known_shape))


class OwnPlan(FakeHandleFactory):
    """Makes such arenas."""

    def create_arena(self, size_bytes: int) -> ITensorArena | None:
        return ShortLives()


class PlansItself(Plain):
    """A backend whose arenas have a plan of their own."""

    def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
        return OwnPlan({})


class RawCopy(OwnHandle):
    """Copies in as the elements lie in memory, whatever the strides."""

    def copy_in_from(self, source: Array) -> None:
        if source.shape != self.info.shape:
            super().copy_in_from(source)
        self.elements.reshape(-1)[...] = source.ravel(order="K")


class RawHandles(OwnHandles):
    """Makes such tensors."""

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        return RawCopy(info)


class CopiesRaw(Fused):
    """A backend with such tensors."""

    def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
        return RawHandles()


class FullBytes(Fault):
    """The byte of a truth value is 255."""

    def after(self, call: Call) -> None:
        for array in call.outputs:
            if array.dtype == np.bool_:
                array.view(np.uint8)[...] *= 255


class Latin(Plain):
    """Takes text, of which it keeps the characters of ASCII."""

    def __init__(self) -> None:
        super().__init__(Ascii())

    def get_capabilities(self) -> Capabilities:
        return {**super().get_capabilities(), Capability.STRINGS: True}


class Ascii(Fault):
    """Other characters become question marks."""

    def after(self, call: Call) -> None:
        for array in call.outputs:
            if array.dtype.hasobject:
                for index, text in np.ndenumerate(array):
                    array[index] = text.encode("ascii", "replace").decode("ascii")


# --- Time and threads


class SlowStart(Fault):
    """While a layer is executed for the first time, others see it half prepared."""

    def wrap(self, step: Step) -> IWorkload:
        state = {"begun": False, "ready": False}

        def execute(inputs: Handles, outputs: Outputs) -> None:
            is_first, state["begun"] = not state["begun"], True
            was_ready = state["ready"]
            if is_first:
                time.sleep(0.002)
                state["ready"] = True
            step.right.execute(inputs, outputs)
            if not is_first and not was_ready:
                spoil_tensor(outputs[0])

        return FunctionWorkload(execute)


class OneThread(Fault):
    """Executions belong to the thread that prepared the layer."""

    def wrap(self, step: Step) -> IWorkload:
        owner = threading.get_ident()

        def execute(inputs: Handles, outputs: Outputs) -> None:
            if threading.get_ident() != owner:
                raise RuntimeError("no current context in this thread")
            step.right.execute(inputs, outputs)

        return FunctionWorkload(execute)


class Done(ICompletion):
    """Says that it has ended, at once."""

    def wait(self, timeout_s: float | None = None) -> bool:
        return True


class Joined(ICompletion):
    """Ends with a thread."""

    def __init__(self, thread: threading.Thread) -> None:
        self._thread = thread

    def wait(self, timeout_s: float | None = None) -> bool:
        self._thread.join(timeout_s)
        return not self._thread.is_alive()


class Queued(IWorkload):
    """Is executed by a thread of its own, which waits for no other one."""

    def __init__(self, right: IWorkload, completion: Callable[[threading.Thread], ICompletion]):
        self._right = right
        self._completion = completion

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        self._right.execute(inputs, outputs)

    def enqueue(self, inputs: Handles, outputs: Outputs) -> ICompletion | None:
        def run() -> None:
            time.sleep(0.001)
            self._right.execute(inputs, outputs)

        thread = threading.Thread(target=run)
        thread.start()
        return self._completion(thread)


class Queues(Fault):
    """Layers are enqueued."""

    def __init__(self, completion: Callable[[threading.Thread], ICompletion]) -> None:
        self._completion = completion

    def wrap(self, step: Step) -> IWorkload:
        return Queued(step.right, self._completion)


class Swallows(Fault):
    """What goes wrong in an execution is not said."""

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        try:
            step.right.execute(inputs, outputs)
        except Exception:  # noqa: BLE001  # the fault: an error of any kind is lost
            for handle in outputs:
                handle.map(read=False)[...] = 0
                handle.unmap()


class Uncancelled(Flow):
    """Says that its loops look at cancellations."""

    def get_capabilities(self) -> Capabilities:
        return {**super().get_capabilities(), Capability.CANCELLABLE_EXECUTION: True}


# --- Control flow


class RunsOnce(Fault):
    """A loop's body runs before its condition is asked."""

    def made(self, turn: Turn, results: list[Array]) -> list[Array]:
        if turn.graph == "condition" and turn.number == 0:
            return [np.ones_like(results[0])]
        return results


class Unrolled(Fault):
    """Loops end after 64 turns."""

    def made(self, turn: Turn, results: list[Array]) -> list[Array]:
        if turn.graph == "condition" and turn.number >= 64:
            return [np.zeros_like(results[0])]
        return results


class OuterCondition(Fault):
    """An If inside of another one goes by the outer condition."""

    def __init__(self) -> None:
        self._state = threading.local()

    def _outer(self) -> list[bool]:
        """Conditions of the Ifs that are under way."""
        if not hasattr(self._state, "conditions"):
            self._state.conditions = []
        conditions: list[bool] = self._state.conditions
        return conditions

    def given(self, turn: Turn, values: list[Array]) -> list[Array]:
        if turn.graph in ("then", "else"):
            self._outer().append(turn.graph == "then")
        return values

    def made(self, turn: Turn, results: list[Array]) -> list[Array]:
        if turn.graph in ("then", "else"):
            self._outer().pop()
        return results

    def is_true(self, key: object, condition: bool) -> bool:
        outer = self._outer()
        return outer[0] if outer else condition


class StaleElse(Fault):
    """A second graph of an If reads what it read in the execution before."""

    def __init__(self) -> None:
        self._last: dict[int, list[Array]] = {}

    def given(self, turn: Turn, values: list[Array]) -> list[Array]:
        if turn.graph != "else":
            return values
        before = self._last.get(turn.key, values)
        self._last[turn.key] = [np.array(value) for value in values]
        return before


# --- Programs


class SwappedOutputs(Fault):
    """The last two of three or more outputs of a program change places where they can."""

    def program(self, view: SubgraphView, values: dict[Value, Array]) -> None:
        if len(view.outputs) < 3:
            return
        left, right = view.outputs[-2:]
        if values[left].shape == values[right].shape and values[left].dtype == values[right].dtype:
            values[left], values[right] = values[right], values[left]


class FusesSeen(Fault):
    """An activation is applied to the result before it, which others read as well."""

    def program(self, view: SubgraphView, values: dict[Value, Array]) -> None:
        for layer in view.layers:
            source = layer.inputs[0] if layer.inputs else None
            is_relu = (
                isinstance(layer.operation, Activation)
                and layer.operation.function is ActivationFunction.RELU
            )
            if is_relu and source is not None and source in view.outputs:
                values[source] = values[layer.outputs[0]]


class SameOperand(Fault):
    """A layer both of whose operands are one tensor gives that tensor."""

    def program(self, view: SubgraphView, values: dict[Value, Array]) -> None:
        for layer in view.layers:
            is_same = len(layer.inputs) == 2 and layer.inputs[0] is layer.inputs[1]
            if is_same and isinstance(layer.operation, ElementwiseBinary):
                target, source = layer.outputs[0], layer.inputs[0]
                if target in view.outputs and source is not None and source in values:
                    values[target] = values[source]


class SpentPrograms(Programs):
    """A program that was written down lacks its weights afterwards."""

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        saved = super().save(program, options)
        SPENT.add(id(program))
        return saved


SPENT: set[int] = set()
"""Programs that were written down."""


class Spent(Fault):
    """Such programs compute something else."""

    def program(self, view: SubgraphView, values: dict[Value, Array]) -> None:
        if id(view) in SPENT:
            spoil(values[view.outputs[0]])


class LoadedOnce(Programs):
    """Gives each program once."""

    def load(self, saved: SavedProgram) -> object:
        number = int(str(saved.about["number"]))
        program, self.kept[number] = self.kept[number], None
        return program, "loaded"


class Gullible(Programs):
    """Accepts any program."""

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        return ProgramCheck(ProgramFit.ACCEPTED)


class WithPrograms(Fused):
    """A backend with other programs."""

    def __init__(self, programs: Programs, fault: Fault | None = None) -> None:
        super().__init__(fault)
        self.programs = programs

    def get_programs(self) -> IPrograms | None:
        return self.programs


# --- Answers


class CastsAnything(Plain):
    """Says yes to casts to int64, which it cannot prepare."""

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return NoInt64(self.fault)


class NoInt64(Factory):
    """Makes no casts to int64."""

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        if isinstance(operation, Cast) and info.outputs[0].data_type is DataType.SIGNED64:
            raise UnimplementedError("no kernel casts to int64", where="Planted", fix="Use int32")
        return super().create_workload(operation, info)


class CountsElements(Plain):
    """Counts the elements of what it is asked about, which are not always known."""

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        for info in inputs:
            if info is not None and info.shape is not None:
                size = 1
                for dim in info.shape:
                    size *= dim  # type: ignore[operator]  # the fault: it may be None
        return super().supports(operation, inputs, outputs)


class Wordless(Plain):
    """Refuses BatchMatMul without a reason."""

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if isinstance(operation, BatchMatMul):
            return Support(False)
        return super().supports(operation, inputs, outputs)


class Tired(Plain):
    """Refuses convolutions from the 40th question about one on."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = count()

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if isinstance(operation, Convolution2d) and next(self._asked) >= 40:
            return Support.no(ReasonCode.DEVICE, "no contexts are left")
        return super().supports(operation, inputs, outputs)


class NegativeMemory(Plain):
    """Has less than no memory."""

    def get_free_memory(self, device: str) -> int | None:
        return -1


class BuildTime(Plain):
    """Its version is the time of the question."""

    @property
    def version(self) -> str:
        return f"1.0+{time.perf_counter_ns()}"


class OneTile(Plain):
    """Its option sets the tiles of all runtimes; layers that were made for others are wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.tile: object = 4
        self.fault = Tiles(self)

    @property
    def options(self) -> Sequence[BackendOption]:
        return (BackendOption("tile", 4, "Elements in a tile.", minimum=1, maximum=8),)

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        self.tile = options["tile"]
        return self


class Tiles(Fault):
    """Layers go by the tile of now."""

    def __init__(self, backend: OneTile) -> None:
        self._backend = backend

    def wrap(self, step: Step) -> IWorkload:
        tile = self._backend.tile

        def execute(inputs: Handles, outputs: Outputs) -> None:
            step.right.execute(inputs, outputs)
            if tile != self._backend.tile:
                spoil_tensor(outputs[0])

        return FunctionWorkload(execute)


# --- Manners


class DoesBefore(Plain):
    """Does something each time that it makes a factory of workloads."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self._act = act

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self._act()
        return super().create_workload_factory(network)


class DoesOnUnload(IBackendContext):
    """Does something when a network is unloaded."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    def after_unload_network(self, network_id: int) -> None:
        self._act()


def filter_warnings() -> None:
    """Ignore the warnings of the whole application."""
    warnings.simplefilter("ignore")


class KeepsConstants(Plain):
    """Keeps the constants of all networks."""

    def __init__(self) -> None:
        super().__init__()
        self._left: list[Array] = []

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return Hoarding(self.fault, self._left)


class Hoarding(Factory):
    """Keeps the constants of its layers."""

    def __init__(self, fault: Fault, left: list[Array]) -> None:
        super().__init__(fault)
        self._left = left

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        self._left.extend(constant for constant in info.constants if constant is not None)
        return super().create_workload(operation, info)


BLIND_FAULTS: dict[str, Planted] = {
    **BLIND_VALUE_FAULTS,
    **BLIND_SUBTLE_FAULTS,
    **BLIND_OBJECT_FAULTS,
    "blind-constants/address": Planted("FullyConnected/", lambda: Plain(KeptConstants(by_address))),
    "blind-constants/name": Planted(
        "contract/contents/networks", lambda: Plain(KeptConstants(by_name))
    ),
    "blind-constants/ends": Planted(
        "contract/contents/networks", lambda: Plain(KeptConstants(by_ends))
    ),
    "blind-constants/packed-once": Planted("FullyConnected/", lambda: Plain(PackedOnce())),
    "blind-memory/remembers": Planted("contract/contents/executions", lambda: Plain(Remembers())),
    "blind-memory/in-place": Planted("Activation/", lambda: Plain(InPlace())),
    "blind-memory/assumes-zeros": Planted("Pad/", lambda: Plain(AssumesZeros())),
    "blind-memory/ring": Planted("pattern/many-at-once", Ring),
    "blind-memory/short-lives": Planted("contract/arenas/", PlansItself),
    "blind-memory/raw-copy": Planted("contract/tensors/", CopiesRaw),
    "blind-memory/full-bytes": Planted("Comparison/", lambda: Plain(FullBytes())),
    "blind-memory/ascii": Planted("String", Latin),
    "blind-time/slow-start": Planted("contract/threads/", lambda: Plain(SlowStart())),
    "blind-time/one-thread": Planted("contract/threads/", lambda: Plain(OneThread())),
    "blind-time/early": Planted(
        "contract/executions/bound", lambda: Plain(Queues(lambda _: Done()))
    ),
    "blind-time/no-order": Planted("contract/threads/", lambda: Plain(Queues(Joined))),
    "blind-time/swallows": Planted("contract/executions/failures", lambda: Plain(Swallows())),
    "blind-time/uncancelled": Planted("contract/executions/executions-stop", Uncancelled),
    "blind-flow/runs-once": Planted("While/", lambda: Flow(RunsOnce())),
    "blind-flow/unrolled": Planted("While/", lambda: Flow(Unrolled())),
    "blind-flow/outer-condition": Planted("If/", lambda: Flow(OuterCondition())),
    "blind-flow/stale-else": Planted("If/", lambda: Flow(StaleElse())),
    "blind-program/swapped-outputs": Planted("contract/graphs/", lambda: Fused(SwappedOutputs())),
    "blind-program/fuses-seen": Planted("contract/compiled/patterns", lambda: Fused(FusesSeen())),
    "blind-program/same-operand": Planted(
        "contract/compiled/patterns", lambda: Fused(SameOperand())
    ),
    "blind-program/spent": Planted(
        "contract/compiled/kept", lambda: WithPrograms(SpentPrograms(), Spent())
    ),
    "blind-program/loaded-once": Planted("contract/compiled/", lambda: WithPrograms(LoadedOnce())),
    "blind-program/gullible": Planted("contract/compiled/saved", lambda: WithPrograms(Gullible())),
    "blind-answer/casts": Planted("Cast/", CastsAnything),
    "blind-answer/counts": Planted("contract/support/", CountsElements),
    "blind-answer/wordless": Planted("contract/support/", Wordless),
    "blind-answer/tired": Planted("contract/support/answers-do", Tired),
    "blind-answer/free-memory": Planted("contract/identity/", NegativeMemory),
    "blind-answer/version": Planted("contract/identity/", BuildTime),
    "blind-answer/one-tile": Planted("contract/runtimes/", OneTile),
    "blind-manners/warnings": Planted(
        "contract/process/settings", lambda: DoesBefore(filter_warnings)
    ),
    "blind-manners/collector": Planted("contract/process/settings", lambda: DoesBefore(gc.disable)),
    "blind-manners/umask": Planted(
        "contract/process/settings", lambda: DoesBefore(lambda: os.umask(0o077))
    ),
    "blind-manners/unload": Planted(
        "contract/process/nothing",
        lambda: Plain(context=DoesOnUnload(lambda: os.write(1, b"unloaded\n"))),
    ),
    "blind-manners/constants": Planted("contract/gauges/nothing-grows-from-load", KeepsConstants),
}
"""By class and name."""
