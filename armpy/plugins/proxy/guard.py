"""A backend as the core sees it: what never changes is read once, every call is contained."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

from armpy.backend import (
    NO_OPTIONS,
    BackendOption,
    Capabilities,
    CompiledFiles,
    DeviceFigures,
    DeviceMemoryRequest,
    Extension,
    ExtensionOperand,
    ExtensionOperation,
    ExternalMemory,
    HostTensorHandleFactory,
    IBackendCache,
    IBackendContext,
    IBackendInternal,
    IBackendModelContext,
    IBackendProfiling,
    IBackendProfilingContext,
    ICustomAllocator,
    IDeviceMemory,
    ILayerSupport,
    IMemoryManager,
    IPrograms,
    ITensorArena,
    ITensorHandle,
    ITensorHandleFactory,
    IWorkloadFactory,
    Lifetime,
    MemorySource,
    NetworkResources,
    OptimizationViews,
    OptionScope,
    OptionValues,
    PerformanceFigures,
    PreparationRequest,
    Support,
    TensorHandleFactoryRegistry,
)
from armpy.errors import BackendError, InvalidArgumentError
from armpy.graph import SubgraphView
from armpy.ops.operation import Array, Operation
from armpy.plugins.proxy.deprecated import warn_of_deprecated
from armpy.plugins.proxy.figure_checks import check_figures
from armpy.plugins.proxy.guarded_call import (
    ask_backend,
    ask_method,
    call_backend,
    call_method,
    describe,
    exact,
    is_a,
    read_backend,
)
from armpy.tensor import TensorInfo
from armpy.types import BackendId, DataType, DeviceType

_figures: weakref.WeakKeyDictionary[
    IBackendInternal, tuple[DeviceFigures | None] | BackendError
] = weakref.WeakKeyDictionary()
"""What backends have declared of their devices, which is to be the same at any time."""

T = TypeVar("T")
_NOTHING = type(None)

MAX_CACHE_FILES = 32
"""Most files of either kind that a backend keeps of a part.

