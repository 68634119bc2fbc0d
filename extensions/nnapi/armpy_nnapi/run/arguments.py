"""Arguments of one execution: its inputs and outputs, in buffers or in memory."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import ref

import numpy as np

from armpy.ops.operation import Array
from armpy_nnapi.compile.compilation import Compilation
from armpy_nnapi.compile.outputs import OutputShapes
from armpy_nnapi.compile.signature import ArgumentSlot, ExecutionSignature, Renew
from armpy_nnapi.description.buffers import writable_bytes
from armpy_nnapi.description.operand_type import OperandType
from armpy_nnapi.description.request import check_dimensions
from armpy_nnapi.errors import NnapiError, ResultCode
from armpy_nnapi.memory import Memory
from armpy_nnapi.memory_domains.described_memory import DescribedMemory, Role
from armpy_nnapi.memory_domains.memory_uses import PLACEHOLDER, MemoryUses
from armpy_nnapi.results import bad_data, bad_state, check_index, require_data

_UNSET: Array = np.empty(0, np.uint8)
"""Stands for an argument that is not set."""


class ArgumentList:
    """The inputs, or the outputs, of one execution.

    Parameters
    ----------
    what : str
        ``"input"`` or ``"output"``, for messages.

    Attributes
    ----------
    arrays : list of (ndarray or None)
        Each argument, None for no value. Arguments that are not set yet do not count.
    are_in_place : bool
        Whether each is an array of the shape and type of its slot.
    """

    __slots__ = ("_num_unset", "_renewed", "_slots", "_what", "are_in_place", "arrays")

    def __init__(self, what: str, slots: tuple[ArgumentSlot, ...]) -> None:
        self._what = what
        self._slots = slots
        # Counted, so that a complete list is recognised without going through it.
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
        array : ndarray, optional
        renew : callable, optional
            Makes it again for each execution, if it is a copy.
        """
        if renew is not None:
            # Kept in a list of its own, which for most executions is not even made.
            self._renewed = [*(self._renewed or ()), (index, renew)]
        is_in_place = array is not None and self._slots[index].fits(array)
        self.are_in_place &= is_in_place and renew is None
        self.arrays[index] = array
        self._num_unset -= 1

    def renew(self) -> None:
        """Read the arguments again that are not used in place."""
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

    def check_none_set(self, where: str) -> None:
        """Check that no argument has been set; BAD_STATE as for `check_unset`."""
        for index in range(len(self.arrays)):
            self.check_unset(index, where)

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
            fix = f"Call Execution.set_{self._what}({position}, array) before"
            raise bad_data(f"{self._what} {position} is not set", where=where, fix=fix)


