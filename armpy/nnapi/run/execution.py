"""Executions: runs of a compiled model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from armpy.backend import ExecutionTiming
from armpy.backend.timing import enter_timing, leave_timing
from armpy.errors import ResultCode
from armpy.nnapi.description.operand_type import OperandType
from armpy.nnapi.results import bad_state, require_data
from armpy.nnapi.run.execution_starts import ExecutionStarts
from armpy.nnapi.run.execution_turns import left_s
from armpy.ops.operation import Array

if TYPE_CHECKING:
    from armpy.execution import LoadedNetwork
    from armpy.nnapi.memory.memory_uses import Given, Targets

_COMPUTE = "Execution.compute"


class Execution(ExecutionStarts):
    """One run of a compiled model; any number of them if it is reusable.

    Parameters
    ----------
    compilation : Compilation
        Finished.

    Raises
    ------
    NnapiError
        UNEXPECTED_NULL without a compilation; BAD_STATE if it is not finished or failed.

    References
    ----------
    NNAPI ``ANeuralNetworksExecution``.
    """

    def compute(self) -> None:
        """Run the model and write the outputs.

        Raises
        ------
        NnapiError
            BAD_STATE if it was started before, and is not reusable, or is under way; BAD_DATA if
            an input or output is not set; OP_FAILED if an operation cannot run with these inputs;
            OUTPUT_INSUFFICIENT_SIZE if an output does not fit its buffer, nothing being written
            then (see `get_output_operand_dimensions`); MISSED_DEADLINE_TRANSIENT if a loop or all
            of it took too long; DEAD_OBJECT if a device is gone; OUT_OF_MEMORY.
        """
        self._begin(_COMPUTE)
        try:
            bound = self._take_prepared() if self._prepared else None
            if bound is None:
                self._compute()
            else:
                self._is_idle = False
                self._run_bound(bound)
        except BaseException as error:  # noqa: BLE001 - raised again
            self._raise_failed(error, _COMPUTE)
        self._end(ResultCode.NO_ERROR)

    def run(self, inputs: Sequence[Array | None]) -> list[Array]:
        """Run the model with arrays, whose shapes say what dimensions the model leaves open.

        Parameters
        ----------
        inputs : sequence of (ndarray or None)
            One per input, of the operands' dtypes; None for an optional one that is left out.

        Returns
        -------
        list of ndarray
            One per output, of the shapes that came out.

        Raises
        ------
        NnapiError
            As for `set_input` and `compute`; BAD_STATE also if arguments were set before.
        """
        where = "Execution.run"
        self._check_building(where)
        slots = self._compilation.signature.inputs
        require_data(
            len(inputs) == len(slots),
            "the number of inputs is not the model's",
            where=where,
            expected=str(len(slots)),
            actual=str(len(inputs)),
        )
        arrays: list[Array | None] = []
        for index, (slot, value) in enumerate(zip(slots, inputs, strict=True)):
            self._inputs.check_unset(index, where)
            if slot.fits(value):
                arrays.append(value)
                continue
            given, operand = None, slot.operand
            if isinstance(value, np.ndarray) and operand.is_tensor:
                shape = value.shape[: value.ndim - len(operand.element_shape)]
                given = OperandType(operand.type, shape, operand.scale, operand.zero_point)
            arrays.append(self._input_read(slot, value, given, f"{where}: input {index}")[0])
        self._take_turn(where)
        try:
            self._shapes.begin()
            results = self._results(arrays)
            for index, result in enumerate(results):
                self._shapes.note(index, result, where)
        except BaseException as error:  # noqa: BLE001 - raised again
            self._raise_failed(error, where)
        self._end(ResultCode.NO_ERROR)
        return results

    def _compute(self) -> None:
        """Run with the arrays that were set, and write the outputs."""
        inputs, outputs = self._inputs, self._outputs
        if self._memories is not None:
            self._check_left_out(_COMPUTE)
            inputs.renew()
            self._shapes.begin()
            part = self._network(inputs.arrays)
            self._write(self._memories.run(part, inputs.arrays, self._run, _COMPUTE), _COMPUTE)
            return
        network = self._compilation.whole
        if network is None or not self._is_in_place():
            self._check_left_out(_COMPUTE)
            inputs.renew()
            self._shapes.begin()
            self._shapes.write(outputs.arrays, self._results(inputs.arrays), _COMPUTE)
            return
        has_control_flow = self._compilation.signature.has_control_flow
        if self._is_reusable and not has_control_flow and not self._timeout_ns:
            self._bind()
        else:
            # As every input and output has the shape that the network is prepared for.
            self._run(network, inputs.arrays, outputs.arrays)  # type: ignore[arg-type]  # all set
        self._shapes.note_expected()

    def _is_in_place(self) -> bool:
        """Whether results can be written where they belong, which no other argument overlaps."""
        inputs, outputs = self._inputs, self._outputs
        if not (inputs.are_in_place and outputs.are_in_place):
            return False
        others = [*inputs.arrays]
        for array in outputs.arrays:
            for other in others:
                if np.may_share_memory(array, other):
                    return False
            others.append(array)
        return True

    def _bind(self) -> None:
        """Prepare for these arrays, and run the first time."""
        from armpy.execution.memory.idle_release import watch_idling  # noqa: PLC0415 - few are reused

        network = self._compilation.whole
        if network is None:
            raise bad_state("the compilation is closed", where=_COMPUTE)
        inputs = [value.name for value in network.graph.inputs]
        bound = network.bind(
            dict(zip(inputs, self._inputs.arrays, strict=True)),
            dict(zip(network.graph.output_names, self._outputs.arrays, strict=True)),
        )
        self._is_idle = False
        self._run_bound(bound)
        watch_idling(self)

    def _results(self, arrays: Sequence[Array | None]) -> list[Array]:
        """Run the network that is for these inputs."""
        return self._run(self._network(arrays), [array for array in arrays if array is not None])

    def _run(
        self, network: LoadedNetwork, given: Given, targets: Targets | None = None
    ) -> list[Array]:
        """Run a network, and measure it if that was asked for."""
        limit_s = left_s(self._deadline_s(), _COMPUTE) if self._timeout_ns else None
        loop_s = self._loop_timeout_s()
        if not self._is_timed:
            return network.run(given, targets, loop_timeout_s=loop_s, deadline_s=limit_s)  # type: ignore[arg-type]  # memory is imported in the place of arrays
        timing = ExecutionTiming()
        started_ns = time.perf_counter_ns()
        token = enter_timing(timing)
        try:
            made = network.run(given, targets, loop_timeout_s=loop_s, deadline_s=limit_s)  # type: ignore[arg-type]  # as above
        finally:
            leave_timing(token)
        self._measure = timing, started_ns, started_ns, time.perf_counter_ns()
        return made
