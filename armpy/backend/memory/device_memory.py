"""Buffers of a backend's own that tensors stay in between executions and networks."""

from __future__ import annotations

from abc import ABC, abstractmethod

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo


@dataclass(frozen=True, slots=True)
class MemoryRole:
    """One use of a buffer: an input or output of a network of the backend's.

    References
    ----------
    NNAPI HAL 1.3 ``BufferRole``.
    """

    network_id: int  # as passed to `IBackendContext.before_load_network`
    name: str  # of the input or output
    frequency: float = 1.0  # how likely the buffer is to be used so, above 0 and at most 1


@dataclass(frozen=True, eq=False, slots=True)
class DeviceMemoryRequest:
    """Request for a device buffer: tensor and roles that it serves.

    References
    ----------
    NNAPI ``IDevice::allocate``.
    """

    info: TensorInfo
    """Info of the tensor, the same in all roles. Unknown dimensions come with each use."""
    inputs: tuple[MemoryRole, ...] = ()  # where it is read
    outputs: tuple[MemoryRole, ...] = ()  # where it is written


class IDeviceMemory(ABC):
    """A buffer of a backend's own, which holds one tensor at a time.

    Notes
    -----
    It comes to the backend's tensor handle factories as an `ExternalMemory` of
    `MemorySource.DEVICE` whose `device` it is: a factory that has this kind among its
    `import_sources` imports it without a copy, and answers no in `can_import` if the buffer is
    another device's. A backend that cannot import it gets a copy made with these methods.
    The core reads nothing that was not written before, and lets one execution at a time write it.
    The memory goes with the object's last reference.

    References
    ----------
    NNAPI ``IBuffer``; ``ANeuralNetworksMemory_createFromDesc``.
    """

    @abstractmethod
    def copy_in_from(self, source: Array) -> None:
        """Overwrite the tensor.

        Parameters
        ----------
        source : ndarray, dtype of the request's info, C-contiguous
            Elements, of a shape that agrees with the request's; the tensor has it from now on.

        Raises
        ------
        ArmpyError
            If it does not fit.
        """

    @abstractmethod
    def copy_out_to(self, target: Array) -> None:
        """Copy the tensor to an array of its dtype and shape, C-contiguous."""
