"""Device memory: buffers of backends' own for inputs and outputs of loaded networks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from armpy.backend import DeviceMemoryRequest, ExternalMemory, MemoryRole, MemorySource
from armpy.backend.memory.memory import rounded_up
from armpy.compiler.memory.memory_copies import handle_factories
from armpy.core.dataclass import dataclass
from armpy.core.vlog import is_on, vlog
from armpy.errors import ArmpyError, InvalidArgumentError
from armpy.execution.arrays.reshaping import unknown_name
from armpy.plugins.proxy.memory import DeviceMemoryProxy
from armpy.tensor import TensorInfo
from armpy.types import HOST, BackendId

if TYPE_CHECKING:
    from armpy.execution.loaded_network import LoadedNetwork
    from armpy.model.model import Model

_log = logging.getLogger("armpy.execution")


@dataclass(frozen=True, eq=False, slots=True)
class TensorRole:
    """An input or output that a buffer is for."""

    network: LoadedNetwork
    network_id: int  # as its runtime has it
    index: int  # position among the network's inputs, or its outputs
    is_output: bool
    frequency: float = 1.0  # how likely the buffer is to be used so, above 0 and at most 1

    @property
    def memory_role(self) -> MemoryRole:
        """The role as it is passed to the backend."""
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
            return (everybody[0].get_id(),) if len(everybody) == 1 else ()

    @property
    def preferred(self) -> tuple[int, int]:
        """Alignment and padding in bytes that suit them; errors as of `LoadedNetwork.importer`."""
        return self.network.importer().preferred(self.index, is_output=self.is_output)


def single_user(roles: Sequence[TensorRole]) -> BackendId | None:
    """The one backend that all roles are of; None if there are several, or it is the core."""
    users = {backend_id for role in roles for backend_id in role.backends or (HOST,)}
    return users.pop() if len(users) == 1 and HOST not in users else None


def allocate_device_memory(
    info: TensorInfo,  # of the tensor, as far as it is known
    roles: Sequence[TensorRole],
) -> DeviceMemoryProxy | None:
    """Ask the one backend that all roles are of for a buffer.

    Returns None if there are several backends, or it has no such buffers, or none now: the reason
    is logged.

    References
    ----------
    NNAPI ``ANeuralNetworksMemory_createFromDesc``.
    """
    user = single_user(roles)
    if is_on.memory:
        vlog("memory", "%d roles of %s: %s", len(roles), info, user or "no single backend")
    if user is None:
        return None
    backend_roles = [(role.is_output, role.memory_role) for role in roles]
    request = DeviceMemoryRequest(
        info,
        tuple(role for is_output, role in backend_roles if not is_output),
        tuple(role for is_output, role in backend_roles if is_output),
    )
    # Backends of one id may be other objects in other runtimes: what one of them makes, the
    # others import or not.
    backend = next(backend for backend in roles[0].network.backends if backend.get_id() == user)
    try:
        return backend.allocate_device_memory(request)
    # A refusal is not an error: the caller takes host memory, and the log says why it is slower.
    except ArmpyError as error:
        _log.info("%s makes no buffer for %s: %s", user, info, error)
        vlog("memory", "%s makes no buffer for %s: %s", user, info, error)
        return None


def works_in_host_memory(roles: Sequence[TensorRole]) -> bool:
    """Return whether a single backend has all roles and keeps its tensors in host memory."""
    user = single_user(roles)
    if user is None:
        return False
    backend = next(backend for backend in roles[0].network.backends if backend.get_id() == user)
    factories, _ = handle_factories(backend)
    return bool(MemorySource.MALLOC & factories[0].export_sources)


def allocate_memory(
    inputs: Sequence[tuple[Model, str]] = (), outputs: Sequence[tuple[Model, str]] = ()
) -> ExternalMemory:
    """Device memory for a tensor that one model writes and others read.

    Raises InvalidArgumentError if there is no such input or output, none is given, shapes are not
    known, or the tensors are not the same.

    Parameters
    ----------
    inputs, outputs : sequence of (Model, str)
        Which inputs and outputs it is for, by name, of the shapes that the models are prepared for.

    Returns
    -------
    ExternalMemory
        To be given to `Model.import_inputs` and `import_outputs`. A buffer of the backend's own if
        one backend has all of them and makes such buffers, else shared memory, which lies as
        their handle factories declare.

    Examples
    --------
    >>> memory = allocate_memory([(second, "x")], [(first, "y")])  # doctest: +SKIP
    >>> y = first.import_outputs({"y": memory})                    # doctest: +SKIP
    >>> x = second.import_inputs({"x": memory})                    # doctest: +SKIP
    """
    wanted = [(*role, False) for role in inputs] + [(*role, True) for role in outputs]
    roles = [_role(model, name, is_output=is_output) for model, name, is_output in wanted]
    if not roles:
        raise InvalidArgumentError("the memory is for nothing", expected="an input or output")
    infos = [role.network.importer().info(role.index, is_output=role.is_output) for role in roles]
    for (_, name, is_output), info in zip(wanted, infos, strict=True):
        if info != infos[0] or not info.is_fully_shaped:
            raise InvalidArgumentError(
                "the tensors that the memory is for are not the same",
                where=f"{'output' if is_output else 'input'} '{name}'",
                expected=str(infos[0]),
                actual=str(info),
            )
    # Shared memory can be imported by every backend, at worst with a copy in each run.
    buffer = allocate_device_memory(infos[0], roles)
    if buffer is None:
        padding = max(role.preferred[1] for role in roles)
        return ExternalMemory.shared(rounded_up(infos[0].size_bytes, padding))
    return ExternalMemory.of_device(buffer.unguarded, infos[0].size_bytes)


def _role(model: Model, name: str, *, is_output: bool) -> TensorRole:
    graph = model.graph
    names = [*graph.output_names] if is_output else [value.name for value in graph.inputs]
    if name not in names:
        raise unknown_name("output" if is_output else "input", name, names)
    network = model.runtime.get_network(model.network_id)
    return TensorRole(network, model.network_id, names.index(name), is_output)
