"""The interface that every backend implements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from armpy.backend.layer_support import ILayerSupport
from armpy.backend.optimization_views import OptimizationViews
from armpy.backend.workload import IWorkloadFactory
from armpy.graph import SubgraphView
from armpy.types import BackendId, DeviceType

BACKEND_API_VERSION = "0.1"
"""Version of this contract. A backend made for the same major and at most this minor loads."""


class IMemoryManager(ABC):
    """Holds the memory that a backend needs while networks run.

    References
    ----------
    Arm NN IMemoryManager.
    """

    @abstractmethod
    def acquire(self) -> None:
        """Get the memory; called before the first of overlapping executions."""

    @abstractmethod
    def release(self) -> None:
        """Give the memory back; called after the last of overlapping executions."""


class IBackendContext:
    """Is told when networks come and go; kept by the Runtime for its lifetime.

    References
    ----------
    Arm NN IBackendContext.
    """

    def before_load_network(self, network_id: int) -> None:
        """A network is about to be loaded; `after_load_network` follows unless that fails."""

    def after_load_network(self, network_id: int) -> None:
        """A network was loaded."""

    def before_unload_network(self, network_id: int) -> None:
        """A network is about to be unloaded."""

    def after_unload_network(self, network_id: int) -> None:
        """A network was unloaded."""


class IBackendInternal(ABC):
    """A backend: a light factory for everything that runs layers on one kind of device.

    Three methods must be written, the rest have working defaults. An instance keeps no
    state that the objects it makes depend on.

    References
    ----------
    Arm NN IBackendInternal.
    """

    api_version: str = BACKEND_API_VERSION
    """The `BACKEND_API_VERSION` that the backend was written for."""

    @property
    @abstractmethod
    def backend_id(self) -> BackendId:
        """The backend's name, unique among all backends."""

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
    def device_type(self) -> DeviceType:
        """Kind of device; decides the order of backends where the caller gives none."""
        return DeviceType.OTHER

    @property
    def shares_host_memory(self) -> bool:
        """Whether its workloads read and write host memory without a copy."""
        return True

    def create_memory_manager(self) -> IMemoryManager | None:
        """Make the memory manager of one loaded network; None if there is none."""
        return None

    def create_backend_context(self, options: Mapping[str, object]) -> IBackendContext | None:
        """Make the object that is told about networks; None if there is none.

        Raises
        ------
        BackendUnavailableError
            If the device is not there; the backend is then left out, with this reason.
        """
        return None

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
            `SubgraphView.part` makes views of parts.
        """
        return OptimizationViews(untouched=[view])
