"""A backend as the core sees it: what never changes is read once, every call is contained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from armpy.backend import (
    NO_OPTIONS,
    BackendOption,
    Capabilities,
    Capability,
    DeviceFigures,
    DeviceInfo,
    DeviceMemoryRequest,
    Extension,
    IBackendCache,
    IBackendContext,
    IBackendInternal,
    IBackendModelContext,
    IBackendProfilingContext,
    ICustomAllocator,
    IDeviceMemory,
    ILayerSupport,
    IMemoryManager,
    IPrograms,
    IWorkloadFactory,
    NetworkResources,
    OptimizationViews,
    OptionScope,
    OptionValues,
    PreparationRequest,
    has_matching_capability,
)
from armpy.backend.options import default_options
from armpy.plugins.proxy.facts import DEVICE_OPTION, entries_of, read_facts
from armpy.plugins.proxy.guarded_call import ask_method
from armpy.plugins.proxy.memory import DeviceMemoryProxy
from armpy.plugins.proxy.names import is_later
from armpy.types import BackendId

_NOTHING = type(None)
_C = IBackendInternal


MethodT = TypeVar("MethodT", bound=Callable[..., Any])  # Any: of any answer


def _asks(method: MethodT, *kinds: type) -> MethodT:
    """A method that asks the wrapped backend; its answer has to be of one of these kinds."""
    name = method.__name__

    def asked(self: BackendProxy, *args: object) -> object:
        if is_later("IBackendInternal", name, self.facts.api_version):
            # A method of that name in the backend is its own, as it was written before.
            return method(self.wrapped, *args)
        arguments = map(self._with_every_option, args)
        return ask_method(self.facts.backend_id, kinds, self.wrapped, name, *arguments)

    # Help shows the contract's text, as if the method were written out.
    asked.__name__, asked.__doc__ = name, method.__doc__
    return asked  # type: ignore[return-value]  # which it is called like


class BackendProxy(IBackendInternal):
    """Proxy of a backend that calls it through the plugin boundary.

    Raises BackendError if it raises, or says something of itself that cannot be; from any method,
    if the backend's raises or returns something of the wrong type.

    Attributes
    ----------
    facts : BackendFacts
        Its description of itself, read once.
    wrapped : IBackendInternal
        The backend itself.
    """

    runtime_options: OptionValues = NO_OPTIONS
    """Options of the runtime that it was made for."""

    def __init__(self, backend: IBackendInternal) -> None:
        self.wrapped = backend
        self.facts = read_facts(backend)

    def get_id(self) -> BackendId:
        return self.facts.backend_id

    def get_api_version(self) -> str:
        return self.facts.api_version

    @property
    def version(self) -> str:
        """As it was when the backend was loaded."""
        return self.facts.version

    def get_devices(self) -> tuple[DeviceInfo, ...]:
        return self.facts.devices

    @property
    def device(self) -> DeviceInfo:
        """The device that the application has chosen, else the first one."""
        devices = self.facts.devices
        chosen = self.runtime_options.get(DEVICE_OPTION)
        return next((device for device in devices if device.name == chosen), devices[0])

    def get_capabilities(self) -> Capabilities:
        return self.facts.capabilities

    @property
    def options(self) -> Sequence[BackendOption]:
        """As they were when the backend was loaded."""
        return self.facts.options

    @property
    def extensions(self) -> Sequence[Extension]:
        """As they were when the backend was loaded."""
        return self.facts.extensions

    @property
    def supported_extensions(self) -> Sequence[str]:
        """As they were when the backend was loaded."""
        return self.facts.supported_extensions

    def for_runtime(self, options: OptionValues) -> BackendProxy:
        variant = ask_method(self.get_id(), IBackendInternal, self.wrapped, "for_runtime", options)
        # The backend's facts are known already, and are not asked for again.
        proxy = self if variant is self.wrapped else BackendProxy(variant)
        proxy.runtime_options = options
        return proxy

    def get_caches(self) -> Sequence[IBackendCache]:
        return entries_of(self.get_id(), self.wrapped, "get_caches", IBackendCache)

    def get_diagnosis(self) -> Sequence[str]:
        return entries_of(self.get_id(), self.wrapped, "get_diagnosis", str)

    def get_handle_factory_preferences(self) -> Sequence[str]:
        return entries_of(self.get_id(), self.wrapped, "get_handle_factory_preferences", str)

    def allocate_device_memory(self, request: DeviceMemoryRequest) -> DeviceMemoryProxy | None:
        kinds: tuple[type[Any], ...] = (IDeviceMemory, _NOTHING)  # Any: they have no common name
        memory = ask_method(self.get_id(), kinds, self.wrapped, "allocate_device_memory", request)
        return None if memory is None else DeviceMemoryProxy(self.get_id(), memory)

    # All others ask, and an answer has to be of one of these kinds.
    create_backend_context = _asks(_C.create_backend_context, IBackendContext, _NOTHING)
    create_backend_profiling_context = _asks(
        _C.create_backend_profiling_context, IBackendProfilingContext, _NOTHING
    )
    create_backend_specific_model_context = _asks(
        _C.create_backend_specific_model_context, IBackendModelContext, _NOTHING
    )
    create_memory_manager = _asks(_C.create_memory_manager, IMemoryManager, _NOTHING)
    create_workload_factory = _asks(_C.create_workload_factory, IWorkloadFactory)
    get_default_allocator = _asks(_C.get_default_allocator, ICustomAllocator, _NOTHING)
    get_free_memory = _asks(_C.get_free_memory, int, _NOTHING)
    get_typical_figures = _asks(_C.get_typical_figures, DeviceFigures, _NOTHING)
    get_layer_support = _asks(_C.get_layer_support, ILayerSupport)
    get_programs = _asks(_C.get_programs, IPrograms, _NOTHING)
    optimize_subgraph_view = _asks(_C.optimize_subgraph_view, OptimizationViews)
    register_tensor_handle_factories = _asks(_C.register_tensor_handle_factories, object)
    use_custom_memory_allocator = _asks(_C.use_custom_memory_allocator, bool)

    def overrides(self, name: str) -> bool:
        """Return whether the backend has a method of its own in the place of the contract's."""
        return overrides(self.wrapped, name)

    def _with_every_option(self, value: object) -> object:
        if not isinstance(value, (PreparationRequest, NetworkResources)):
            return value
        defaults = default_options(self.facts.options, OptionScope.MODEL)
        if defaults.keys() <= value.model_options.keys():
            return value
        return replace(value, model_options=MappingProxyType({**defaults, **value.model_options}))


def overrides(backend: IBackendInternal, name: str) -> bool:
    """Return whether a backend has a method of its own in the place of the contract's."""
    # A proxy itself has every method of the contract; the wrapped backend is asked.
    if isinstance(backend, BackendProxy):
        return backend.overrides(name)
    method = getattr(backend, name, None)
    return getattr(method, "__func__", None) is not getattr(IBackendInternal, name)


def device_of(backend: IBackendInternal) -> DeviceInfo:
    """The device that a backend runs layers on: the application's choice, else its first."""
    return backend.device if isinstance(backend, BackendProxy) else backend.get_devices()[0]


def keeps_programs(backend: IBackendInternal, *, has_token: bool = False) -> bool:
    """Return whether the core keeps a backend's programs.

    Those of a backend with a cache of its own only in files that an application names by a token,
    as NNAPI's do: in the core's cache they would lie on the disk twice.
    """
    capabilities = backend.get_capabilities()
    if not has_token and has_matching_capability(Capability.OWN_CACHE, True, capabilities):
        return False
    return backend.get_programs() is not None
