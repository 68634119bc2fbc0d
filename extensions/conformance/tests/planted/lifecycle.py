"""Faults of networks, runtimes, contexts, options and allocators that get in each other's way."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any  # arguments of `Plain`

from armpy.backend import (
    BackendOption,
    DefaultAllocator,
    IBackendContext,
    IBackendInternal,
    IBackendModelContext,
    ICustomAllocator,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptionScope,
    OptionValues,
    TensorHandleFactoryRegistry,
)
from armpy.errors import BackendError
from armpy.ops.operation import Array
from armpy_testing.backends.fake_backends import (
    CountingManager,
    FunctionWorkload,
    Handles,
    Outputs,
    Step,
)

from .declarations import OPERATIONS
from .device import OwnMemory, WrappingFactory
from .planting import Planted
from .shapes import Call, Factory, Fault, Plain, Wrapped, spoil, spoil_tensor


class Sometimes(Fault):
    """Results are wrong where a function of the tensors says so, which is asked beforehand."""

    def __init__(self, is_wrong: Callable[[Handles, Outputs], bool]) -> None:
        self._is_wrong = is_wrong

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        is_wrong = self._is_wrong(inputs, outputs)
        step.right.execute(inputs, outputs)
        if is_wrong:
            for handle in outputs:
                spoil_tensor(handle)


class Few(Plain):
    """Does a few operations, and counts the networks that it was asked to make something for."""

    def __init__(self, fault: Fault | None = None, **named: Any) -> None:
        super().__init__(fault, operations=OPERATIONS, **named)
        self.num_made = 0


# --- Networks


class OnlySome(Few):
    """Makes what so many networks need, and no more."""

    most = 40

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self.num_made += 1
        if self.num_made > self.most:
            raise BackendError("there are no more slots")
        return super().create_workload_factory(network)


class OnlyOne(OnlySome):
    """Makes what one network needs."""

    most = 1


class OnlyTheNewest(Few):
    """Computes right for the network that was loaded last."""

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self.num_made += 1
        number = self.num_made
        return Factory(Sometimes(lambda *_: number != self.num_made))


class OneLoadAtATime(Few):
    """Cannot prepare two networks at once."""

    def __init__(self) -> None:
        super().__init__()
        self._busy = threading.Lock()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        if not self._busy.acquire(blocking=False):
            raise BackendError("another network is being prepared")
        try:
            time.sleep(0.05)
            return super().create_workload_factory(network)
        finally:
            self._busy.release()


class AcquiredOnce(CountingManager):
    """Memory that cannot be acquired again."""

    def acquire(self) -> None:
        if self.acquired:
            raise BackendError("acquired twice")
        super().acquire()


class WrongWhenHeldAgain(Few):
    """Has lost something when its memory is acquired for the second time."""

    def __init__(self) -> None:
        self.manager = CountingManager()
        super().__init__(memory_manager=self.manager)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        first = self.manager.acquired
        return Factory(Sometimes(lambda *_: self.manager.acquired - first > 2))


class TableOf(Plain):
    """Has room for so many networks; the next one takes the place of the first."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room
        self._num_loaded = 0
        self._alive: set[int] = set()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self._num_loaded += 1
        return Factory(_Placed(self._room, self._num_loaded, self._alive))


@dataclass
class _Placed(Fault):
    """One network of a table."""

    room: int
    number: int
    alive: set[int]

    def wrap(self, step: Step) -> IWorkload:
        self.alive.add(self.number)
        workload = FunctionWorkload(partial(self.execute, step))
        weakref.finalize(workload, self.alive.discard, self.number)
        return workload

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)
        if len(self.alive) > self.room:
            spoil_tensor(outputs[0])


class Remembers(Fault):
    """Knows, by address, which tensors were written and how often each was read."""

    def __init__(self, is_wrong: Callable[[set[int], list[int]], bool]) -> None:
        self._is_wrong = is_wrong
        self._written: set[int] = set()
        self._read: list[int] = []

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        targets = {_address(handle) for handle in outputs}
        sources = {_address(handle) for handle in inputs if handle is not None}
        read_before = [address for address in self._read if address in sources]
        is_wrong = self._is_wrong(self._written & sources, read_before)
        self._written.update(targets)
        self._read = [a for a in self._read if a not in targets] + list(sources)
        step.right.execute(inputs, outputs)
        if is_wrong:
            spoil_tensor(outputs[0])


class RemembersTensors(Few):
    """Results of a network are wrong by what it has written and read before."""

    def __init__(self, is_wrong: Callable[[set[int], list[int]], bool]) -> None:
        super().__init__()
        self._is_wrong = is_wrong

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return Factory(Remembers(self._is_wrong))


