"""Slots: requirements on the arrays of a call, asked array by array."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from numpy import empty, ndarray

from armpy.execution import arrays

if TYPE_CHECKING:  # an import here slows every start of a compiled model
    from armpy.ops.operation import Array
    from armpy.tensor import TensorInfo


class InputSlot:
    """Requirements on one input array.

    Nothing is remembered of the arrays: type, shape, strides, memory and writability of an array
    can all be changed in place between two calls.
    """

    __slots__ = ("_dtype", "_info", "_limit_bytes", "_shape", "name")

    def __init__(
        self,
        name: str,
        info: TensorInfo,  # what the network takes; dimensions may be open
        # The one that is prepared for; without one, and of strings, no array fits and all are
        # converted.
        shape: tuple[int, ...] | None,
        limit_bytes: int,  # the most that a copy may take
    ) -> None:
        self.name = name
        self._info = info
        self._dtype = info.data_type.dtype
        # Elements of an array of objects may be anything, so that each array is converted.
        self._shape = None if info.data_type.is_string else shape
        self._limit_bytes = limit_bytes

    @property
    def takes_strings(self) -> bool:
        """Return whether the elements are strings."""
        return self._info.data_type.is_string

    def fits(self, given: object) -> TypeGuard[Array]:
        """Return whether `given` is an array that can be read in place."""
        # Every input of every call comes by here, and each of these takes some percent of it:
        # asking first for the same dtype object, and for all flags at once.
        if type(given) is not ndarray or given.shape != self._shape:
            return False
        if given.dtype is not self._dtype and given.dtype != self._dtype:
            return False
        flags = given.flags
        return flags.carray or (flags.c_contiguous and flags.aligned)

    def converted(self, given: object, *, quantize: bool) -> Array:
        """An array that can be read, made of `given`; errors as for `as_input`.

        An imported tensor stands for itself, and so does memory to import;
        `LoadedNetwork.prepared_for` checks them.
        """
        if arrays.imported_tensor.stands_for_array(given):
            return given
        return arrays.conversion.as_input(
            self.name, self._info, given, quantize=quantize, limit_bytes=self._limit_bytes
        )


class OutputSlot:
    """Requirements on one array that the caller gives for an output."""

    __slots__ = ("_dtype", "_shape", "info", "name")

    def __init__(
        self,
        name: str,
        info: TensorInfo,  # dimensions that depend on values are open
    ) -> None:
        self.name = name
        self.info = info
        self._dtype = info.data_type.dtype
        self._shape = info.shape

    def fits(self, given: object) -> TypeGuard[Array]:
        """Return whether `given` can be written in place, and owns its memory.

        Two arrays that own their memory overlap only if they are one. Others may be used as
        well, but have to be compared with each other.
        """
        if type(given) is not ndarray or given.shape != self._shape:
            return False
        if given.dtype is not self._dtype and given.dtype != self._dtype:
            return False
        flags = given.flags
        return flags.carray and flags.owndata

    def check_result(self, made: Array, target: Array) -> None:
        """Check that a result, whose shape may depend on values, can be copied to `target`."""
        info = self.info.with_shape(made.shape)
        arrays.conversion.check_output_array(self.name, info, target)

    def new_array(self) -> Array | None:
        """An array for the output; None if its shape depends on values."""
        info = self.info
        return empty(info.known_shape, self._dtype) if info.is_fully_shaped else None

    def converted(self, given: object) -> Array:
        """An array over `given` that can be written; errors as for `check_output_array`.

        An imported tensor stands for itself, and so does memory to import.
        """
        if arrays.imported_tensor.stands_for_array(given):
            return given
        return arrays.conversion.check_output_array(self.name, self.info, given)
