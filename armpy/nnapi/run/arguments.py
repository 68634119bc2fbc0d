"""Arguments of executions: what a compiled model takes and gives, and what one run is given."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias, TypeGuard

import numpy as np

from armpy.nnapi.codes import CONTROL_FLOW_CODES, OperandCode
from armpy.nnapi.description.model_description import Operand, Subgraph
from armpy.nnapi.model.optional import optional_operands
from armpy.nnapi.results import bad_data, bad_state, check_index, require_data
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo

Renew: TypeAlias = Callable[[], "Array | None"]
"""Makes the elements of an input from what its buffer holds now."""


class ArgumentSlot:
    """One input or output of a compiled model.

    Parameters
    ----------
    operand : Operand
    is_written : bool
        Whether it is an output.

    Attributes
    ----------
    shape : tuple of int, optional
        That of arrays which are used as they lie; None if dimensions are open, or elements are
        not those of an array (truth values that may be any byte, OEM scalars).
    """

    __slots__ = ("_dtype", "_is_written", "operand", "shape")

    def __init__(self, operand: Operand, *, is_written: bool) -> None:
        self.operand = operand
        self._is_written = is_written
        self._dtype = operand.data_type.dtype
        self.shape: tuple[int, ...] | None = None
        if self._is_plain and operand.is_fully_known:
            self.shape = operand.info.known_shape

    @property
    def _is_plain(self) -> bool:
        """Whether its elements are those of an array."""
        return self._dtype != np.bool_ and self.operand.type != OperandCode.OEM_SCALAR

    def settle(self, info: TensorInfo) -> bool:
        """Take the shape that a result has with all inputs; whether arrays can be of it."""
        if not info.is_fully_shaped or not self._is_plain:
            return False
        if self.shape is None:
            self.shape = info.known_shape
        return self.shape == info.known_shape

    @property
    def dimensions(self) -> tuple[int, ...]:
        """Dimensions of the shape; those that the model says if there is none."""
        if self.shape is None:
            return self.operand.dimensions
        return self.shape[: len(self.shape) - len(self.operand.element_shape)]

    def fits(self, value: object) -> TypeGuard[Array]:
        """Whether `value` is an array that is used as it lies."""
        # Every argument of every execution comes by here: what tells most is asked first.
        if type(value) is not np.ndarray or value.shape != self.shape:
            return False
        if value.dtype is not self._dtype and value.dtype != self._dtype:
            return False
        flags = value.flags
        return flags.carray or (not self._is_written and flags.c_contiguous and flags.aligned)

    def input_array(
        self, data: memoryview | None, dimensions: tuple[int, ...], where: str
    ) -> Array | None:
        """The elements of an input, whose length fits its dimensions; None for no value.

        Raises
        ------
        NnapiError
            BAD_DATA if there are no bytes, or not as many as the dimensions say.
        """
        if data is None:
            return None
        check_length(self.operand, data, dimensions, where)
        elements = replace(self.operand, dimensions=dimensions, data=data).elements
        if elements is None or elements.flags.aligned:
            return elements
        return elements.copy()

    def input_read(
        self, data: memoryview | None, dimensions: tuple[int, ...], where: str
    ) -> tuple[Array | None, Renew | None]:
        """The elements of an input, and what makes them again if they are no part of its buffer.

        Raises
        ------
        NnapiError
            As for `input_array`.
        """
        array = self.input_array(data, dimensions, where)
        if array is None or data is None or _is_over(array, data):
            return array, None
        return array, lambda: self.input_array(data, dimensions, where)

    @property
    def _num_bytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape or ()) * self._dtype.itemsize

    def output_array(
        self, data: memoryview | None, dimensions: tuple[int, ...], where: str
    ) -> Array | None:
        """The bytes that an output is written to; errors as for `input_array`."""
        if data is None:
            return None
        check_length(self.operand, data, dimensions, where)
        flat = np.frombuffer(data, np.uint8)
        is_expected = dimensions in (self.operand.dimensions, self.dimensions)
        if self.shape is None or not is_expected or flat.size != self._num_bytes:
            return flat
        array = flat.view(self._dtype).reshape(self.shape)
        return array if array.flags.aligned else flat


def _is_over(array: Array, data: memoryview) -> bool:
    """Whether an array's elements are the bytes of a buffer themselves."""
    return bool(np.may_share_memory(array, np.frombuffer(data, np.uint8)))


def check_length(
    operand: Operand, data: memoryview, dimensions: tuple[int, ...], where: str
) -> None:
    """Check that there are as many bytes as an argument's dimensions say.

    Raises
    ------
    NnapiError
        BAD_DATA if there are not, or none at all.
    """
    require_data(
        len(data) > 0, "the buffer has no bytes", where=where, fix="Pass None for no value"
    )
    # Of an output whose dimensions are not known the buffer may have any length; whether the
    # result fits is seen behind the execution (OUTPUT_INSUFFICIENT_SIZE).
    size = replace(operand, dimensions=dimensions).size_bytes
    is_free = size == 0 or operand.type == OperandCode.OEM_SCALAR
    require_data(
        is_free or len(data) == size,
        "the buffer has the wrong length",
        where=where,
        expected=f"{size} bytes for {operand.type_name}{dimensions or ''}",
        actual=f"{len(data)} bytes",
    )