class ExecutionArguments:
    """The inputs and outputs of one execution.

    Parameters
    ----------
    compilation : Compilation
        Ready.
    signature : ExecutionSignature
        The compilation's.

    Attributes
    ----------
    memories : MemoryUses, optional
        The arguments that are memory made from descriptions; None if there is no such.
    """

    __slots__ = ("_compilation", "_signature", "inputs", "memories", "outputs")

    def __init__(self, compilation: Compilation, signature: ExecutionSignature) -> None:
        self._compilation = compilation
        self._signature = signature
        self.inputs = ArgumentList("input", signature.inputs)
        self.outputs = ArgumentList("output", signature.outputs)
        self.memories: MemoryUses | None = None

    def set_input(
        self, index: int, value: object, operand_type: OperandType | None, where: str
    ) -> None:
        """Set an input to a buffer; see `Execution.set_input`."""
        slot = self.inputs.slot(index, where)
        data, dimensions = slot.given(value, operand_type, where)
        self.inputs.check_unset(index, where)
        self.inputs.put(index, *slot.read(value, data, dimensions, where))

    def set_output(
        self, index: int, buffer: object, operand_type: OperandType | None, where: str
    ) -> tuple[int, ...]:
        """Set an output to a buffer, see `Execution.set_output`; returns its dimensions."""
        slot = self.outputs.slot(index, where)
        # The buffer itself and never a copy of it: results have to appear where the caller looks.
        data = None if buffer is None else writable_bytes(buffer, slot.operand, where)
        return self._put_output(index, slot, data, operand_type, where)

    def _put_output(
        self,
        index: int,
        slot: ArgumentSlot,
        data: memoryview | None,
        operand_type: OperandType | None,
        where: str,
    ) -> tuple[int, ...]:
        """Set an output that is not set yet; returns its dimensions."""
        dimensions = check_dimensions(slot.operand, operand_type, where, allow_unspecified=True)
        self.outputs.check_unset(index, where)
        self.outputs.put(index, slot.output_array(data, dimensions, where))
        return dimensions

    def set_input_from_memory(
        self,
        index: int,
        memory: Memory,
        offset: int,
        length: int,
        operand_type: OperandType | None,
        where: str,
    ) -> None:
        """Set an input to a region of memory; see `Execution.set_input_from_memory`."""
        slot = self.inputs.slot(index, where)
        dimensions = check_dimensions(slot.operand, operand_type, where, allow_unspecified=False)
        if isinstance(memory, DescribedMemory):
            # The compilation is held weakly: it may be closed and gone while the memory stays.
            role = Role(ref(self._compilation), False, index)
            memory.check_role(role, operand_type, offset, length, where)
            self.inputs.check_unset(index, where)
            self.inputs.put(index, PLACEHOLDER.view())
            self._uses.add(index, memory, dimensions, is_output=False)
            return
        data = memory.region(offset, length, where)
        self.inputs.check_unset(index, where)
        self.inputs.put(index, *slot.read(memory, data, dimensions, where))

    def set_output_from_memory(
        self,
        index: int,
        memory: Memory,
        offset: int,
        length: int,
        operand_type: OperandType | None,
        where: str,
    ) -> tuple[int, ...]:
        """Set an output to a region of memory; returns its dimensions.

        See `Execution.set_output_from_memory`.
        """
        slot = self.outputs.slot(index, where)
        if isinstance(memory, DescribedMemory):
            role = Role(ref(self._compilation), True, index)
            dimensions = check_dimensions(slot.operand, operand_type, where, allow_unspecified=True)
            memory.check_role(role, operand_type, offset, length, where)
            self.outputs.check_unset(index, where)
            self.outputs.put(index, PLACEHOLDER.view())
            self._uses.add(index, memory, dimensions, is_output=True)
            return dimensions
        data = memory.region(offset, length, where)
        require_data(memory.is_writable, "the memory is read-only", where=where)
        return self._put_output(index, slot, data, operand_type, where)

    @property
    def _uses(self) -> MemoryUses:
        """The uses of memory that was made from descriptions, which few executions have."""
        if self.memories is None:
            # If the devices were chosen, their failure is reported; no other device runs it then.
            self.memories = MemoryUses(may_fall_back=self._compilation.devices is None)
        return self.memories

    @property
    def are_in_place(self) -> bool:
        """True if results can be written in place, as no other argument overlaps them."""
        inputs, outputs = self.inputs, self.outputs
        if not (inputs.are_in_place and outputs.are_in_place):
            return False
        # A network may write an output before it has read all inputs, so one buffer for both
        # would give other results than NNAPI's, which come out of buffers of their own.
        others = [*inputs.arrays]
        for array in outputs.arrays:
            for other in others:
                if np.may_share_memory(array, other):
                    return False
            others.append(array)
        return True

    def check_left_out(self, where: str) -> None:
        """Check that only optional outputs are left out.

        Raises
        ------
        NnapiError
            OP_FAILED if another one is.
        """
        for position, array in enumerate(self.outputs.arrays):
            if array is None and position in self._signature.needed_outputs:
                raise NnapiError(
                    f"output {position} has no buffer, and the operation cannot go without it",
                    code=ResultCode.OP_FAILED,
                    where=where,
                )

    def write(self, results: Sequence[Array], shapes: OutputShapes, where: str) -> None:
        """Write results where they belong; errors as for `OutputShapes.write`."""
        # Memory made from descriptions takes its results first; the rest goes into buffers.
        buffers: Sequence[Array | None] = self.outputs.arrays
        if self.memories is not None:
            results, buffers = self.memories.taken(results, buffers, where)
        shapes.write(buffers, results, where)