def _address(handle: ITensorHandle) -> int:
    """Where a tensor lies."""
    return int(handle.map().ctypes.data)


class OneShape(Fault):
    """Keeps its preparation of an operation, whatever shape comes next."""

    def __init__(self) -> None:
        self._kept: dict[str, int] = {}

    def wrap(self, step: Step) -> IWorkload:
        info = step.info.outputs[0]
        size = info.known_shape[0] if info.known_shape else 0
        is_same = self._kept.setdefault(f"{step.operation} {info.rank}", size) == size
        return Sometimes(lambda *_: not is_same).wrap(step)


# --- Runtimes


class Closes(IBackendContext, IBackendModelContext):
    """Marks its backend as closed with itself."""

    def __init__(self, backend: GoesWithTheFirstRuntime | ClosesForAll) -> None:
        self._backend = backend

    def close(self) -> None:
        self._backend.is_closed = True


class GoesWithTheFirstRuntime(Few):
    """Has lost something when one of its runtimes has gone."""

    is_closed = False

    def create_backend_context(self, options: Mapping[str, object]) -> IBackendContext | None:
        return Closes(self)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return Factory(Sometimes(lambda *_: self.is_closed))


class _Ending(Wrapped):
    """Works as long as nothing of its backend was closed."""

    owner: ClosesForAll

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        if self.owner.is_closed:
            raise BackendError("the device was closed")
        super().execute(inputs, outputs)


class ClosesForAll(OwnMemory):
    """Has one device for all runtimes, which the first context closes."""

    is_closed = False

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        return self

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        right = super().create_workload_factory(network)
        return WrappingFactory(right, type("Ending", (_Ending,), {"owner": self}))

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        return Closes(self)


class ClosesForAllNetworks(ClosesForAll):
    """Has one context for all networks."""

    @property
    def options(self) -> Sequence[BackendOption]:
        return (BackendOption("fast", False, "Whether fast.", OptionScope.MODEL),)

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        return None

    def create_backend_specific_model_context(
        self, model_options: OptionValues
    ) -> IBackendModelContext | None:
        return Closes(self)


class Renamed(OwnMemory):
    """Calls itself otherwise for a runtime."""

    name = "ExampleDevice"

    def get_id(self) -> str:
        return self.name

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        renamed = type(self)(device=self.device)
        renamed.name = "ExampleDevice2"
        return renamed


# --- Options


class LastOptionWins(Plain):
    """Looks at the options of the runtime that was made last."""

    now = False

    def __init__(self, is_exact: bool = False) -> None:
        super().__init__()
        self._is_exact = is_exact

    @property
    def options(self) -> Sequence[BackendOption]:
        return (BackendOption("exact", False, "Whether sums are exact."),)

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        LastOptionWins.now = bool(options["exact"])
        return LastOptionWins(LastOptionWins.now)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        planned = self._is_exact

        class Planned(Fault):
            def after(self, call: Call) -> None:
                if planned is not LastOptionWins.now:
                    spoil(call.outputs[0])

        return Factory(Planned())


class OptionsStick(OwnMemory):
    """Goes by the options of the runtime that came last."""

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        self.memory_bytes = options["memory_bytes"]
        return self


class DefaultsAreWrong(Few):
    """Computes something else when the application gives options, whatever they are."""

    @property
    def options(self) -> Sequence[BackendOption]:
        return (BackendOption("fast", False, "Whether fast.", OptionScope.MODEL),)

    def create_backend_specific_model_context(
        self, model_options: OptionValues
    ) -> IBackendModelContext:
        return IBackendModelContext()  # made where the application gives options alone

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return Factory(Sometimes(lambda *_: network.model_context is not None))


class FastIsWrong(DefaultsAreWrong):
    """Computes something else for one choice."""

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return Factory(Sometimes(lambda *_: bool(network.model_options.get("fast"))))


class FastFails(DefaultsAreWrong):
    """Refuses one choice, and does not say which."""

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        if network.model_options.get("fast"):
            raise BackendError("no")
        return Few.create_workload_factory(self, network)


# --- Allocators


class AcceptsAllocatorsAndForgetsThem(OwnMemory):
    """Says yes, and takes its own memory all the same."""

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        super().register_tensor_handle_factories(registry, NetworkResources())


class NeverFrees(OwnMemory):
    """Takes memory from an allocator and keeps it."""

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        right = network.allocator

        class Keeping(DefaultAllocator):
            def allocate(self, size_bytes: int, alignment_bytes: int = 64) -> Array:
                assert right is not None
                return right.allocate(size_bytes, alignment_bytes)

        resources = NetworkResources(allocator=None if right is None else Keeping())
        super().register_tensor_handle_factories(registry, resources)