class ExecutionSignature:
    """Inputs and outputs of a compiled model's executions.

    Parameters
    ----------
    main : Subgraph
        The model's main graph.

    Attributes
    ----------
    inputs, outputs : tuple of ArgumentSlot
    has_control_flow : bool
    """

    def __init__(self, main: Subgraph) -> None:
        self._main = main
        self.inputs = tuple(ArgumentSlot(main.operands[i], is_written=False) for i in main.inputs)
        self.outputs = tuple(ArgumentSlot(main.operands[i], is_written=True) for i in main.outputs)
        self.has_control_flow = any(node.type in CONTROL_FLOW_CODES for node in main.operations)

    @property
    def input_shapes(self) -> list[tuple[int, ...]] | None:
        """The shape of every input; None if one is not that of arrays used as they lie."""
        shapes = [slot.shape for slot in self.inputs if slot.shape is not None]
        return shapes if len(shapes) == len(self.inputs) else None

    def settle(self, infos: Sequence[TensorInfo]) -> bool:
        """Take the shapes of the results; whether arrays can be written as they lie."""
        return all([slot.settle(info) for slot, info in zip(self.outputs, infos, strict=True)])

    @cached_property
    def needed_outputs(self) -> frozenset[int]:
        """Positions of the outputs that no operation can go without."""
        optional = optional_operands(self._main)
        return frozenset(
            position for position, i in enumerate(self._main.outputs) if i not in optional
        )


_UNSET: Array = np.empty(0, np.uint8)
"""In the place of an argument that nobody has set."""


class Arguments:
    """The inputs, or the outputs, of one execution while it is set up.

    Parameters
    ----------
    what : str
        ``"input"`` or ``"output"``, for messages.
    slots : tuple of ArgumentSlot

    Attributes
    ----------
    arrays : list of (ndarray or None)
        Each argument, None for no value. What is not set yet does not count.
    are_in_place : bool
        Whether each is an array of the shape and type of its slot.
    """

    __slots__ = ("_num_unset", "_renewed", "_slots", "_what", "are_in_place", "arrays")

    def __init__(self, what: str, slots: tuple[ArgumentSlot, ...]) -> None:
        self._what = what
        self._slots = slots
        self._num_unset = len(slots)
        self.arrays: list[Array | None] = [_UNSET] * len(slots)
        self.are_in_place = True
        self._renewed: list[tuple[int, Renew]] | None = None

    def take(self, index: int, value: object) -> bool:
        """Set an argument to an array that is used as it lies; whether it is one, and not set."""
        arrays = self.arrays
        if type(index) is not int or not 0 <= index < len(arrays):
            return False
        if arrays[index] is not _UNSET or not self._slots[index].fits(value):
            return False
        # A view: the caller can give the array itself another shape or type at any time.
        arrays[index] = value[...]
        self._num_unset -= 1
        return True

    def put(self, index: int, array: Array | None, renew: Renew | None = None) -> None:
        """Set an argument that is not set, to what its slot has made of it.

        Parameters
        ----------
        index : int
        array : ndarray, optional
        renew : callable, optional
            Makes it again for each execution, if it is a copy.
        """
        if renew is not None:
            self._renewed = [*(self._renewed or ()), (index, renew)]
        is_in_place = array is not None and self._slots[index].fits(array)
        self.are_in_place &= is_in_place and renew is None
        self.arrays[index] = array
        self._num_unset -= 1

    def renew(self) -> None:
        """Read again what is not used as it lies."""
        for index, make in self._renewed or ():
            self.arrays[index] = make()

    def slot(self, index: int, where: str) -> ArgumentSlot:
        """The slot of a position.

        Raises
        ------
        NnapiError
            BAD_DATA if there is none.
        """
        return self._slots[check_index(index, len(self._slots), self._what, where)]

    def check_unset(self, index: int, where: str) -> None:
        """Check that an argument has not been set.

        Raises
        ------
        NnapiError
            BAD_STATE if it has.
        """
        if self.arrays[index] is not _UNSET:
            raise bad_state(f"the {self._what} is set already", where=where)

    def check_complete(self, where: str) -> None:
        """Check that every argument is set.

        Raises
        ------
        NnapiError
            BAD_DATA if one is not.
        """
        # One that is left out on purpose has been set, to no value.
        if self._num_unset:
            position = next(i for i, array in enumerate(self.arrays) if array is _UNSET)
            raise bad_data(f"{self._what} {position} is not set", where=where)
