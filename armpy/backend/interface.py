"""The interface that every backend implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from armpy.backend.caches import IBackendCache
from armpy.backend.capabilities import Capabilities
from armpy.backend.context import IBackendContext, IBackendModelContext, IBackendProfilingContext
from armpy.backend.devices import DeviceFigures, DeviceInfo
from armpy.backend.layer_support import ILayerSupport
from armpy.backend.memory.device_memory import DeviceMemoryRequest, IDeviceMemory
from armpy.backend.memory.memory import ICustomAllocator, IMemoryManager
from armpy.backend.memory.tensor_handle_factory import TensorHandleFactoryRegistry
from armpy.backend.optimization_views import OptimizationViews
from armpy.backend.options import BackendOption, OptionValues
from armpy.backend.preparation import PreparationRequest
from armpy.backend.profiling import IBackendProfiling
from armpy.backend.programs import IPrograms
from armpy.backend.resources import NetworkResources
from armpy.backend.workload import IWorkloadFactory
from armpy.errors import UnimplementedError
from armpy.graph import SubgraphView
from armpy.types import BackendId

if TYPE_CHECKING:  # few backends have extensions
    from armpy.backend.extension import Extension

BACKEND_API_VERSION = "2.8"
"""Version of this contract. A backend made for the same major and at most this minor loads."""


class IBackendInternal(ABC):
    """A backend: a light factory for everything that runs layers on one kind of device.

    The first four methods must be written; all others have working defaults, the rarely needed ones
    last. Names of Arm NN's interface are kept, in snake case. An instance keeps no state that the
    objects it makes depend on.

    Exceptions of a method and results against this contract become errors that name the backend and
    the method; other backends and networks are not affected. A subclass whose public method is
    named nearly as one of these, and would never be called, is refused at load.

    Notes
    -----
    Settings of the process belong to the application. A backend and its objects change no
    environment variables, working directory, signal handlers and masks, CPU affinity, state of
    `random` and `numpy.random`, error handling of NumPy, rounding modes, locale or root logger.
    Messages go through ``logging``, not to standard output or error. Infinities and NaNs are
    answers: workloads raise no FloatingPointError after ``np.seterr(all="raise")``.

    An execution in a forked child gives right answers or raises an error; it neither waits for
    threads of the parent nor ends the child.
    """

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Refuse what lacks a method that has to be written, in words."""
        # In front of Python's own refusal, a TypeError that knows nothing of the contract.
        missing = sorted(getattr(cls, "__abstractmethods__", ()))
        if cls.get_api_version is IBackendInternal.get_api_version:
            missing = ["get_api_version", *missing]
        if not missing:
            return super().__new__(cls)
        fix = "Write it" if len(missing) == 1 else "Write them"
        if missing == ["get_api_version"]:
            fix = f'Write it; for this version it returns "{BACKEND_API_VERSION}"'
        # Names of contract 1.x, in whose place 2.0 has methods.
        if any(hasattr(cls, name) for name in ("backend_id", "api_version")):
            fix = "It is of contract 1.x; the page 'A backend from 1.x to 2.0' says what to change"
        raise UnimplementedError(
            f"the class does not implement contract {BACKEND_API_VERSION}: it has no "
            + ", no ".join(missing),
            where=cls.__qualname__,
            fix=fix,
        )

    # Must be written

    @abstractmethod
    def get_id(self) -> BackendId:
        """Return its unique name; not empty, not ``"Unknown"``."""

    def get_api_version(self) -> str:
        """Return the `BACKEND_API_VERSION` that it was written for, as text: ``"2.8"``.

        There is no default: a backend that answers with the version of the core beside it would fit
        every core.
        """
        raise UnimplementedError(
            "the backend does not state the version of the contract that it was written for",
            where=type(self).__qualname__,
            fix=f'Write get_api_version, which returns "{BACKEND_API_VERSION}" for this one',
        )

    @abstractmethod
    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """Make the object that says which layers it can run.

        Parameters
        ----------
        request : PreparationRequest
            The application's options for the network, and what matters to it.
        """

    @abstractmethod
    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """Make the factory for one loaded network.

        Parameters
        ----------
        network : NetworkResources
            Resources of the network: the objects made by the methods above, options, allocator.
        """

    # May be written

    @property
    def version(self) -> str:
        """Version of the backend, for reports; programs of another one are not used."""
        return ""

    def get_devices(self) -> Sequence[DeviceInfo]:
        """List its devices, the default one first.

        Returns
        -------
        sequence of DeviceInfo
            Devices, at least one; names are unique. Always the same, and read once.

        Notes
        -----
        Where there are several, applications choose with the backend's option ``device``, whose
        value is a name, and `for_runtime` gets it.
        """
        return (DeviceInfo(),)

    @property
    def options(self) -> Sequence[BackendOption]:
        """The options that the backend understands; any other is an error of the caller."""
        return ()

    def get_capabilities(self) -> Capabilities:
        """Return its abilities beyond running layers, as in `Capability`."""
        return {}

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        """Replace parts of a subgraph; none by default.

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

    def get_programs(self) -> IPrograms | None:
        """Return the writer and reader of compiled programs; None if they are not kept.

        None, the default, stands for a backend that compiles its parts at each load. Programs are
        kept in compiled models, in the cache for the next process, and in the cache files of the
        Neural Networks API.
        """
        return None

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        """Make the backend for one runtime; called once, before all else for the runtime.

        Parameters
        ----------
        options : mapping of str to value
            Every declared option of scope RUNTIME, checked, defaults filled in.

        Returns
        -------
        IBackendInternal
            Backend of the same id; this object by default. One that goes by the options is another
            object, as this one may serve other runtimes.
        """
        return self

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        """Make the observer of loads and unloads of networks, or None.

        Parameters
        ----------
        options : mapping of str to value
            Options, as for `for_runtime`.

        Raises
        ------
        BackendUnavailableError
            If the device is not there; the backend is then left out, with this reason.
        """
        return None

    def create_memory_manager(self) -> IMemoryManager | None:
        """Make the memory manager of one loaded network, or None."""
        return None

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        """Add its tensor handle factories for one loaded network; none by default."""
        return

    def get_handle_factory_preferences(self) -> Sequence[str]:
        """List ids of factories for its tensors, best first; empty for host memory.

        Two backends share a tensor without a copy if the writer's factory exports a kind of
        memory that the reader's imports.
        """
        return ()

    def get_caches(self) -> Sequence[IBackendCache]:
        """List its caches on disk, for the command ``armpy cache``; none by default."""
        return ()

    # Rarely needed

    def get_free_memory(self, device: str) -> int | None:
        """Return the free bytes of a device's memory; None if unknown.

        `device` is the name of one of `get_devices`. ``armpy devices`` shows the answer.
        """
        return None

    def get_diagnosis(self) -> Sequence[str]:
        """List what it finds on this machine, in lines for people; none by default.

        ``armpy doctor`` shows the drivers, compilers or files that it uses, and why not others. A
        line that begins with ``problem:`` is a problem of the installation, and ends in the fix.
        """
        return ()

    def get_typical_figures(self, device: str) -> DeviceFigures | None:
        """Return speed and power of devices of the same kind; None if unknown.

        They are reported where the device does not declare figures and was not measured on this
        machine. They have no influence on placement.
        """
        return None

    @property
    def extensions(self) -> Sequence[Extension]:
        """Vendor extensions that applications can use; none by default."""
        return ()

    @property
    def supported_extensions(self) -> Sequence[str]:
        """Reverse-domain names of the vendor extensions whose operations it can run.

        Those of `extensions`, which have to be among them. A backend is only asked about
        operations whose extensions are here.
        """
        return tuple(extension.name for extension in self.extensions)

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool:
        """Say whether working memory of a runtime's networks can come from an allocator.

        The runtime is not made if the answer is False, the default.

        Raises
        ------
        BackendCapabilityError
            Instead of False, with the reason.

        Notes
        -----
        The backend does not keep the allocator, which comes with each network's
        `NetworkResources`. Arenas that the core plans are taken from it, and so is the backend's
        own working memory.
        """
        return False

    def get_default_allocator(self) -> ICustomAllocator | None:
        """Return the source of arenas unless the application names one; None for host memory."""
        return None

    def allocate_device_memory(self, request: DeviceMemoryRequest) -> IDeviceMemory | None:
        """Make a buffer for a tensor that stays there between executions.

        Returns
        -------
        IDeviceMemory or None
            Memory for the tensor; None, the default, if the backend has none for it: ordinary
            memory is used then.

        Raises
        ------
        ArmpyError
            If there is not as much memory.

        References
        ----------
        NNAPI ``IDevice::allocate``.
        """
        return None

    def create_backend_specific_model_context(
        self, model_options: OptionValues
    ) -> IBackendModelContext | None:
        """Make what belongs to one network's options; kept as long as the network.

        Parameters
        ----------
        model_options : mapping of str to value
            Every declared option of scope MODEL, checked, defaults filled in. Not called if the
            application gave none.
        """
        return None

    def create_backend_profiling_context(
        self, options: OptionValues, profiling: IBackendProfiling
    ) -> IBackendProfilingContext | None:
        """Make the object that adds its own measurements to one network's profile.

        Parameters
        ----------
        options : mapping of str to value
            Model options, as `NetworkResources.model_options`.
        profiling : IBackendProfiling
            The network's, which its `NetworkResources` hold as well.

        Notes
        -----
        Called for each network that is profiled and of which the backend gets layers.
        """
        return None
