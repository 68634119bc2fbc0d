"""The interface that every backend implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from armpy.backend.caches import IBackendCache
from armpy.backend.capabilities import Capabilities, PerformanceFigures
from armpy.backend.context import IBackendContext, IBackendModelContext, IBackendProfilingContext
from armpy.backend.device_figures import DeviceFigures
from armpy.backend.layer_support import ILayerSupport, ReasonCode, Support
from armpy.backend.memory.device_memory import DeviceMemoryRequest, IDeviceMemory
from armpy.backend.memory.memory import ICustomAllocator, IMemoryManager
from armpy.backend.memory.tensor_handle_factory import TensorHandleFactoryRegistry
from armpy.backend.optimization_views import OptimizationViews
from armpy.backend.options import BackendOption, OptionValues
from armpy.backend.preparation import CompiledFiles, PreparationRequest
from armpy.backend.profiling import IBackendProfiling
from armpy.backend.programs import IPrograms
from armpy.backend.resources import NetworkResources
from armpy.backend.workload import IWorkloadFactory
from armpy.errors import BackendCapabilityError
from armpy.graph import SubgraphView
from armpy.types import BackendId, DataType, DeviceType

if TYPE_CHECKING:  # few backends have extensions
    from armpy.backend.extension import Extension

BACKEND_API_VERSION = "1.6"
"""Version of this contract. A backend made for the same major and at most this minor loads."""


_VAR_ARGUMENTS = 0x04
"""``inspect.CO_VARARGS``, without what is slow to import."""


def _with_parameters(method: Any) -> Any:  # Any: whatever a class holds
    """A method that is given its parameters only if it takes any besides its object."""
    code = getattr(method, "__code__", None)
    if code is None or code.co_argcount != 1 or code.co_flags & _VAR_ARGUMENTS:
        return method

    def create_backend_profiling_context(
        self: IBackendInternal, options: OptionValues, profiling: IBackendProfiling
    ) -> object:
        return method(self)

    create_backend_profiling_context.__doc__ = method.__doc__
    return create_backend_profiling_context


class IBackendInternal(ABC):
    """A backend: a light factory for everything that runs layers on one kind of device.

    Three members must be written: `backend_id`, `create_workload_factory` and
    `get_layer_support`. All others have working defaults. An instance keeps no state that
    the objects it makes depend on.

    Whatever a method raises, or returns against this contract, is contained by the core and
    becomes an error that names the backend and the method; other backends and networks are
    not affected.

    References
    ----------
    Arm NN IBackendInternal.
    """

    api_version: str = BACKEND_API_VERSION
    """The `BACKEND_API_VERSION` that the backend was written for."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Let a profiling context's method without parameters, as before 1.6, be called."""
        super().__init_subclass__(**kwargs)
        name = "create_backend_profiling_context"
        if name in cls.__dict__:
            setattr(cls, name, _with_parameters(cls.__dict__[name]))

    @property
    @abstractmethod
    def backend_id(self) -> BackendId:
        """The backend's name, unique among all backends; not empty and not ``"Unknown"``."""

    @abstractmethod
    def create_workload_factory(self, memory_manager: IMemoryManager | None) -> IWorkloadFactory:
        """Make the factory for one loaded network.

        Parameters
        ----------
        memory_manager : IMemoryManager or None
            What `create_memory_manager` returned for this network.
        """

    @abstractmethod
    def get_layer_support(self) -> ILayerSupport:
        """The object that says which layers this backend can run."""

    @property
    def version(self) -> str:
        """The backend's own version, for reports."""
        return ""

    @property
    def device_type(self) -> DeviceType:
        """Kind of device; decides the order of backends where the caller gives none."""
        return DeviceType.OTHER

    @property
    def options(self) -> Sequence[BackendOption]:
        """The options that the backend understands; any other is an error of the caller."""
        return ()

    @property
    def extensions(self) -> Sequence[Extension]:
        """The vendor extensions that applications can use through it; none by default."""
        return ()

    @property
    def supported_extensions(self) -> Sequence[str]:
        """Reverse-domain names of the vendor extensions whose operations it can run.

        Notes
        -----
        Those of `extensions`, which have to be among them. A backend is only asked about
        operations whose extensions are here.
        """
        return tuple(extension.name for extension in self.extensions)

    @property
    def number_of_cache_files(self) -> int:
        """How many files one compiled network is kept in; 0 if it keeps none."""
        return 0

    def get_caches(self) -> Sequence[IBackendCache]:
        """What it keeps on disk, for the command ``armpy cache``; nothing by default."""
        return ()

    def get_capabilities(self) -> Capabilities:
        """What it can do beyond running layers; see `Capability` for what the core asks about.

        Notes
        -----
        A sequence of pairs of names and values will do as well; since 1.6.

        References
        ----------
        Arm NN IBackendInternal::GetCapabilities.
        """
        return {}

    def get_performance(self, data_type: DataType) -> PerformanceFigures:
        """How fast it says it is for tensors of a data type, against CpuRef.

        Notes
        -----
        Deprecated since 1.1, as the core does not ask it; `get_device_figures` takes its place.
        """
        return PerformanceFigures()

    def create_workload_factory_with_options(
        self, memory_manager: IMemoryManager | None, model_options: OptionValues
    ) -> IWorkloadFactory:
        """Make the factory for a network that the caller gave model options for.

        Parameters
        ----------
        memory_manager : IMemoryManager or None
        model_options : mapping of str to value
            Every declared option of scope MODEL, checked, defaults filled in.

        Notes
        -----
        A backend that declares options of scope MODEL overrides at least one of the methods
        ending in ``_with_options``. The others forward to the method without options.
        """
        return self.create_workload_factory(memory_manager)

    def get_layer_support_with_options(self, model_options: OptionValues) -> ILayerSupport:
        """The layer support of a network that the caller gave model options for."""
        return self.get_layer_support()

    def optimize_subgraph(self, view: SubgraphView) -> OptimizationViews:
        """Replace parts of a subgraph by something better; all untouched by default.

        Parameters
        ----------
        view : SubgraphView
            Connected layers that were assigned to this backend, maximal and convex. Not
            to be edited (nor can it be).

        Returns
        -------
        OptimizationViews
            Verified before it is applied. A layer in `failed` goes to the next backend.
        """
        return OptimizationViews(untouched=[view])

    def optimize_subgraph_with_options(
        self, view: SubgraphView, model_options: OptionValues
    ) -> OptimizationViews:
        """`optimize_subgraph` for a network that the caller gave model options for."""
        return self.optimize_subgraph(view)

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        """Make the object that is told about networks; None if there is none.

        Parameters
        ----------
        options : mapping of str to value
            Every declared option of scope RUNTIME, checked, defaults filled in.

        Raises
        ------
        BackendUnavailableError
            If the device is not there; the backend is then left out, with this reason.
        """
        return None

    def create_backend_model_context(
        self, model_options: OptionValues
    ) -> IBackendModelContext | None:
        """Make what belongs to one network's options; kept as long as the network."""
        return None

    def create_backend_profiling_context(
        self, options: OptionValues, profiling: IBackendProfiling
    ) -> IBackendProfilingContext | None:
        """Make the object that adds the backend's own measurements to a profile.

        Parameters
        ----------
        options, profiling
            As of `create_profiling_context`.

        Notes
        -----
        The parameters are new in 1.6. A class that overrides the method without them is called
        without them.

        References
        ----------
        Arm NN IBackendInternal::CreateBackendProfilingContext.
        """
        return None

    def create_memory_manager(self) -> IMemoryManager | None:
        """Make the memory manager of one loaded network; None if there is none."""
        return None

    def register_tensor_handle_factories(self, registry: TensorHandleFactoryRegistry) -> None:
        """Add the backend's tensor handle factories for one loaded network; none by default."""
        return

    def get_handle_factory_preferences(self) -> Sequence[str]:
        """Ids of factories for its tensors, best first; handles in host memory if empty.

        Notes
        -----
        Two backends share a tensor without a copy if the writer's factory exports a kind of
        memory that the reader's imports.
        """
        return ()

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool | None:
        """Take working memory from an application's allocator from now on.

        Returns
        -------
        bool or None
            False if it cannot; since 1.6.

        Raises
        ------
        BackendCapabilityError
            If it cannot; the text says why. So it is by default.

        Notes
        -----
        A backend whose tensors are in planned arenas need do nothing: the core takes these
        from the allocator. It overrides the method to say so.

        References
        ----------
        Arm NN IBackendInternal::UseCustomMemoryAllocator.
        """
        raise BackendCapabilityError(
            "the backend does not use custom memory allocators", where=self.backend_id
        )

    def can_use_allocator(self, allocator: ICustomAllocator) -> Support:
        """Whether working memory of one runtime's networks can come from an allocator.

        Notes
        -----
        Since 1.2. Nothing is kept: the allocator comes with each network's `NetworkResources`, and
        arenas that the core plans are taken from it. A backend with memory beside these takes it
        from the allocator as well. One object serves all runtimes then, with allocators and
        without. By default the answer is that of `use_custom_memory_allocator`, which a backend of
        1.2 need not override.
        """
        try:
            can = self.use_custom_memory_allocator(allocator)
        except BackendCapabilityError as error:
            return Support.no(ReasonCode.DEVICE, str(error))
        if can is False:
            return Support.no(ReasonCode.DEVICE, "the backend does not use this allocator")
        return Support.yes()

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        """The backend for one runtime.

        Parameters
        ----------
        options : mapping of str to value
            Every declared option of scope RUNTIME, checked, defaults filled in.

        Returns
        -------
        IBackendInternal
            Of the same id; this object by default. One that goes by the options is another
            object, as this one may serve other runtimes.

        Notes
        -----
        Since 1.2. Called once per runtime, before all else but properties.
        """
        return self

    def create_workload_factory_for_network(self, network: NetworkResources) -> IWorkloadFactory:
        """Make the factory for one loaded network from all that there is for it.

        Notes
        -----
        Since 1.2. This is the method that the core calls; by default it goes on to
        `create_workload_factory_with_options` if the caller gave model options, else to
        `create_workload_factory`.
        """
        if network.model_options:
            return self.create_workload_factory_with_options(
                network.memory_manager, network.model_options
            )
        return self.create_workload_factory(network.memory_manager)

    def register_tensor_handle_factories_for_network(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        """Add the tensor handle factories for one loaded network, made with all there is for it.

        Notes
        -----
        Since 1.2. This is the method that the core calls; by default it goes on to
        `register_tensor_handle_factories`.
        """
        self.register_tensor_handle_factories(registry)

    def create_profiling_context(
        self, options: OptionValues, profiling: IBackendProfiling
    ) -> IBackendProfilingContext | None:
        """Make the object that adds the backend's own measurements to one network's profile.

        Parameters
        ----------
        options : mapping of str to value
            Model options, as `NetworkResources.model_options`.
        profiling : IBackendProfiling
            The network's, which its `NetworkResources` hold as well.

        Notes
        -----
        Since 1.2. This is the method that the core calls, for each network that is profiled and
        of which the backend gets layers; by default it goes on to
        `create_backend_profiling_context`.
        """
        return self.create_backend_profiling_context(options, profiling)

    def get_default_allocator(self) -> ICustomAllocator | None:
        """What arenas are taken from if the application says nothing; None for host memory."""
        return None

    @property
    def feature_level(self) -> int:
        """The latest version of NNAPI's operations that it knows, as Android's API level.

        Notes
        -----
        Since 1.3. 27 to 30; models of the Neural Networks API are cut or converted for a device
        of an older one.
        """
        return 30

    @property
    def number_of_data_cache_files(self) -> int:
        """How many files of constants one compiled subgraph is kept in besides. Since 1.3."""
        return 0

    def get_device_figures(self) -> DeviceFigures | None:
        """What it declares of its device's speed and power; None to have it measured.

        Notes
        -----
        Since 1.3. Read once; the same for the same version on the same machine.
        """
        return None

    def optimize_subgraph_for_network(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        """`optimize_subgraph` with all that is known of the network.

        Notes
        -----
        Since 1.3. This is the method that the core calls; by default it goes on to
        `optimize_subgraph_with_options` if the caller gave model options, else to
        `optimize_subgraph`.
        """
        if request.model_options:
            return self.optimize_subgraph_with_options(view, request.model_options)
        return self.optimize_subgraph(view)

    def save_compiled(
        self, view: SubgraphView, views: OptimizationViews, request: PreparationRequest
    ) -> CompiledFiles | None:
        """Write down what became of a subgraph, to be kept for the next process.

        Parameters
        ----------
        view : SubgraphView
            What was offered.
        views : OptimizationViews
            What `optimize_subgraph_for_network` answered.
        request : PreparationRequest

        Returns
        -------
        CompiledFiles or None
            None if it cannot be kept, as by default.

        Notes
        -----
        Since 1.3. Called only if the backend keeps files (`number_of_cache_files`,
        `number_of_data_cache_files`).
        """
        return None

    def load_compiled(
        self, view: SubgraphView, files: CompiledFiles, request: PreparationRequest
    ) -> OptimizationViews:
        """The answer of `optimize_subgraph_for_network`, from what `save_compiled` wrote.

        Parameters
        ----------
        view : SubgraphView
            Equal in everything to the one that was saved, constants included.
        files : CompiledFiles
            As they were, checked against their checksums.
        request : PreparationRequest

        Raises
        ------
        BackendCapabilityError
            If the files cannot be used here; the text says why. The subgraph is prepared anew
            then, and the files are replaced.

        Notes
        -----
        Since 1.3. What it gives is verified like every answer.
        """
        raise BackendCapabilityError(
            "the backend keeps no compiled subgraphs", where=self.backend_id
        )

    def allocate_device_memory(self, request: DeviceMemoryRequest) -> IDeviceMemory | None:
        """Make a buffer of its own for a tensor that stays there between executions.

        Parameters
        ----------
        request : DeviceMemoryRequest

        Returns
        -------
        IDeviceMemory or None
            None, the default, if it has none for such a tensor: ordinary memory is used then.

        Raises
        ------
        ArmpyError
            If there is not as much memory.

        Notes
        -----
        Since 1.3. Called for networks of one runtime, on the object that `for_runtime` gave it.
        """
        return None

    def get_programs(self) -> IPrograms | None:
        """What writes compiled programs into prepared files, and takes them again.

        Returns
        -------
        IPrograms or None
            None, the default: the backend compiles its parts anew whenever a file is loaded.

        Notes
        -----
        Since 1.4.
        """
        return None