References
----------
NNAPI ``Constant::MAX_NUMBER_OF_CACHE_FILES``.
"""


class BackendProxy(IBackendInternal):
    """Another backend, behind the plugin boundary.

    Parameters
    ----------
    backend : IBackendInternal

    Raises
    ------
    BackendError
        If a property raises or is of the wrong type; from any method, if the backend's
        raises or returns something of the wrong type.
    """

    runtime_options: OptionValues = NO_OPTIONS
    """What it was made for a runtime with."""

    def __init__(self, backend: IBackendInternal) -> None:
        self._backend = backend
        name = type(backend).__name__
        self._id = read_backend(name, backend, "backend_id", str)
        self.api_version = read_backend(self._id, backend, "api_version", str)
        self._version = read_backend(self._id, backend, "version", str)
        self._device_type = read_backend(self._id, backend, "device_type", DeviceType)
        self._options = self._read_options()
        self._extensions = self._read_extensions()
        self._extension_names = self._read_extension_names()
        self._num_cache_files = self._read_count("number_of_cache_files")
        self._num_data_cache_files = self._read_count("number_of_data_cache_files")
        self._feature_level = read_backend(self._id, backend, "feature_level", int)
        self._capabilities = self._read_capabilities()

    def _ask(self, kind: type[T], name: str, *args: object) -> T:
        """Call a method that must return something of a kind."""
        return ask_method(self._id, kind, self._backend, name, *args)

    def _ask_or_none(self, kind: type[T], name: str, *args: object) -> T | None:
        """Call a method that may return None instead."""
        kinds: tuple[type[Any], ...] = (kind, _NOTHING)  # Any: NoneType and T have no common name
        answer: T | None = ask_method(self._id, kinds, self._backend, name, *args)
        return answer

    def _entries(self, member: str, kind: type[T], owner: object) -> tuple[T, ...]:
        """A sequence that a property is or a method returns, and what is in it."""

        def entries() -> object:
            found = getattr(owner, member)
            found = found() if callable(found) else found
            # A string is a sequence too, but not of what was asked for.
            is_list = isinstance(found, Sequence) and not isinstance(found, (str, bytes))
            return tuple(found) if is_list else found

        entries.__name__ = member
        items = ask_backend(self._id, tuple, entries)
        for item in items:
            if not is_a(item, kind):
                raise BackendError(
                    "an entry has the wrong type",
                    where=f"{self._id} / {member}",
                    expected=kind.__name__,
                    actual=describe(item),
                )
        return tuple(map(exact, items))  # type: ignore[arg-type]  # of the kind that was checked

    def _read_count(self, name: str) -> int:
        """How many files the backend says that it keeps of each part."""
        count = read_backend(self._id, self._backend, name, int)
        if not 0 <= count <= MAX_CACHE_FILES:
            raise BackendError(
                "the number of cache files cannot be used",
                where=f"{self._id} / {name}",
                expected=f"0 to {MAX_CACHE_FILES}",
                actual=str(count),
            )
        return count

    def _read_options(self) -> tuple[BackendOption, ...]:
        """The declared options, if they can be used."""
        declared = self._entries("options", BackendOption, self._backend)

        def options() -> str:
            return next(filter(None, map(_why_unusable, declared)), "")

        problem = call_backend(self._id, options)
        names = [option.name for option in declared]
        if not problem and len(set(names)) < len(names):
            problem = "two options have the same name"
        if problem:
            raise BackendError(problem, where=f"{self._id} / options", actual=describe(names))
        return declared

    def _read_extensions(self) -> tuple[Extension, ...]:
        """The declared extensions, what they create being checked."""
        declared = self._entries("extensions", Extension, self._backend)
        names = [extension.name for extension in declared]
        if len(set(names)) < len(names):
            where = f"{self._id} / extensions"
            raise BackendError("two extensions have the same name", where=where, actual=str(names))
        return tuple(
            replace(extension, operations=tuple(map(self._guarded, extension.operations)))
            for extension in declared
        )

    def _read_extension_names(self) -> tuple[str, ...]:
        """The extensions whose operations it can run; those that it declares are among them."""
        names = self._entries("supported_extensions", str, self._backend)
        for extension in self._extensions:
            if extension.name not in names:
                raise BackendError(
                    f"the extension '{extension.name}' is declared and not supported",
                    where=f"{self._id} / supported_extensions",
                    expected=f"it among {describe(names)}",
                )
        return names

    def _guarded(self, operation: ExtensionOperation) -> ExtensionOperation:
        """An extension's operation whose `create` is behind the plugin boundary."""

        def create(
            inputs: Sequence[ExtensionOperand], outputs: Sequence[ExtensionOperand]
        ) -> Operation:
            return ask_method(self._id, Operation, operation, "create", inputs, outputs)

        return replace(operation, create=create)

    def _read_capabilities(self) -> Capabilities:
        """What the backend lists, copied."""

        def get_capabilities() -> object:
            found: object = self._backend.get_capabilities()
            if isinstance(found, Mapping):
                return dict(found)
            are_pairs = isinstance(found, Sequence) and not isinstance(found, (str, bytes))
            if are_pairs and all(type(one) is tuple and len(one) == 2 for one in found):  # type: ignore[attr-defined]
                return dict(found)  # type: ignore[call-overload]  # as was just checked
            return found

        capabilities = ask_backend(self._id, Mapping, get_capabilities)
        warn_of_deprecated(self._id, self._backend, capabilities)
        return capabilities

    @property
    def backend_id(self) -> BackendId:
        """As it was when the backend was loaded."""
        return self._id

    @property
    def version(self) -> str:
        """As it was when the backend was loaded."""
        return self._version

    @property
    def device_type(self) -> DeviceType:
        """As it was when the backend was loaded."""
        return self._device_type

    @property
    def options(self) -> Sequence[BackendOption]:
        """As they were when the backend was loaded."""
        return self._options

    @property
    def extensions(self) -> Sequence[Extension]:
        """As they were when the backend was loaded."""
        return self._extensions

    @property
    def supported_extensions(self) -> Sequence[str]:
        """As they were when the backend was loaded."""
        return self._extension_names

    @property
    def number_of_cache_files(self) -> int:
        """As it was when the backend was loaded."""
        return self._num_cache_files

    def get_caches(self) -> Sequence[IBackendCache]:
        return self._entries("get_caches", IBackendCache, self._backend)

    def get_capabilities(self) -> Capabilities:
        """As they were when the backend was loaded."""
        return self._capabilities

    def get_performance(self, data_type: DataType) -> PerformanceFigures:
        return self._ask(PerformanceFigures, "get_performance", data_type)

    def create_workload_factory(self, memory_manager: IMemoryManager | None) -> IWorkloadFactory:
        return self._ask(IWorkloadFactory, "create_workload_factory", memory_manager)

    def create_workload_factory_with_options(
        self, memory_manager: IMemoryManager | None, model_options: OptionValues
    ) -> IWorkloadFactory:
        name = "create_workload_factory_with_options"
        return self._ask(IWorkloadFactory, name, memory_manager, model_options)

    def get_layer_support(self) -> ILayerSupport:
        return self._ask(ILayerSupport, "get_layer_support")

    def get_layer_support_with_options(self, model_options: OptionValues) -> ILayerSupport:
        return self._ask(ILayerSupport, "get_layer_support_with_options", model_options)

    def optimize_subgraph(self, view: SubgraphView) -> OptimizationViews:
        return self._ask(OptimizationViews, "optimize_subgraph", view)

    def optimize_subgraph_with_options(
        self, view: SubgraphView, model_options: OptionValues
    ) -> OptimizationViews:
        name = "optimize_subgraph_with_options"
        return self._ask(OptimizationViews, name, view, model_options)

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        return self._ask_or_none(IBackendContext, "create_backend_context", options)

    def create_backend_model_context(
        self, model_options: OptionValues
    ) -> IBackendModelContext | None:
        name = "create_backend_model_context"
        return self._ask_or_none(IBackendModelContext, name, model_options)

    def create_backend_profiling_context(
        self, options: OptionValues, profiling: IBackendProfiling
    ) -> IBackendProfilingContext | None:
        name = "create_backend_profiling_context"
        return self._ask_or_none(IBackendProfilingContext, name, options, profiling)

    def create_memory_manager(self) -> IMemoryManager | None:
        return self._ask_or_none(IMemoryManager, "create_memory_manager")

    def register_tensor_handle_factories(self, registry: TensorHandleFactoryRegistry) -> None:
        call_method(self._id, self._backend, "register_tensor_handle_factories", registry)

    def get_handle_factory_preferences(self) -> Sequence[str]:
        return self._entries("get_handle_factory_preferences", str, self._backend)

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool | None:
        return self._ask_or_none(bool, "use_custom_memory_allocator", allocator)

    def overrides(self, name: str) -> bool:
        """Whether the backend has a method of its own in the place of the contract's."""
        return overrides(self._backend, name)

    # What goes on to an older method by default does so here, so that errors name that one.

    def can_use_allocator(self, allocator: ICustomAllocator) -> Support:
        if not self.overrides("can_use_allocator"):
            return super().can_use_allocator(allocator)
        return self._ask(Support, "can_use_allocator", allocator)

    def for_runtime(self, options: OptionValues) -> BackendProxy:
        """The backend for one runtime, behind a guard of its own."""
        made = self._ask(IBackendInternal, "for_runtime", options)
        guarded = self if made is self._backend else BackendProxy(made)
        guarded.runtime_options = options
        return guarded

    def create_workload_factory_for_network(self, network: NetworkResources) -> IWorkloadFactory:
        name = "create_workload_factory_for_network"
        if not self.overrides(name):
            return super().create_workload_factory_for_network(network)
        return self._ask(IWorkloadFactory, name, network)

    def register_tensor_handle_factories_for_network(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        name = "register_tensor_handle_factories_for_network"
        if self.overrides(name):
            call_method(self._id, self._backend, name, registry, network)
        else:
            super().register_tensor_handle_factories_for_network(registry, network)

    def create_profiling_context(
        self, options: OptionValues, profiling: IBackendProfiling
    ) -> IBackendProfilingContext | None:
        name = "create_profiling_context"
        if not self.overrides(name):
            return super().create_profiling_context(options, profiling)
        return self._ask_or_none(IBackendProfilingContext, name, options, profiling)

    @property
    def feature_level(self) -> int:
        """As it was when the backend was loaded."""
        return self._feature_level

    @property
    def number_of_data_cache_files(self) -> int:
        """As it was when the backend was loaded."""
        return self._num_data_cache_files

    def get_device_figures(self) -> DeviceFigures | None:
        """As they were when they were first asked for, by whichever runtime."""
        try:
            said = _figures.get(self._backend)
            if said is None:
                said = _figures.setdefault(self._backend, self._read_figures())
        except TypeError:  # nothing can refer to it weakly, or tell it from others
            said = self._read_figures()
        if isinstance(said, BackendError):
            raise copy(said)  # which keeps the frames that it is raised by
        return said[0]

    def _read_figures(self) -> tuple[DeviceFigures | None] | BackendError:
        """What the backend declares of its device, or how it failed to."""
        try:
            figures = self._ask_or_none(DeviceFigures, "get_device_figures")
            if figures is None:
                return (None,)

            def get_device_figures() -> DeviceFigures:
                return check_figures(figures, self._id)

            return (call_backend(self._id, get_device_figures),)
        except BackendError as error:
            return error.with_traceback(None)

    def get_programs(self) -> IPrograms | None:
        return self._ask_or_none(IPrograms, "get_programs")

    def optimize_subgraph_for_network(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        name = "optimize_subgraph_for_network"
        if not self.overrides(name):
            return super().optimize_subgraph_for_network(view, request)
        return self._ask(OptimizationViews, name, view, request)

    def save_compiled(
        self, view: SubgraphView, views: OptimizationViews, request: PreparationRequest
    ) -> CompiledFiles | None:
        return self._ask_or_none(CompiledFiles, "save_compiled", view, views, request)

    def load_compiled(
        self, view: SubgraphView, files: CompiledFiles, request: PreparationRequest
    ) -> OptimizationViews:
        return self._ask(OptimizationViews, "load_compiled", view, files, request)

    def allocate_device_memory(self, request: DeviceMemoryRequest) -> DeviceMemoryProxy | None:
        """What the backend makes, behind a guard of its own."""
        made = self._ask_or_none(IDeviceMemory, "allocate_device_memory", request)
        return None if made is None else DeviceMemoryProxy(self._id, made)

    def get_default_allocator(self) -> ICustomAllocator | None:
        return self._ask_or_none(ICustomAllocator, "get_default_allocator")


def overrides(backend: IBackendInternal, name: str) -> bool:
    """Whether a backend has a method of its own in the place of the contract's."""
    if isinstance(backend, BackendProxy):
        return backend.overrides(name)
    method = getattr(backend, name, None)
    return getattr(method, "__func__", None) is not getattr(IBackendInternal, name)


def _why_unusable(option: BackendOption) -> str:
    """What is wrong with an option that a backend declares; empty if nothing."""
    if not isinstance(option.name, str) or not option.name.isidentifier():
        return "the name of an option is not an identifier"
    types = ((option.scope, OptionScope), (option.help, str), (option.choices, tuple))
    for value, kind in types:
        if not isinstance(value, kind):
            return f"the option '{option.name}' has {value!r} in place of a {kind.__name__}"
    try:
        option.check(option.default)
    except InvalidArgumentError as error:
        return f"the default of an option is not allowed: {error}"
    return ""


class HandleFactoryProxy(ITensorHandleFactory):
    """A backend's tensor handle factory, behind the plugin boundary.

    Parameters
    ----------
    backend_id : str
    factory : ITensorHandleFactory

    Raises
    ------
    BackendError
        If a property raises or is of the wrong type.
    """

    def __init__(self, backend_id: BackendId, factory: ITensorHandleFactory) -> None:
        self._backend_id = backend_id
        self._factory = factory
        self._factory_id = read_backend(backend_id, factory, "factory_id", str)
        self._imports = read_backend(backend_id, factory, "import_sources", MemorySource)
        self._exports = read_backend(backend_id, factory, "export_sources", MemorySource)
        kind, host = type(factory), HostTensorHandleFactory
        own = getattr(kind, "import_memory", None)
        # Before 1.2, factories that inherit from the host's stated kinds that it does not import.
        is_hosts = own is host.import_memory and kind.import_sources is not host.import_sources
        self.imports_memory = own is not ITensorHandleFactory.import_memory and not is_hosts
        """Whether it has a way of its own to import memory."""

    @property
    def factory_id(self) -> str:
        """As it was when the network was loaded."""
        return self._factory_id

    @property
    def import_sources(self) -> MemorySource:
        """As they were when the network was loaded."""
        return self._imports

    @property
    def export_sources(self) -> MemorySource:
        """As they were when the network was loaded."""
        return self._exports

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        """Ask the factory."""
        name = "create_tensor_handle"
        return ask_method(self._backend_id, ITensorHandle, self._factory, name, info, memory)

    def create_arena(self, size_bytes: int) -> ITensorArena | None:
        """Ask the factory."""
        kinds: tuple[type[Any], ...] = (ITensorArena, _NOTHING)  # Any: no common name
        arena: ITensorArena | None = ask_method(
            self._backend_id, kinds, self._factory, "create_arena", size_bytes
        )
        return None if arena is None else ArenaProxy(self._backend_id, arena)

    def create_constant_handle(self, info: TensorInfo, elements: Array) -> ITensorHandle:
        """Ask the factory."""
        name = "create_constant_handle"
        return ask_method(self._backend_id, ITensorHandle, self._factory, name, info, elements)

    def can_import(self, info: TensorInfo, memory: ExternalMemory) -> Support:
        """Ask the factory."""
        return ask_method(self._backend_id, Support, self._factory, "can_import", info, memory)

    def import_memory(
        self, info: TensorInfo, memory: ExternalMemory, *, read: bool = True, write: bool = False
    ) -> ITensorHandle:
        """Ask the factory."""

        def import_memory() -> object:
            return self._factory.import_memory(info, memory, read=read, write=write)

        return ask_backend(self._backend_id, ITensorHandle, import_memory)

    def unimport(self, handle: ITensorHandle) -> None:
        """Ask the factory."""
        call_method(self._backend_id, self._factory, "unimport", handle)

    def __eq__(self, other: object) -> bool:
        """Two backends may register one factory."""
        return isinstance(other, HandleFactoryProxy) and other._factory is self._factory

    def __hash__(self) -> int:
        return id(self._factory)


class ArenaProxy(ITensorArena):
    """A backend's arena, behind the plugin boundary.

    Parameters
    ----------
    backend_id : str
    arena : ITensorArena
    """

    def __init__(self, backend_id: BackendId, arena: ITensorArena) -> None:
        self._backend_id = backend_id
        self._arena = arena

    def create_tensor_handle(
        self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int
    ) -> ITensorHandle:
        """Ask the arena."""
        ask = (self._backend_id, ITensorHandle, self._arena, "create_tensor_handle")
        return ask_method(*ask, info, lifetime, offset_bytes)

    def release(self) -> None:
        """Tell the arena."""
        call_method(self._backend_id, self._arena, "release")


class DeviceMemoryProxy(IDeviceMemory):
    """A backend's own buffer, behind the plugin boundary.

    Parameters
    ----------
    backend_id : str
    memory : IDeviceMemory

    Attributes
    ----------
    backend_id : str
    unguarded : IDeviceMemory
        For the backend, which knows its own.
    """

    def __init__(self, backend_id: BackendId, memory: IDeviceMemory) -> None:
        self.backend_id = backend_id
        self.unguarded = memory

    def copy_in_from(self, source: Array) -> None:
        """Tell the buffer."""
        call_method(self.backend_id, self.unguarded, "copy_in_from", source)

    def copy_out_to(self, target: Array) -> None:
        """Ask the buffer."""
        call_method(self.backend_id, self.unguarded, "copy_out_to", target)
