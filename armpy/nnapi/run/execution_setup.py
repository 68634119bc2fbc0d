"""Set-up of executions: arguments and options, all of it before the start."""

from __future__ import annotations

import enum
import logging
from numbers import Real
from weakref import ref

import numpy as np

from armpy.nnapi.compile.compilation import Compilation
from armpy.nnapi.compile.outputs import OutputShapes
from armpy.nnapi.description.buffers import readable_bytes, writable_bytes
from armpy.nnapi.description.operand_type import OperandType
from armpy.nnapi.description.request import check_dimensions
from armpy.nnapi.memory.memory import Memory
from armpy.nnapi.memory.memory_domain import DescribedMemory, Role
from armpy.nnapi.memory.memory_uses import PLACEHOLDER, MemoryUses
from armpy.nnapi.results import (
    bad_data,
    bad_state,
    check_kind,
    require_data,
    unexpected_null,
)
from armpy.nnapi.run.arguments import Arguments, ArgumentSlot, Renew
from armpy.ops.operation import Array

_log = logging.getLogger("armpy.nnapi")

DEFAULT_LOOP_TIMEOUT_NS = 2_000_000_000
"""How long a WHILE may take if nobody says otherwise."""

MAXIMUM_LOOP_TIMEOUT_NS = 15_000_000_000
"""The longest time that a WHILE may be given."""


class ExecutionState(enum.Enum):
    """State of an execution."""

    BUILDING = "building"
    STARTED = "started"
    FINISHED = "finished"


