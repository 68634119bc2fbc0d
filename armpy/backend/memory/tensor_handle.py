"""Tensor handles: places of a tensor's elements while a network runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from armpy.backend.memory.memory import empty_tensor
from armpy.errors import (
    InvalidArgumentError,
    LayerValidationError,
    MemoryExportError,
    MemoryQuotaError,
)
from armpy.tensor import TensorInfo, format_shape, read_only, shapes_agree

if TYPE_CHECKING:  # an import here slows every start of a compiled model
    from armpy.backend.memory.external_memory import ExternalMemory, MemorySource
    from armpy.ops.operation import Array


class ITensorHandle(ABC):
    """A tensor in some backend's memory."""

    # Without this, handles would have a dictionary beside the slots that they name.
    __slots__ = ()

    @property
    @abstractmethod
    def info(self) -> TensorInfo:
        """Shape, data type and quantisation."""

    @abstractmethod
    def map(self, *, read: bool = True, write: bool = True) -> Array:
        """The elements as an array in host memory.

        Parameters
        ----------
        read : bool
            Whether the elements are looked at; otherwise the array may hold anything.
        write : bool
            Whether the array is written; otherwise `unmap` need not bring anything back, and
            the array may be read-only.

        Returns
        -------
        ndarray, dtype and shape of `info`, C-contiguous
            A view without a copy for host memory. Reading and writing it, as was said, is
            allowed until `unmap`.
        """

    def unmap(self) -> None:
        """End the access of `map`; the device sees writes afterwards."""
        return

    def copy_in_from(self, source: Array) -> None:
        """Overwrite the elements with those of `source` (same dtype).

        Raises
        ------
        LayerValidationError
            If `source` has another shape.
        """
        if source.shape != self.info.shape:
            raise _other_shape(self.info, source.shape)
        # Not to be read, so that a device need not copy old elements to the host.
        target = self.map(read=False)
        try:
            target[...] = source
        finally:
            self.unmap()

    def copy_out_to(self, target: Array) -> None:
        """Copy the elements into `target` (same shape and dtype)."""
        # Not to be written, so that nothing is brought back to the device.
        source = self.map(write=False)
        try:
            target[...] = source
        finally:
            self.unmap()

    def export_memory(self, source: MemorySource) -> ExternalMemory:
        """The memory that the tensor lies in, for others to import.

        Parameters
        ----------
        source : MemorySource
            One of its factory's `export_sources`.

        Raises
        ------
        MemoryExportError
            If it cannot be exported; so it is by default.
        """
        raise MemoryExportError(
            "the tensor's memory cannot be exported",
            where=type(self).__name__,
            actual=str(source),
        )


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

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        """The memory itself; without `write`, a read-only view of it."""
        return self.array if write else read_only(self.array)


class DynamicTensorHandle(ITensorHandle):
    """An output in host memory whose shape the workload determines.

    Parameters
    ----------
    info : TensorInfo
        Not fully shaped.
    limit_bytes : int, optional
        Most that it may become.
    alignment_bytes, padding_bytes : int
        Alignment and padding, as of `ITensorHandleFactory`.

    Notes
    -----
    Workloads get it in place of another handle for an output that is not fully shaped. They
    call `resize` once, when they know the shape, and write the array that it returns. Only
    backends with the capability `DynamicOutputShapes` are given such layers.
    """

    __slots__ = ("_alignment_bytes", "_array", "_info", "_limit_bytes", "_padding_bytes")

    def __init__(
        self,
        info: TensorInfo,
        limit_bytes: int | None = None,
        alignment_bytes: int = 1,
        padding_bytes: int = 1,
    ) -> None:
        self._info = info
        self._limit_bytes = limit_bytes
        self._alignment_bytes = alignment_bytes
        self._padding_bytes = padding_bytes
        self._array: Array | None = None

    @property
    def info(self) -> TensorInfo:
        """Data type and quantisation; the shape as far as it is known, completely once resized."""
        return self._info

    @property
    def is_resized(self) -> bool:
        """Return whether the workload has set the shape."""
        return self._array is not None

    def resize(self, shape: tuple[int, ...]) -> Array:
        """Say which shape the output has, and get its memory.

        Returns
        -------
        ndarray, dtype of `info`, shape `shape`, C-contiguous
            Not initialised; to be written completely.

        Raises
        ------
        LayerValidationError
            If the shape contradicts the known dimensions.
        MemoryQuotaError
            If the tensor is larger than one execution allows.
        """
        if not shapes_agree(self._info.shape, shape):
            raise _other_shape(self._info, shape)
        info = self._info.with_shape(shape)
        limit = self._limit_bytes
        # In front of the allocation: a model's numbers decide here, and they may be absurd.
        if not info.is_addressable or (limit is not None and info.size_bytes > limit):
            raise MemoryQuotaError(
                "the output is larger than one execution allows",
                expected="what an array can hold" if limit is None else f"at most {limit} bytes",
                actual=str(info),
            )
        self._info = info
        self._array = empty_tensor(info, self._alignment_bytes, self._padding_bytes)
        return self._array

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        """The elements.

        Raises
        ------
        InvalidArgumentError
            If there are none yet.
        """
        if self._array is None:
            raise InvalidArgumentError(
                "the output has no memory yet",
                where=type(self).__name__,
                actual=str(self._info),
                fix="Call resize with its shape first",
            )
        return self._array

    def copy_in_from(self, source: Array) -> None:
        """Take the shape and the elements of `source` (same dtype); errors as for `resize`."""
        self.resize(source.shape)[...] = source


def _other_shape(info: TensorInfo, shape: tuple[int, ...]) -> LayerValidationError:
    """The error for elements that do not fit their tensor."""
    return LayerValidationError(
        "the output has another shape than declared",
        expected=format_shape(info.shape),
        actual=format_shape(shape),
    )
