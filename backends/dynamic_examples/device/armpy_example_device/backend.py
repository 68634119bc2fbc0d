"""The backend as armpy sees it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from armpy.backend import (
    BackendOption,
    Capabilities,
    Capability,
    DeviceInfo,
    DeviceMemoryRequest,
    IBackendContext,
    IBackendInternal,
    IBackendProfiling,
    IBackendProfilingContext,
    ICustomAllocator,
    IDeviceMemory,
    ILayerSupport,
    IWorkloadFactory,
    MemorySource,
    NetworkResources,
    OptionValues,
    PreparationRequest,
    TensorHandleFactoryRegistry,
)
from armpy.errors import BackendCapabilityError
from armpy.types import BackendId, DeviceType
from armpy_example_device.device import DEFAULT_MEMORY_BYTES, Device
from armpy_example_device.layer_support import DeviceLayerSupport
from armpy_example_device.memory import FACTORY_ID, DeviceBuffer, DeviceHandleFactory
from armpy_example_device.profiling import Transfers, declare_counters
from armpy_example_device.workloads import DeviceWorkloadFactory

LEAST_MEMORY_BYTES = 1 << 16


class DeviceContext(IBackendContext):
    """Belongs to one runtime, with which the device is closed."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def close(self) -> None:
        """Close the device."""
        self._device.close()


class ExampleDeviceBackend(IBackendInternal):
    """Some operations on a simulated device.

    Parameters
    ----------
    device : Device, optional
        One that a program has opened itself, for all its runtimes; if left out, every runtime
        opens one as its options say.
    """

    def __init__(self, device: Device | None = None) -> None:
        self._given = device
        self._device = device
        self._lock = threading.Lock()

    def get_id(self) -> BackendId:
        """The name of the entry point."""
        return "ExampleDevice"

    def get_api_version(self) -> str:
        """The version of the contract that it is written for."""
        return "2.8"

    @property
    def version(self) -> str:
        """That of this package."""
        return "1.0.0"

    def get_devices(self) -> Sequence[DeviceInfo]:
        """As an accelerator it is asked before all others."""
        return (DeviceInfo(device_type=DeviceType.ACCELERATOR),)

    @property
    def options(self) -> Sequence[BackendOption]:
        """What a runtime's device is like."""
        return (
            BackendOption(
                "memory_bytes",
                DEFAULT_MEMORY_BYTES,
                "Size of the device's memory.",
                minimum=LEAST_MEMORY_BYTES,
            ),
            BackendOption("mappable_memory", False, "Whether others can map the device's memory."),
            BackendOption("faults", "", "The device's faults, such as fail:3 or out_of_memory."),
        )

    def get_capabilities(self) -> Capabilities:
        """Commands stop between two tiles; arenas may be packed in any way."""
        return {
            Capability.CANCELLABLE_EXECUTION: True,
            Capability.MULTI_AXIS_PACKING: True,
            Capability.SINGLE_AXIS_PACKING: True,
            Capability.NON_CONST_WEIGHTS: True,
        }

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        """A backend with a device of its own, as this one may serve other runtimes."""
        if self._given is not None:
            return self
        backend = type(self)()
        backend._device = Device(
            int(options["memory_bytes"]),
            str(options["faults"]),
            is_mappable=bool(options["mappable_memory"]),
        )
        return backend

    @property
    def device(self) -> Device:
        """The device, opened when it is first asked for."""
        with self._lock:
            if self._device is None:
                self._device = Device()
            return self._device

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        """What closes the device."""
        return DeviceContext(self.device)

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """Operations that the device can run."""
        return DeviceLayerSupport()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """Make what prepares the layers of one network, and measures for its profile."""
        return DeviceWorkloadFactory(self.device, Transfers(self.device, network.profiling))

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        """Add what makes the tensors of one network."""
        transfers = Transfers(self.device, network.profiling)
        sources = network.input_sources | network.output_sources
        registry.register_factory(
            DeviceHandleFactory(self.device, transfers, network.allocator, sources)
        )

    def get_handle_factory_preferences(self) -> Sequence[str]:
        """Tensors in the device's memory."""
        return [FACTORY_ID]

    def allocate_device_memory(self, request: DeviceMemoryRequest) -> IDeviceMemory | None:
        """A tensor that stays in the device's memory; none for one whose size is not known."""
        return DeviceBuffer(request.info, self.device) if request.info.is_fully_shaped else None

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool:
        """Whether the device can use an application's memory where it lies."""
        if allocator.memory_source is MemorySource.MALLOC:
            return True
        text = f"the device cannot use {allocator.memory_source}"
        raise BackendCapabilityError(text, where=self.get_id())

    def create_backend_profiling_context(
        self, options: OptionValues, profiling: IBackendProfiling
    ) -> IBackendProfilingContext | None:
        """Announce the counters; all that is measured goes straight to the profile."""
        declare_counters(profiling)
        return None
