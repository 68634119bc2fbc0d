"""Signature of a compiled model: the inputs that its executions take, the outputs they give."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias, TypeGuard

import numpy as np

from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_nnapi.codes import CONTROL_FLOW_CODES, OperandCode
from armpy_nnapi.description.buffers import readable_bytes
from armpy_nnapi.description.model_description import Operand, Subgraph
from armpy_nnapi.description.operand_type import OperandType
from armpy_nnapi.description.request import check_dimensions
from armpy_nnapi.results import require_data
from armpy_nnapi.validation.optional import optional_operands

Renew: TypeAlias = Callable[[], "Array | None"]
"""Makes the elements of an input from what its buffer holds now."""


class ArgumentSlot:
    """One input or output of a compiled model.

    Parameters
    ----------
    is_written : bool
        Whether it is an output.

    Attributes
    ----------
    shape : tuple of int, optional
        Shape of arrays which are used as they lie; None if dimensions are open, or elements are not
        those of an array (truth values that may be any byte, OEM scalars).
    dimensions : tuple of int
        Dimensions of the shape; those that the model says if there is none.
    """

    __slots__ = ("_dtype", "_is_written", "dimensions", "operand", "shape")

    def __init__(self, operand: Operand, *, is_written: bool) -> None:
        self.operand = operand
        self._is_written = is_written
        self._dtype = operand.data_type.dtype
        self.shape: tuple[int, ...] | None = None
        self.dimensions = operand.dimensions
        if self._is_plain and operand.is_fully_known:
            self._set_shape(operand.info.known_shape)

    @property
    def _is_plain(self) -> bool:
        """Return whether NumPy arrays have the same elements."""
        return self._dtype != np.bool_ and self.operand.type != OperandCode.OEM_SCALAR

    def settle(self, info: TensorInfo) -> bool:
        """Take the shape of a result; returns whether callers' arrays can be used in place."""
        # Truth values of any byte and OEM scalars are converted, so they cannot be written in
        # place.
        if not info.is_fully_shaped or not self._is_plain:
            return False
        if self.shape is None:
            self._set_shape(info.known_shape)
        return self.shape == info.known_shape

    def _set_shape(self, shape: tuple[int, ...]) -> None:
        """Take the shape that arrays have to be of."""
        self.shape = shape
        self.dimensions = shape[: len(shape) - len(self.operand.element_shape)]

    def fits(self, value: object) -> TypeGuard[Array]:
        """Return whether `value` is an array that can be used in place."""
        # Every argument of every execution comes by here: the most selective test comes first.
        if type(value) is not np.ndarray or value.shape != self.shape:
            return False
        # Identity first: NumPy has one object of each common dtype, and to compare takes longer.
        if value.dtype is not self._dtype and value.dtype != self._dtype:
            return False
        flags = value.flags
        return flags.carray or (not self._is_written and flags.c_contiguous and flags.aligned)

    def given(
        self, value: object, operand_type: OperandType | None, where: str
    ) -> tuple[memoryview | None, tuple[int, ...]]:
        """The bytes and dimensions that an application gives an input.

        Raises
        ------
        NnapiError
            BAD_DATA if the value is not a buffer of the operand's type, or the type is wrong.
        """
        # Before the dimensions: a list is to be reported as such.
        data = None if value is None else readable_bytes(value, self.operand, where)
        return data, check_dimensions(
            self.operand, operand_type, where, allow_unspecified=value is None
        )

    def read(
        self,
        value: object,
        data: memoryview | None,
        dimensions: tuple[int, ...],
        where: str,
    ) -> tuple[Array | None, Renew | None]:
        """The elements of an input, and what reads them again if they are a copy.

        Parameters
        ----------
        value : object
            Value as the application gives it.
        data, dimensions
            Result of `given`.

        Raises
        ------
        NnapiError
            BAD_DATA if there are no bytes, or not as many as the dimensions say.
        """
        array = self._elements(data, dimensions, where)
        if isinstance(value, np.ndarray) and not value.flags.c_contiguous:
            # A view keeps shape and strides, which the caller could change of the array itself.
            view = value[...]

            def gather() -> Array | None:
                return self._elements(readable_bytes(view, self.operand, where), dimensions, where)

            return array, gather
        if array is None or data is None or _is_over(array, data):
            return array, None
        return array, lambda: self._elements(data, dimensions, where)

    def _elements(
        self, data: memoryview | None, dimensions: tuple[int, ...], where: str
    ) -> Array | None:
        """The elements of an input, whose length fits its dimensions; None for no value."""
        if data is None:
            return None
        check_length(self.operand, data, dimensions, where)
        elements = replace(self.operand, dimensions=dimensions, data=data).elements
        if elements is None or elements.flags.aligned:
            return elements
        # Backends read whole elements, which not every machine does at an odd address.
        return elements.copy()

    @property
    def _num_bytes(self) -> int:
        return math.prod(self.shape or ()) * self._dtype.itemsize

    def output_array(
        self, data: memoryview | None, dimensions: tuple[int, ...], where: str
    ) -> Array | None:
        """The array that an output is written to; errors as for `read`."""
        if data is None:
            return None
        check_length(self.operand, data, dimensions, where)
        flat = np.frombuffer(data, np.uint8)
        is_expected = dimensions in (self.operand.dimensions, self.dimensions)
        if self.shape is None or not is_expected or flat.size != self._num_bytes:
            return flat
        # With the shape on it, the network can write the result here without a copy.
        array = flat.view(self._dtype).reshape(self.shape)
        return array if array.flags.aligned else flat


