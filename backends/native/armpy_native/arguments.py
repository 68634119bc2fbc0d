"""The arguments of executions, as a library reads them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_int64, c_void_p

from armpy.backend import Cancellation
from armpy.errors import UnimplementedError
from armpy.ops.operation import Array
from armpy_native.library import DTYPES, Error, Tensor, address_of


class Arguments:
    """Arguments of the executions of one thread, whose arrays have the same shapes and types."""

    def __init__(
        self, handle: int | None, inputs: Sequence[Array], outputs: Sequence[Array]
    ) -> None:
        arrays = (*inputs, *outputs)
        for array in arrays:
            if array.dtype not in DTYPES:
                raise UnimplementedError(f"armpy_backend.h has no type {array.dtype}")
        self._addresses = [address_of(array) for array in arrays]
        self._dims = [(c_int64 * array.ndim)(*array.shape) for array in arrays]
        self._tensors = (Tensor * len(arrays))(
            *(
                Tensor(address, array.nbytes, dims, array.ndim, DTYPES[array.dtype], 0)
                for array, address, dims in zip(arrays, self._addresses, self._dims, strict=True)
            )
        )
        self.error = Error()
        self.error_address = ctypes.addressof(self.error)
        self.event = c_void_p()
        self.event_address = ctypes.addressof(self.event)
        first = ctypes.addressof(self._tensors)
        second = first + len(inputs) * ctypes.sizeof(Tensor)
        self.tensors = (handle, first, len(inputs), second, len(outputs))

    def point_to(self, arrays: Sequence[Array]) -> None:
        """Let the tensors point to other arrays."""
        addresses = [array.__array_interface__["data"][0] for array in arrays]
        if addresses != self._addresses:
            self._addresses = addresses
            for tensor, address in zip(self._tensors, addresses, strict=True):
                tensor.data = address

    def cancel_address(self, cancellation: Cancellation | None) -> int:
        """Where the library looks whether to stop."""
        return _NEVER_ADDRESS if cancellation is None else cancellation.address


_NEVER = c_int64(0)
_NEVER_ADDRESS = ctypes.addressof(_NEVER)
"""Address of the word of executions that nobody can cancel."""
