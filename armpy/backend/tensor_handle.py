"""Where a tensor's elements are while a network runs."""

from __future__ import annotations

from abc import ABC, abstractmethod

from armpy.ops.operation import Array
from armpy.tensor import TensorInfo


class ITensorHandle(ABC):
    """A tensor in some backend's memory.

    References
    ----------
    Arm NN ITensorHandle.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def info(self) -> TensorInfo:
        """Shape, data type and quantisation."""

    @abstractmethod
    def map(self) -> Array:
        """The elements as an array in host memory.

        Returns
        -------
        ndarray, dtype and shape of `info`, C-contiguous
            A view without a copy for host memory. Reading and writing it is allowed until
            `unmap`.
        """

    def unmap(self) -> None:
        """End the access that `map` began; writes are visible to the device afterwards."""
        return

    def copy_in_from(self, source: Array) -> None:
        """Overwrite the elements with those of `source` (same shape and dtype)."""
        self.map()[...] = source
        self.unmap()

    def copy_out_to(self, target: Array) -> None:
        """Copy the elements into `target` (same shape and dtype)."""
        target[...] = self.map()
        self.unmap()


class HostTensorHandle(ITensorHandle):
    """A tensor in host memory.

    Parameters
    ----------
    info : TensorInfo
        Fully shaped.
    array : ndarray, dtype and shape of `info`, C-contiguous
        The memory; may be exchanged between executions (that is how the caller's arrays
        are used without copying).
    """

    __slots__ = ("_info", "array")

    def __init__(self, info: TensorInfo, array: Array) -> None:
        self._info = info
        self.array = array

    @property
    def info(self) -> TensorInfo:
        """Shape, data type and quantisation."""
        return self._info

    def map(self) -> Array:
        """The memory itself."""
        return self.array
