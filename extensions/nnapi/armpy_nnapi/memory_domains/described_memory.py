"""Memory that was made from a description: a device's own, or ordinary in its place."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from weakref import ReferenceType

import numpy as np

from armpy.backend import ExternalMemory
from armpy.execution.arrays.imported_tensor import ToImport
from armpy.ops.operation import Array
from armpy_nnapi.codes import OperandCode
from armpy_nnapi.description.model_description import Operand
from armpy_nnapi.description.operand_type import OperandType
from armpy_nnapi.description.request import combine_dimensions
from armpy_nnapi.memory import Memory
from armpy_nnapi.results import bad_data, bad_state, op_failed, require_data

if TYPE_CHECKING:
    from armpy.plugins.proxy.memory import DeviceMemoryProxy
    from armpy_nnapi.compile.compilation import Compilation


class Role(NamedTuple):
    """An input or output of a compilation."""

    compilation: ReferenceType[Compilation]
    is_output: bool
    position: int


def same_metadata(one: Operand, other: Operand) -> bool:
    """Return whether two operands have everything in common but dimensions."""
    # Without dimensions, which are combined and not compared.
    return (
        one.type == other.type
        and one.scale == other.scale
        and one.zero_point == other.zero_point
        and one.channel_quant == other.channel_quant
        and one.extension_data == other.extension_data
    )


class DescribedMemory(Memory):
    """Memory for certain inputs and outputs; made by `Memory.create_from_desc`.

    Parameters
    ----------
    operand : Operand
        Type of the elements, with the dimensions as far as they are known.
    roles : collection of Role
        The only uses that it can be put to.
    buffer : DeviceMemoryProxy, optional
        Where the elements are; in ordinary memory if left out.

    Attributes
    ----------
    array : ndarray, optional
        The elements in ordinary memory, where they are those of an array.

    Notes
    -----
    Only executions access its elements directly; `Memory.copy` brings them in and out.

    References
    ----------
    NNAPI ``DeviceMemoryValidator``.
    """

    def __init__(
        self,
        operand: Operand,
        roles: Collection[Role],
        buffer: DeviceMemoryProxy | None = None,
    ) -> None:
        self._operand = operand
        # Roles hold their compilations weakly: memory does not keep models and networks loaded.
        self._roles = frozenset(roles)
        self._buffer = buffer
        self._dimensions = operand.dimensions
        self._is_initialized = False
        # Attributes of `Memory`, whose constructor is not called: there is no buffer of an
        # application.
        self._mapping = self._external = None
        self._is_closed = False
        self._view = None if buffer is not None else memoryview(bytearray(operand.size_bytes))
        self.array: Array | None = None
        is_plain = operand.data_type.dtype != np.bool_ and operand.type != OperandCode.OEM_SCALAR
        if self._view is not None and is_plain:
            self.array = replace(operand, data=self._view).elements

    @property
    def size(self) -> int:
        """Bytes; 0 where dimensions are not known."""
        self._check_open()
        return self._operand.size_bytes

    @property
    def is_writable(self) -> bool:
        """Outputs can be in it, if it has such roles."""
        return True

    @property
    def is_initialized(self) -> bool:
        """Return whether it has elements: after a copy into it, or an execution that ended well."""
        return self._is_initialized

    @property
    def dimensions(self) -> tuple[int, ...]:
        """Dimensions, as far as they are known: of the elements, if it has some."""
        return self._dimensions

    @property
    def device(self) -> str:
        """Id of the backend whose memory it is; empty for ordinary memory."""
        return "" if self._buffer is None else self._buffer.backend_id

    @property
    def data(self) -> memoryview:
        """Refused: only executions and `Memory.copy` know its elements.

        Raises
        ------
        NnapiError
            BAD_DATA.
        """
        raise bad_data(
            "memory that was made from a description cannot be looked into",
            where="Memory.data",
            fix="Copy it to memory of the application with Memory.copy",
        )

    def region(self, offset: int, length: int, where: str) -> memoryview:
        """Refused: constants cannot be in it.

        Raises
        ------
        NnapiError
            BAD_DATA.
        """
        raise bad_data("memory that was made from a description has other roles", where=where)

    def check_role(
        self, role: Role, given: OperandType | None, offset: int, length: int, where: str
    ) -> None:
        """Check that an execution can have it as an input or output.

        Raises
        ------
        NnapiError
            BAD_DATA if it is for another role, a part of it is asked for, or the dimensions are not
            those that it was made for.
        """
        self._check_open()
        require_data(role in self._roles, "the memory was not made for this", where=where)
        require_data(
            offset == 0 and length == 0,
            "memory that was made from a description is used as a whole",
            where=where,
            expected="offset 0 and length 0",
            actual=f"{length} bytes at {offset}",
        )
        dimensions = self._operand.dimensions
        require_data(
            given is None or combine_dimensions(given.dimensions, dimensions) is not None,
            "the dimensions are not those of the memory",
            where=where,
            expected=str(dimensions),
            actual="" if given is None else str(given.dimensions),
        )

    def check_input(self, dimensions: tuple[int, ...], where: str) -> None:
        """Check that an execution can read it.

        Raises
        ------
        NnapiError
            OP_FAILED if nothing is in it, or elements of other dimensions.
        """
        if not self._is_initialized:
            raise op_failed("the memory has no elements yet", where=where)
        if dimensions != self._dimensions:
            raise op_failed(
                "the elements in the memory have other dimensions",
                where=where,
                expected=str(dimensions),
                actual=str(self._dimensions),
            )

    def check_output(self, dimensions: tuple[int, ...], where: str) -> None:
        """Check that it can hold what an execution writes.

        Raises
        ------
        NnapiError
            OP_FAILED if it cannot.
        """
        if combine_dimensions(dimensions, self._operand.dimensions) is None:
            raise op_failed(
                "the output does not fit its memory",
                where=where,
                expected=str(self._operand.dimensions),
                actual=str(dimensions),
            )

    def note_written(self, dimensions: tuple[int, ...] | None) -> None:
        """Note the dimensions that an execution has written; None if it failed."""
        # An execution that failed may have written a part, so the elements count as lost.
        self._is_initialized = dimensions is not None
        if dimensions is not None:
            self._dimensions = dimensions

    @property
    def is_open(self) -> bool:
        """Return whether it was made without all dimensions."""
        return not self._operand.size_bytes

    def dimensions_of(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Convert the shape of a core's tensor to dimensions."""
        return shape[: len(shape) - len(self._operand.element_shape)]

    def to_import(self, dimensions: tuple[int, ...]) -> ToImport | None:
        """The backend's buffer, for elements of some dimensions; None for ordinary memory."""
        if self._buffer is None:
            return None
        size_bytes = math.prod(dimensions) * self._operand.element_size_bytes
        # The device's own object, not the guard around it: the backend has to recognise its memory.
        memory = ExternalMemory.of_device(self._buffer.unguarded, size_bytes)
        return ToImport(memory, (*dimensions, *self._operand.element_shape))

    def read(self) -> Array:
        """The elements: a copy, unless ordinary memory has them as an array."""
        # The array itself: the core decides whether an execution can read it where it lies.
        if self.array is not None:
            return self.array
        shaped = replace(self._operand, dimensions=self._dimensions, data=self._view)
        if self._buffer is None:
            elements = shaped.elements
            assert elements is not None  # ordinary memory has bytes
            return elements
        shape = (*shaped.dimensions, *shaped.element_shape)
        copied: Array = np.empty(shape, shaped.data_type.dtype)
        self._buffer.copy_out_to(copied)
        return copied

    def write(self, elements: Array) -> None:
        """Overwrite the elements."""
        elements = np.ascontiguousarray(elements)
        if self._buffer is not None:
            self._buffer.copy_in_from(elements)
        elif self._view is not None:
            self._view[:] = elements.reshape(-1).view(np.uint8).data

    def close(self) -> None:
        """Give the memory back; what still uses it keeps it until it is done."""
        # Executions under way hold the buffer themselves; it goes with the last of them.
        self._view = self._buffer = self.array = None
        self._is_closed = True
        self._is_initialized = False

    def _check_open(self) -> None:
        """Check that it was not closed."""
        if self._is_closed:
            raise bad_state("the memory is closed", where="Memory")

    # What `Memory.copy` asks.

    def _bytes(self) -> memoryview:
        return np.ascontiguousarray(self.read()).reshape(-1).view(np.uint8).data

    def _check_filled(self, where: str) -> None:
        self._check_open()
        require_data(self._is_initialized, "the source has no elements yet", where=where)

    def _fill(self, source: Memory, where: str) -> None:
        """Take another memory's elements and their description."""
        self._check_open()
        mine, dimensions = self._operand, self._operand.dimensions
        if isinstance(source, DescribedMemory):
            require_data(
                same_metadata(source._operand, mine),
                "the types of the two are not the same",
                where=where,
                expected=mine.type_name,
                actual=source._operand.type_name,
            )
            # Open dimensions of this memory may take those of the source, known ones must agree.
            combined = combine_dimensions(source._dimensions, dimensions)
            if combined is None:
                raise bad_data(
                    "the source has other dimensions",
                    where=where,
                    expected=str(dimensions),
                    actual=str(source._dimensions),
                )
            dimensions = combined
        shaped = replace(mine, dimensions=dimensions)
        stored = source._bytes()
        require_data(
            shaped.size_bytes == len(stored),
            "the source has another size",
            where=where,
            expected=f"{shaped.size_bytes} bytes",
            actual=f"{len(stored)} bytes",
        )
        # Until the copy has come to its end: a device that fails in between leaves half of it.
        self._dimensions, self._is_initialized = dimensions, False
        elements = replace(shaped, data=stored).elements
        assert elements is not None  # it has bytes
        self.write(elements)
        self._is_initialized = True

    def __repr__(self) -> str:
        if self._is_closed:
            return "Memory(closed)"
        kind = f"of {self.device}" if self._buffer is not None else "ordinary"
        about = f"{self._operand.type_name}{self._dimensions}"
        return f"Memory({kind}, {about}{'' if self._is_initialized else ', no elements'})"