class ExecutionSetup:
    """Setup of an execution before it starts; parameters as for `Execution`."""

    def __init__(self, compilation: Compilation) -> None:
        if type(compilation) is not Compilation:
            if compilation is None:
                raise unexpected_null("the compilation", where="Execution")
            check_kind(compilation, Compilation, "Execution")
        compilation.check_ready("Execution")
        self._compilation = compilation
        signature = compilation.signature
        self._inputs = Arguments("input", signature.inputs)
        self._outputs = Arguments("output", signature.outputs)
        self._shapes = OutputShapes(signature.outputs)
        self._state = ExecutionState.BUILDING
        self._loop_timeout_ns: int | None = None
        self._timeout_ns = 0
        self._is_timed = False
        self._is_reusable = False
        self._memories: MemoryUses | None = None

    @property
    def compilation(self) -> Compilation:
        """What is run."""
        return self._compilation

    @property
    def is_reusable(self) -> bool:
        """Whether it can be computed again."""
        return self._is_reusable

    def set_input(self, index: int, value: object, operand_type: OperandType | None = None) -> None:
        """Give an input its elements.

        Parameters
        ----------
        index : int
            Position among the model's inputs.
        value : ndarray, bytes-like, number or None
            Used in place, so it must not change until the execution is over; None for an
            optional input that is left out.
        operand_type : OperandType, optional
            Needed where the model does not say all dimensions.

        Raises
        ------
        NnapiError
            BAD_STATE after the start, or if the input is set already; BAD_DATA if there is no such
            input, or type or length do not fit.

        Notes
        -----
        The C function ``ANeuralNetworksExecution_setInput`` takes the type before the buffer.
        """
        is_plain = operand_type is None and self._state is ExecutionState.BUILDING
        if is_plain and self._inputs.take(index, value):
            return
        where = f"Execution.set_input({index})"
        self._check_building(where)
        slot = self._inputs.slot(index, where)
        self._inputs.put(index, *self._input_read(slot, value, operand_type, where, index))

    def _input_read(
        self,
        slot: ArgumentSlot,
        value: object,
        operand_type: OperandType | None,
        where: str,
        index: int | None = None,
    ) -> tuple[Array | None, Renew | None]:
        """The elements of an input, which is not set yet, and what reads them again."""
        # Before the dimensions: who passes a list is to be told about that.
        data = None if value is None else readable_bytes(value, slot.operand, where)
        dimensions = check_dimensions(
            slot.operand, operand_type, where, allow_unspecified=value is None
        )
        if index is not None:
            self._inputs.check_unset(index, where)
        if not isinstance(value, np.ndarray) or value.flags.c_contiguous:
            return slot.input_read(data, dimensions, where)
        view = value[...]

        def renew() -> Array | None:
            gathered = readable_bytes(view, slot.operand, where)
            return slot.input_array(gathered, dimensions, where)

        return slot.input_array(data, dimensions, where), renew

    def set_output(
        self, index: int, buffer: object, operand_type: OperandType | None = None
    ) -> None:
        """Say where an output is to be written.

        Parameters
        ----------
        index : int
            Position among the model's outputs.
        buffer : ndarray, writable bytes-like or None
            At least as large as the output; None for an optional one that is not wanted. What it
            holds after an execution that failed is not known, except after
            OUTPUT_INSUFFICIENT_SIZE, which writes nothing.
        operand_type : OperandType, optional
            What is known of the dimensions beyond what the model says.

        Raises
        ------
        NnapiError
            As for `set_input`.
        """
        is_plain = operand_type is None and self._state is ExecutionState.BUILDING
        if is_plain and self._outputs.take(index, buffer):
            return
        where = f"Execution.set_output({index})"
        self._check_building(where)
        slot = self._outputs.slot(index, where)
        data = None if buffer is None else writable_bytes(buffer, slot.operand, where)
        self._put_output(index, slot, data, operand_type, where)

    def _put_output(
        self,
        index: int,
        slot: ArgumentSlot,
        data: memoryview | None,
        operand_type: OperandType | None,
        where: str,
    ) -> None:
        """Set an output that is not set yet."""
        dimensions = check_dimensions(slot.operand, operand_type, where, allow_unspecified=True)
        self._outputs.check_unset(index, where)
        self._outputs.put(index, slot.output_array(data, dimensions, where))
        # Only an output that could be set may change what is expected of the result.
        self._shapes.expect(index, dimensions)

    def set_input_from_memory(
        self,
        index: int,
        memory: Memory,
        offset: int,
        length: int,
        operand_type: OperandType | None = None,
    ) -> None:
        """Give an input its elements in shared memory; errors as for `set_input`.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without memory; BAD_DATA if the region is not in it. Memory that was
            made from a description is used as a whole (offset and length 0), in its roles: BAD_DATA
            otherwise.
        """
        where = f"Execution.set_input_from_memory({index})"
        self._check_memory(memory, where)
        slot = self._inputs.slot(index, where)
        dimensions = check_dimensions(slot.operand, operand_type, where, allow_unspecified=False)
        if isinstance(memory, DescribedMemory):
            role = Role(ref(self._compilation), False, index)
            memory.check_role(role, operand_type, offset, length, where)
            self._inputs.check_unset(index, where)
            self._inputs.put(index, PLACEHOLDER.view())
            self._uses.add(index, memory, dimensions, is_output=False)
            return
        data = memory.region(offset, length, where)
        self._inputs.check_unset(index, where)
        self._inputs.put(index, *slot.input_read(data, dimensions, where))

    def set_output_from_memory(
        self,
        index: int,
        memory: Memory,
        offset: int,
        length: int,
        operand_type: OperandType | None = None,
    ) -> None:
        """Say where in shared memory an output is to be written; errors as for `set_output`.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without memory; BAD_DATA if the region is not in it, or it cannot be
            written.
        """
        where = f"Execution.set_output_from_memory({index})"
        self._check_memory(memory, where)
        slot = self._outputs.slot(index, where)
        if isinstance(memory, DescribedMemory):
            role = Role(ref(self._compilation), True, index)
            dimensions = check_dimensions(slot.operand, operand_type, where, allow_unspecified=True)
            memory.check_role(role, operand_type, offset, length, where)
            self._outputs.check_unset(index, where)
            self._outputs.put(index, PLACEHOLDER.view())
            self._shapes.expect(index, dimensions)
            self._uses.add(index, memory, dimensions, is_output=True)
            return
        data = memory.region(offset, length, where)
        require_data(memory.is_writable, "the memory is read-only", where=where)
        self._put_output(index, slot, data, operand_type, where)

    def set_measure_timing(self, measure: bool) -> None:
        """Say whether to measure how long it takes.

        Raises
        ------
        NnapiError
            BAD_DATA unless the compilation is for one device that was chosen; BAD_STATE after the
            start.
        """
        devices = self._compilation.devices
        # Asked here first, as what is measured is to take no longer.
        if devices is None or len(devices) != 1 or self._state is not ExecutionState.BUILDING:
            where = "Execution.set_measure_timing"
            self._check_one_device("only executions on one chosen device are measured", where)
            self._check_building(where)
        self._is_timed = bool(measure)

    def set_timeout(self, duration_ns: int) -> None:
        """Say how long an execution may take, from its start.

        Parameters
        ----------
        duration_ns : int
            0 for no limit.

        Raises
        ------
        NnapiError
            BAD_DATA unless the compilation is for one device that was chosen, or if it is no
            time; BAD_STATE after the start.

        Notes
        -----
        An execution that takes longer comes to MISSED_DEADLINE_TRANSIENT; one whose time was up
        before it could begin, to MISSED_DEADLINE_PERSISTENT.
        """
        where = "Execution.set_timeout"
        self._check_one_device("only executions on one chosen device have time-outs", where)
        self._check_building(where)
        self._timeout_ns = check_duration(duration_ns, where)

    def set_loop_timeout(self, duration_ns: int) -> None:
        """Say how long each WHILE may take, and each IF.

        Parameters
        ----------
        duration_ns : int
            Of an outermost one, with all that it runs. 0 stops after the first true condition; at
            most `MAXIMUM_LOOP_TIMEOUT_NS`, which also stands for all longer ones. Left unsaid, it
            is what the manager's options say, `DEFAULT_LOOP_TIMEOUT_NS` unless they differ.

        Raises
        ------
        NnapiError
            BAD_STATE after the start; BAD_DATA if it is below 0.
        """
        where = "Execution.set_loop_timeout"
        self._check_building(where)
        duration_ns = check_duration(duration_ns, where)
        # NNAPI clamps what is too long, and does not refuse it.
        if duration_ns > MAXIMUM_LOOP_TIMEOUT_NS:
            _log.warning("%s: %d ns is more than the maximum, which is used", where, duration_ns)
        self._loop_timeout_ns = min(duration_ns, MAXIMUM_LOOP_TIMEOUT_NS)

    def set_reusable(self, reusable: bool) -> None:
        """Say whether it can be computed again after it has come to its end.

        Parameters
        ----------
        reusable : bool
            Off unless said. A reusable execution is prepared at its first computation and then
            costs a third of a new one; one at a time. It is always for the same arguments, whose
            elements may change in between.

        Raises
        ------
        NnapiError
            BAD_STATE after the start.

        References
        ----------
        NNAPI ``ANeuralNetworksExecution_setReusable``.
        """
        self._check_building("Execution.set_reusable")
        self._is_reusable = bool(reusable)

    def _check_one_device(self, failed: str, where: str) -> None:
        """Check that the compilation is for one device that the application chose."""
        devices = self._compilation.devices
        require_data(
            devices is not None and len(devices) == 1,
            failed,
            where=where,
            expected="a compilation for one device",
            actual="none was chosen" if devices is None else f"{len(devices)} devices",
            fix="Make it with Compilation.create_for_devices",
        )

    @property
    def _uses(self) -> MemoryUses:
        """What is done with memory that was made from descriptions."""
        if self._memories is None:
            self._memories = MemoryUses(may_fall_back=self._compilation.devices is None)
        return self._memories

    def _check_memory(self, memory: Memory, where: str) -> None:
        """An argument in memory needs memory, and an execution that has not started."""
        if memory is None:
            raise unexpected_null("the memory", where=where, expected="a Memory")
        check_kind(memory, Memory, where)
        self._check_building(where)

    def _check_building(self, where: str) -> None:
        """Check that the execution has not been started."""
        if self._state is not ExecutionState.BUILDING:
            raise bad_state(
                "the execution has been started", where=where, fix="Make another one for each run"
            )


def check_duration(duration_ns: object, where: str) -> int:
    """A duration in nanoseconds.

    Raises
    ------
    NnapiError
        BAD_DATA if it is none.
    """
    is_number = isinstance(duration_ns, Real) and not isinstance(duration_ns, (bool, np.bool_))
    if not is_number or not duration_ns >= 0:  # type: ignore[operator]  # not true of NaN
        raise bad_data(
            "the time is below 0, or no number",
            where=where,
            expected="nanoseconds, 0 or more",
            actual=repr(duration_ns),
        )
    return duration_ns  # type: ignore[return-value]  # a number