class AllocatorsStick(OwnMemory):
    """Uses the allocator that it was asked about last."""

    _kept: list[ICustomAllocator] = []  # noqa: RUF012 - its fault

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool:
        self._kept.append(allocator)
        return super().use_custom_memory_allocator(allocator)

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        resources = NetworkResources(allocator=self._kept[-1] if self._kept else None)
        super().register_tensor_handle_factories(registry, resources)


LIFECYCLE_FAULTS: dict[str, Planted] = {
    "lifecycle/table-of-16": Planted(
        "contract/lifecycle/many-networks-at-once", lambda: TableOf(16), said="40 networks loaded"
    ),
    "options/last-runtime-wins": Planted(
        "contract/alike/runtimes-differ-in-one-option", LastOptionWins, said="with two runtimes"
    ),
    "runtimes/renamed": Planted(
        "contract/runtimes/for-runtime-keeps-who-it-is",
        Renamed,
        said="get_id is 'ExampleDevice2', not 'ExampleDevice'",
    ),
    "runtimes/options-stick": Planted(
        "contract/runtimes/for-runtime-leaves-others-alone",
        OptionsStick,
        said="changes memory_bytes of the",
    ),
    "runtimes/accepts-allocators-and-forgets-them": Planted(
        "contract/runtimes/allocators-give-and-get-back",
        AcceptsAllocatorsAndForgetsThem,
        said="was asked 0 times for 2 working memories",
    ),
    "runtimes/never-frees": Planted(
        "contract/runtimes/allocators-give-and-get-back",
        NeverFrees,
        said="pieces of the allocator's memory were not given back",
    ),
    "runtimes/allocators-stick": Planted(
        "contract/runtimes/allocators-do-not-stick",
        AllocatorsStick,
        said="is used for a network that was given none",
    ),
    "runtimes/closes-for-all": Planted(
        "contract/runtimes/contexts-can-be-closed", ClosesForAll, said="the device was closed"
    ),
    "runtimes/closes-for-all-networks": Planted(
        "contract/runtimes/model-contexts-can-be-closed",
        ClosesForAllNetworks,
        said="the device was closed",
    ),
    "lifecycle/only-one": Planted(
        "contract/lifecycle/objects-can-be-made-again", OnlyOne, said="there are no more slots"
    ),
    "lifecycle/only-some": Planted(
        "contract/lifecycle/load-and-unload-again-and-again",
        OnlySome,
        said="there are no more slots",
    ),
    "lifecycle/only-the-newest": Planted(
        "contract/lifecycle/several-networks-at-once",
        OnlyTheNewest,
        said="with several networks loaded",
    ),
    "lifecycle/goes-with-the-first-runtime": Planted(
        "contract/lifecycle/several-runtimes",
        GoesWithTheFirstRuntime,
        said="after another runtime has gone",
    ),
    "threads/one-load-at-a-time": Planted(
        "contract/threads/threads-load-networks",
        OneLoadAtATime,
        said="another network is being prepared",
    ),
    "memory/acquired-once": Planted(
        "contract/memory/manager-can-be-used-again",
        lambda: Few(memory_manager=AcquiredOnce()),
        said="acquired twice",
    ),
    "memory/wrong-when-held-again": Planted(
        "contract/memory/memory-is-held-while-running",
        WrongWhenHeldAgain,
        said="in execution 3, the output",
    ),
    "options/defaults-are-wrong": Planted(
        "contract/options/defaults-are-accepted",
        DefaultsAreWrong,
        said="with every option at its default",
    ),
    "options/fast-is-wrong": Planted(
        "contract/options/choices-are-accepted", FastIsWrong, said="with fast = True, the output"
    ),
    "graphs/remembers-in-two-layers": Planted(
        "contract/graphs/two-layers",
        lambda: RemembersTensors(lambda written, _: bool(written)),
        said="with two layers, the output",
    ),
    "graphs/remembers-in-branches": Planted(
        "contract/graphs/branches",
        lambda: RemembersTensors(lambda written, read: bool(written and read)),
        said="with branches, the output",
    ),
    "graphs/remembers-in-separate-parts": Planted(
        "contract/graphs/separate-parts",
        lambda: RemembersTensors(lambda written, read: not written and bool(read)),
        said="with two separate layers",
    ),
    "graphs/one-shape": Planted(
        "contract/graphs/another-shape-at-the-call", Few, OneShape, "with an open first dimension"
    ),
}
"""By class and name."""
