"""Device memory: buffers of backends' own for inputs and outputs of loaded networks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from armpy.backend import DeviceMemoryRequest, MemoryRole, MemorySource
from armpy.errors import ArmpyError
from armpy.optimizer.bridge import handle_factories
from armpy.plugins.guard import GuardedDeviceMemory
from armpy.records import dataclass
from armpy.tensor import TensorInfo
from armpy.types import HOST, BackendId

if TYPE_CHECKING:
    from armpy.runtime.loaded_network import LoadedNetwork

_log = logging.getLogger("armpy.runtime")


@dataclass(frozen=True, eq=False, slots=True)
class TensorRole:
    """An input or output that a buffer is for.

    Parameters
    ----------
    network : LoadedNetwork
    network_id : int
        As its runtime has it.
    index : int
        Position among the network's inputs, or its outputs.
    is_output : bool
    frequency : float
        How likely the buffer is to be used so, above 0 and at most 1.
    """

    network: LoadedNetwork
    network_id: int
    index: int
    is_output: bool
    frequency: float = 1.0

    @property
    def told(self) -> MemoryRole:
        """What a backend is told of it."""
        graph = self.network.graph
        name = graph.output_names[self.index] if self.is_output else graph.inputs[self.index].name
        return MemoryRole(self.network_id, name, self.frequency)

    @property
    def backends(self) -> tuple[BackendId, ...]:
        """Ids of those that read the input or write the output; empty if that is not known yet."""
        everybody = self.network.backends
        try:
            return self.network.importer().users(self.index, is_output=self.is_output)
        except ArmpyError:  # shapes are not known, or depend on values
            return (everybody[0].backend_id,) if len(everybody) == 1 else ()


def single_user(roles: Sequence[TensorRole]) -> BackendId | None:
    """The one backend that all roles are of; None if there are several, or it is the core."""
    found = {backend_id for role in roles for backend_id in role.backends or (HOST,)}
    return found.pop() if len(found) == 1 and HOST not in found else None


def allocate_device_memory(
    info: TensorInfo, roles: Sequence[TensorRole]
) -> GuardedDeviceMemory | None:
    """Ask the one backend that all roles are of for a buffer.

    Parameters
    ----------
    info : TensorInfo
        Of the tensor, as far as it is known.
    roles : sequence of TensorRole

    Returns
    -------
    GuardedDeviceMemory or None
        None if there are several backends, or it has no such buffers, or none now: the reason is
        logged.

    References
    ----------
    NNAPI ``ANeuralNetworksMemory_createFromDesc``.
    """
    user = single_user(roles)
    if user is None:
        return None
    told = [(role.is_output, role.told) for role in roles]
    request = DeviceMemoryRequest(
        info,
        tuple(role for is_output, role in told if not is_output),
        tuple(role for is_output, role in told if is_output),
    )
    # Backends of one id may be other objects in other runtimes: what one of them makes, the
    # others import or not.
    backend = next(one for one in roles[0].network.backends if one.backend_id == user)
    try:
        return backend.allocate_device_memory(request)
    except ArmpyError as error:
        _log.info("%s makes no buffer for %s: %s", user, info, error)
        return None


def works_in_host_memory(roles: Sequence[TensorRole]) -> bool:
    """Whether the one backend that all roles are of keeps its tensors in plain host memory."""
    user = single_user(roles)
    if user is None:
        return False
    backend = next(one for one in roles[0].network.backends if one.backend_id == user)
    factories, _ = handle_factories(backend)
    return bool(MemorySource.MALLOC & factories[0].export_sources)
