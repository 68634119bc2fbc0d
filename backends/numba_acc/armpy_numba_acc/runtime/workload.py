"""The workload that runs a compiled region."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from armpy.backend.cancellation import current_cancellation
from armpy.backend.control_flow import control_flow_time_left_s, current_timeout_s, loop_timeout_s
from armpy.backend.memory.tensor_handle import HostTensorHandle
from armpy.backend.workload import IWorkload
from armpy_numba_acc.runtime.instance import Instance, LoadedCode

if TYPE_CHECKING:  # an import here slows every start of a compiled model
    from armpy.backend import Cancellation, ICustomAllocator, ITensorHandle
    from armpy.ops.operation import Array
    from armpy_numba_acc.program.program import SizedProgram
    from armpy_numba_acc.runtime.profiling import Recorder


_MOST_IDLE = 16
"""Instances that are kept for the next executions: where more callers come at a time, some have
memory made, and touched for the first time, again and again."""


class ProgramWorkload(IWorkload):
    """Runs a program; any number of threads may at the same time.

    Parameters
    ----------
    recorder : Recorder, optional
        Receives the duration of every command.
    allocator : ICustomAllocator, optional
        Gives the program's memory.
    original : ProgramWorkload, optional
        The workload for other sizes that this one shares its instances with, and keeps.
    """

    def __init__(
        self,
        code: LoadedCode,
        recorder: Recorder | None = None,
        allocator: ICustomAllocator | None = None,
        original: ProgramWorkload | None = None,
    ) -> None:
        self.code = code
        self._recorder = recorder
        self._allocator = allocator
        self._original = original
        self._is_plain = not code.has_loops and recorder is None
        # For the next executions; any thread may change its ends without a lock.
        self._idle: deque[Instance]
        if original is None:
            self._timeout_s = loop_timeout_s()
            self._idle = deque(maxlen=_MOST_IDLE)
        else:
            self._timeout_s = original._timeout_s
            self._idle = original._idle

    def resized(self, program: SizedProgram) -> ProgramWorkload:
        """The workload for other sizes, with the same instances, which keeps this one."""
        code = self.code.resized(program)
        return ProgramWorkload(code, self._recorder, self._allocator, self)

    def _new_instance(self) -> Instance:
        """Memory for one more execution at a time."""
        is_profiled = self._recorder is not None
        return Instance(self.code, is_profiled=is_profiled, allocator=self._allocator)

    def for_arrays(self) -> Callable[[Sequence[Array]], object]:
        """Function that runs the program on arrays, without handles."""
        return self._execute

    def _execute(self, tensors: Sequence[Array]) -> None:
        """Run the program on inputs and outputs; errors as of `execute`."""
        try:
            instance = self._idle.pop()
        except IndexError:  # asking first whether one is left would race with other threads
            instance = self._new_instance()
        if instance.code is not self.code:
            instance.resize(self.code)
        try:
            if self._is_plain:  # asked once, as each question takes some percent of a small call
                cancellation = current_cancellation()
                if cancellation is not None or instance.is_parallel:
                    instance.run(tensors, cancellation)
                elif instance.function(*tensors):  # it has not run everything
                    instance.run_again(tensors)
            else:
                self._run(instance, tensors, current_cancellation())
        finally:
            # Also after an error: the next execution begins anew.
            self._idle.append(instance)

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Run the program on the handles' memory.

        Raises
        ------
        ExecutionTimeoutError, ExecutionCancelledError
            If the execution was stopped; see `armpy.backend.Cancellation`.
        """
        tensors: list[Array] = []
        opened: tuple[ITensorHandle, ...] = ()
        try:
            for handle in inputs:
                # Nearly all tensors are of this kind, to which access has no end.
                if type(handle) is HostTensorHandle:
                    tensors.append(handle.array)
                elif handle is not None:
                    tensors.append(handle.map(write=False))
                    opened = (*opened, handle)
            for handle in outputs:
                if type(handle) is HostTensorHandle:
                    tensors.append(handle.array)
                else:
                    tensors.append(handle.map(read=False))
                    opened = (*opened, handle)
            self._execute(tensors)
        finally:
            for handle in opened:
                handle.unmap()

    def _run(
        self, instance: Instance, tensors: Sequence[Array], cancellation: Cancellation | None
    ) -> None:
        if self.code.has_loops:
            left_s = control_flow_time_left_s(self._timeout_s)
            instance.run(tensors, cancellation, left_s, current_timeout_s(self._timeout_s))
        else:
            instance.run(tensors, cancellation)
        if self._recorder is not None and instance.times_ns is not None:
            self._recorder.add(self.code, instance.times_ns, threading.get_ident())

    def free_idle_memory(self) -> None:
        """Give the programs' arenas back that no execution is using."""
        self._idle.clear()

    def bind(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> Callable[[], object]:
        """Look the addresses of the handles' memory up once, if it is the host's."""
        arrays: list[Array] = []
        for handle in (*inputs, *outputs):
            if isinstance(handle, HostTensorHandle):
                arrays.append(handle.array)
            elif handle is not None:
                return super().bind(inputs, outputs)
        # One that is never idle: its addresses are those of the bound arrays for good.
        instance = self._new_instance()
        instance.bind(arrays)
        cancellation = current_cancellation()
        if not self._is_plain:
            return partial(self._run, instance, (), cancellation)
        return instance.bound_call(cancellation)
