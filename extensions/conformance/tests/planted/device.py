"""The example device, all of whose memory is its own, with parts of other classes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from armpy.backend import (
    BackendOption,
    ITensorArena,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    Lifetime,
    NetworkResources,
    TensorHandleFactoryRegistry,
    WorkloadInfo,
)
from armpy.ops.operation import Operation
from armpy.tensor import TensorInfo
from armpy_testing.example_backends import EXAMPLES

from .shapes import Wrapped

sys.path.append(str(EXAMPLES / "device"))
from armpy_example_device import Device, ExampleDeviceBackend
from armpy_example_device.device import Region
from armpy_example_device.memory import (
    DeviceArena,
    DeviceBuffer,
    DeviceHandleFactory,
    DeviceTensorHandle,
    RegisteredTensorHandle,
)
from armpy_example_device.profiling import Transfers, declare_counters

__all__ = [  # what faults take from the example, beside the names made here
    "Device",
    "DeviceArena",
    "DeviceBuffer",
    "DeviceHandleFactory",
    "DeviceTensorHandle",
    "ExampleDeviceBackend",
    "Region",
    "RegisteredTensorHandle",
    "Transfers",
    "declare_counters",
]


@dataclass
class DeviceState:
    """What the faults of one device remember beyond a single object."""

    copied_in: int | None = None
    """The `id` of the tensor that elements were last copied into."""

    constants: dict[str, ITensorHandle] = field(default_factory=dict)
    """By their descriptions."""

    arenas: dict[int, Region] = field(default_factory=dict)
    """By their sizes."""

    kept: list[object] = field(default_factory=list)
    """What is never given back."""


class RememberingDevice(Device):
    """A device whose memory others can map, with the state of its faults."""

    def __init__(self) -> None:
        super().__init__(is_mappable=True)
        self.state = DeviceState()


def state_of(device: Device) -> DeviceState:
    """The state of a `RememberingDevice`."""
    assert isinstance(device, RememberingDevice)
    return device.state


@dataclass(frozen=True)
class Parts:
    """Classes of a device's objects."""

    factory: type[DeviceHandleFactory] = DeviceHandleFactory
    workload: Callable[[IWorkload], IWorkload] | None = None  # wraps the device's, if there is one


class OwnMemory(ExampleDeviceBackend):
    """The example device.

    `parts`: classes of its objects. With them it has one device for all runtimes, which remembers
    and can be mapped; otherwise each runtime opens a device as its options say.
    """

    def __init__(self, parts: Parts | None = None, device: Device | None = None) -> None:
        super().__init__(device if parts is None else RememberingDevice())
        self._parts = parts or Parts()
        self._has_options = parts is None

    @property
    def options(self) -> Sequence[BackendOption]:
        """None if there is one device for all runtimes, which would read none."""
        return super().options if self._has_options else ()

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        transfers = Transfers(self.device, network.profiling)
        sources = network.input_sources | network.output_sources
        factory = self._parts.factory(self.device, transfers, network.allocator, sources)
        registry.register_factory(factory)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        right = super().create_workload_factory(network)
        wrap = self._parts.workload
        return right if wrap is None else WrappingFactory(right, wrap)


class WrappingFactory(IWorkloadFactory):
    """Makes another factory's workloads, each wrapped."""

    def __init__(self, right: IWorkloadFactory, wrap: Callable[[IWorkload], IWorkload]) -> None:
        self._right = right
        self._wrap = wrap

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        return self._wrap(self._right.create_workload(operation, info))


def with_factories(kind: type[DeviceHandleFactory]) -> Callable[[], Parts]:
    """Handle factories of another class."""
    return partial(Parts, factory=kind)


def with_arenas(kind: type[DeviceArena]) -> Callable[[], Parts]:
    """Arenas of another class."""

    class Factory(DeviceHandleFactory):
        def create_arena(self, size_bytes: int) -> ITensorArena | None:
            return kind(size_bytes, self._device, self._transfers)

    return with_factories(Factory)


def with_handles(kind: type[DeviceTensorHandle]) -> Callable[[], Parts]:
    """Tensors of another class in arenas."""

    class Arena(DeviceArena):
        def create_tensor_handle(
            self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
        ) -> ITensorHandle:
            handle = super().create_tensor_handle(info, lifetime, offset_bytes)
            handle.__class__ = kind  # of the same slots
            return handle

    return with_arenas(Arena)


def with_workloads(kind: type[Wrapped]) -> Callable[[], Parts]:
    """Workloads of a class that wraps the device's."""
    return partial(Parts, workload=kind)