def _is_over(array: Array, data: memoryview) -> bool:
    """Return whether an array lies in a buffer's memory and is not a copy."""
    # Bounds are enough: a copy lies in memory of its own.
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
    # result fits is seen after the execution (OUTPUT_INSUFFICIENT_SIZE).
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
    """

    def __init__(self, main: Subgraph) -> None:
        self._main = main
        self.inputs = tuple(ArgumentSlot(main.operands[i], is_written=False) for i in main.inputs)
        self.outputs = tuple(ArgumentSlot(main.operands[i], is_written=True) for i in main.outputs)
        self.has_control_flow = any(node.type in CONTROL_FLOW_CODES for node in main.operations)

    @property
    def input_shapes(self) -> list[tuple[int, ...]] | None:
        """The shape of every input; None if one cannot be used in place."""
        shapes = [slot.shape for slot in self.inputs if slot.shape is not None]
        return shapes if len(shapes) == len(self.inputs) else None

    def settle(self, infos: Sequence[TensorInfo]) -> bool:
        """Take the shapes of all results; returns whether arrays can be written in place."""
        # A list and no generator: every slot has to take its shape, also after one that cannot.
        return all([slot.settle(info) for slot, info in zip(self.outputs, infos, strict=True)])

    def read(self, values: Sequence[object], where: str) -> list[Array | None]:
        """Read all inputs, whose shapes say what dimensions the model leaves open.

        Parameters
        ----------
        values : sequence of (ndarray or None)
            One per input; None for one that is left out.

        Raises
        ------
        NnapiError
            BAD_DATA if there are more or fewer than the model has, or one does not fit.
        """
        require_data(
            len(values) == len(self.inputs),
            "the number of inputs is not the model's",
            where=where,
            expected=str(len(self.inputs)),
            actual=str(len(values)),
            fix="Pass one array per input, in order",
        )
        arrays: list[Array | None] = []
        for index, (slot, value) in enumerate(zip(self.inputs, values, strict=True)):
            if slot.fits(value):
                arrays.append(value)
                continue
            at, said, operand = f"{where}: input {index}", None, slot.operand
            if isinstance(value, np.ndarray) and operand.is_tensor:
                shape = value.shape[: value.ndim - len(operand.element_shape)]
                said = OperandType(operand.type, shape, operand.scale, operand.zero_point)
            arrays.append(slot.read(value, *slot.given(value, said, at), at)[0])
        return arrays

    @cached_property
    def needed_outputs(self) -> frozenset[int]:
        """Positions of the outputs that may not be left out."""
        optional = optional_operands(self._main)
        return frozenset(
            position for position, i in enumerate(self._main.outputs) if i not in optional
        )
