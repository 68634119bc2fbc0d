"""Programs: steps over planned memory, compiled now or read from a file, and how they execute.

A `BoundProgram` is a loaded network prepared for certain input shapes: its inputs, and how it is
executed.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, TypeAlias, TypeVar

from numpy import empty, uint8

from armpy.backend.memory.tensor_handle import HostTensorHandle
from armpy.execution.memory.arena_pool import PooledArena, arena_pool

if TYPE_CHECKING:  # a model that was prepared ahead of time starts without all this
    from armpy.backend import Cancellation, ITensorHandle
    from armpy.execution.arrays.slots import InputSlot, OutputSlot
    from armpy.execution.steps.control_flow import Shapes, Targets
    from armpy.execution.steps.step import Execute
    from armpy.ops.operation import Array
    from armpy.tensor import TensorInfo
    from armpy.types import BackendId

    class Run(Protocol):
        """Callable that executes once."""

        def __call__(
            self,
            sources: Sequence[Array],
            results: Targets | None = None,
            cancellation: Cancellation | None = None,
            /,
        ) -> list[Array]:
            """Execute once; parameters and result as for `StepProgram.run`."""

    Bind: TypeAlias = Callable[[Sequence[Array], Targets], Callable[[], Sequence[Array] | None]]
    """Prepares many executions with the same arrays; each returns new results."""

ProgramKey: TypeAlias = tuple[object, ...]
"""Key of a program of a loaded network: mostly the input shapes."""

# Threads come in bursts: what one burst needed at most is not kept for each network.
MAX_IDLE_MEMORIES = 4
"""Working memories that are kept for the next execution; more are made when threads need them."""

NOTHING: Array = empty(0, uint8)
"""Placeholder of the caller's arrays between executions."""


class StepMemory(ABC):
    """Handles of one execution at a time, and the calls with them."""

    # Those that it was resized for, by identity; None before.
    sizes: object = None

    def __init__(self, sources: Sequence[TensorInfo], results: Sequence[TensorInfo]) -> None:
        # An execution puts the caller's arrays into these and takes them out again.
        self.sources = tuple([HostTensorHandle(info, NOTHING) for info in sources])
        self.results = tuple([HostTensorHandle(info, NOTHING) for info in results])
        # What to call for each layer.
        self.steps: list[tuple[Execute, list[ITensorHandle | None], list[ITensorHandle]]] = []
        self._copies: list[tuple[HostTensorHandle, ITensorHandle]] = []
        self._bound = (*self.sources, *self.results)
        self._is_always_watched = False
        self.arenas: list[PooledArena] = []  # which networks use in turn
        # The program that keeps it between executions; Any: of this kind of memory.
        self.program: weakref.ref[StepProgram[Any]] | None = None
        self.is_stale = False  # whether it was not used when it was last looked at

    def _take_sizes(self, for_arrays: Sequence[Callable[[Sequence[Array]], object] | None]) -> None:
        """Prepare for the sizes of results, and what executes each step on arrays."""
        self._new_results = [(h.info.known_shape, h.info.data_type.dtype) for h in self.results]
        # Without handles if there is one step, which has the caller's arrays and nothing else.
        operands = [(inputs, outputs) for _, inputs, outputs in self.steps]
        is_alone = operands == [([*self.sources], [*self.results])]
        self._execute_arrays = for_arrays[0] if is_alone and not self._is_always_watched else None

    def rest(self) -> bool:
        """Let others have its arenas, with the pool's lock held; whether it was not executing."""
        program = None if self.program is None else self.program()
        return program is not None and program.rest(self)

    def forget(self) -> bool:
        """Be its program's no more, with the pool's lock held, as it rests; whether it was."""
        program = None if self.program is None else self.program()
        return program is not None and program.forget(self)

    def run(  # noqa: PLR0912 - as below
        self,
        sources: Sequence[Array],
        results: Targets | None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        """Execute once with some arrays in place, then forget them; as `StepProgram.run`."""
        # Every call and every turn of a loop comes by here: functions of its own for binding
        # and unbinding, and enumerate, each cost some percent of a small network's call.
        outputs: list[Array] = []
        if results is None:
            results = outputs
            for shape, dtype in self._new_results:
                outputs.append(empty(shape, dtype))
        else:
            index = 0
            for target in results:
                if target is None:
                    results[index] = empty(*self._new_results[index])
                index += 1  # noqa: SIM113
        arrays: list[Array] = [*sources, *results]
        if self._execute_arrays is not None and cancellation is None:
            try:
                self._execute_arrays(arrays)
            except BaseException as error:  # noqa: BLE001 - plugin boundary: named and raised
                self._raise(0, error)
            return results  # type: ignore[return-value]  # there is none missing any more
        index = 0
        for handle in self._bound:
            handle.array = arrays[index]
            index += 1  # noqa: SIM113
        execute: Execute
        step = 0
        is_watched = cancellation is not None or self._is_always_watched
        try:
            if is_watched:
                self._run_watched(cancellation)
            else:
                for execute, ins, outs in self.steps:
                    execute(ins, outs)
                    step += 1
                if self._copies:
                    self._copy_results()
        except BaseException as error:
            if is_watched:  # named already
                raise
            self._raise(step, error)
        finally:
            # Dropping an array then frees its memory, whatever else is kept here.
            for handle in self._bound:
                handle.array = NOTHING
        return results  # type: ignore[return-value]  # as above

    def _copy_results(self) -> None:
        """Fill results that no step writes: passed-through sources, constants, repeats."""
        for target, source in self._copies:
            target.array[...] = source.map(write=False)
            source.unmap()

    @abstractmethod
    def free(self) -> None:
        """Give everything back at once instead of with the last reference."""

    @abstractmethod
    def _run_watched(self, cancellation: Cancellation | None) -> None:
        """Execute the steps for whatever arrays are in place, watching what stops them.

        Raises ArmpyError (what a step raised, with the names of its backend and layer).
        """

    @abstractmethod
    def _raise(self, step: int, error: BaseException) -> NoReturn:
        """Raise what a step raised, with the names of its backend and layer."""


MemoryT = TypeVar("MemoryT", bound=StepMemory)


class StepProgram(ABC, Generic[MemoryT]):
    """Steps over planned memory, whose executions side by side take it from a small pool.

    The first execution makes memory. Between executions it is idle, from where the next one takes
    it without a lock. It rests while others have its arenas, or when it was not used for a while;
    then it is given back (`armpy.execution.memory.idle_release`).
    """

    # Of programs that share memory: memory with other ones has to be resized.
    sizes: object = None

    def __init__(
        self,
        original: StepProgram[MemoryT] | None = None,  # whose memory this one uses, resized
    ) -> None:
        # `pop` and `append` of a deque are one step each, so that a call takes no lock. They are
        # changed in place, as programs for other sizes share them.
        self._idle: deque[MemoryT]
        self._resting: deque[MemoryT]
        self._alive: weakref.WeakSet[MemoryT]
        if original is None:
            self._idle, self._resting = deque(maxlen=MAX_IDLE_MEMORIES), deque()
            self._alive = weakref.WeakSet()
        else:
            self._idle, self._resting = original._idle, original._resting
            self._alive = original._alive

    @abstractmethod
    def new_memory(self) -> MemoryT:
        """Make memory for one execution at a time, which knows nothing of the program.

        Raises MemoryLimitError if there is no memory left; a backend's own ArmpyErrors are raised
        as they are.
        """

    @abstractmethod
    def free_workloads(self) -> None:
        """Let workloads release memory that they keep between executions."""

    @abstractmethod
    def uses(self, backend_id: BackendId) -> bool:
        """Return whether memory of a backend may be among what `free_idle` gives back."""

    def take_memory(self) -> MemoryT:
        """Memory of this caller alone until it is put back; errors as of `new_memory`."""
        try:
            memory = self._idle.pop()
        except IndexError:  # asking first whether one is left would race with other threads
            memory = self._woken() or self._made()
        if memory.sizes is not self.sizes:
            self.resize(memory)
        return memory

    def resize(self, memory: MemoryT) -> None:
        """Make memory of a program for other sizes fit this one."""
        raise NotImplementedError

    def put_back(self, memory: MemoryT) -> None:
        """Let the next execution have memory that was taken, and whose execution has succeeded."""
        self._idle.append(memory)

    def _woken(self) -> MemoryT | None:
        """Idle memory, if no other one uses its arenas."""
        with arena_pool.lock:
            # A copy: an owner that is asked to free an arena may be of this program, and rest.
            for memory in [*reversed(self._resting)]:
                # Taken out first: a signal handler may execute the same on this thread.
                if not self.forget(memory):
                    continue
                if arena_pool.claim(memory):
                    memory.is_stale = False
                    return memory
                self._resting.append(memory)
        return None

    def _made(self) -> MemoryT:
        """New memory, which is given back when it idles."""
        from armpy.execution.memory import idle_release  # noqa: PLC0415 - no start

        memory = self.new_memory()
        # Weak, or the two would keep each other until the garbage collector comes.
        memory.program = weakref.ref(self)
        self._alive.add(memory)
        idle_release.watchdog.watch_program(self)
        # What has rested longest is released if there is more than is ever idle.
        while len(self._resting) > MAX_IDLE_MEMORIES:
            with arena_pool.lock:
                oldest = self._resting.popleft() if self._resting else None
            if oldest is not None:
                oldest.free()
        return memory

    def make_ready(self) -> None:
        """Make memory for the first execution now; errors as of `new_memory`."""
        self._idle.append(self.take_memory())

    def rest(self, memory: MemoryT) -> bool:
        """Let idle memory rest, with the pool's lock held; whether it rests."""
        if memory in self._resting:
            return True
        try:
            self._idle.remove(memory)
        except ValueError:  # an execution has it
            return False
        self._resting.append(memory)
        return True

    def forget(self, memory: MemoryT) -> bool:
        """Leave resting memory to the thread that frees it, with the pool's lock held."""
        is_resting = memory in self._resting
        if is_resting:
            self._resting.remove(memory)
        return is_resting

    def free_idle(self) -> bool:
        """Give idle memory back, that of workloads included; return whether there was any."""
        self.free_workloads()
        with arena_pool.lock:
            self._rest_all()
            memories = [*self._resting]
            self._resting.clear()
        for memory in memories:
            memory.free()
        return bool(memories)

    def _rest_all(self) -> None:
        """Let all that is idle rest, with the pool's lock held."""
        while True:
            try:
                self._resting.append(self._idle.pop())
            except IndexError:  # other threads may take some as well
                return

    def release_if_idle(self) -> bool:
        """Release memory not used since the last call; return whether some may be left."""
        with arena_pool.lock:
            # The first look lets it rest, which the next call undoes; the second gives it back.
            stale = [memory for memory in self._resting if memory.is_stale]
            for memory in stale:
                self._resting.remove(memory)
            self._rest_all()
            for memory in self._resting:
                memory.is_stale = True
        # Without the lock: backends' allocators have locks of their own.
        for memory in stale:
            memory.free()
        if stale:  # as many executions as before do not run side by side any more
            self.free_workloads()
        # What executions have just now counts as well, as it will idle later.
        return len(self._alive) > len(stale)

    def run(
        self,
        # One per source of the graph (inputs, then variables), checked already. Not written to.
        sources: Sequence[Array],
        # Arrays to write results to, which overlap no source. None is replaced by a new one.
        results: Targets | None = None,
        cancellation: Cancellation | None = None,  # what stops it; the current one
    ) -> list[Array]:
        """Execute once; any number of threads may do so at the same time.

        Returns one array per result of the graph (outputs, then variables' next values). Raises
        MemoryLimitError if there is no memory left for one more execution; BackendError if a
        backend fails, whose own ArmpyErrors are raised as they are.
        """
        try:
            # Without asking first, as other threads take some as well.
            memory = self._idle.pop()
        except IndexError:
            memory = self._woken() or self._made()
        if memory.sizes is not self.sizes:
            self.resize(memory)
        # While it is here no other thread can have it, so that an execution needs no lock.
        try:
            outputs = memory.run(sources, results, cancellation)
        except BaseException:  # it is not used again, and an error that is kept keeps no memory
            memory.free()
            raise
        self._idle.append(memory)
        return outputs


class BoundProgram:
    """A loaded network prepared for some input shapes."""

    __slots__ = (
        "bind",
        "importing",
        "inputs",
        "maker",
        "others",
        "outputs",
        "program",
        "run",
        "shapes",
        "stops_in_place",
    )

    def __init__(
        self,
        shapes: Shapes,
        program: Any,  # Any: these import this module
        run: Run,  # executes the program and what is around it; takes inputs and outputs only
        bind: Bind,  # prepares many such executions, which the current cancellation stops
        stops_in_place: bool,  # whether executions stop soon when they are cancelled
        inputs: tuple[InputSlot, ...],
        outputs: tuple[OutputSlot, ...],
        maker: Any = None,  # another loaded network that has made the program. Any: as above
    ) -> None:
        self.shapes = shapes
        self.program = program
        self.run = run
        self.bind = bind
        self.stops_in_place = stops_in_place
        self.inputs = inputs
        self.outputs = outputs
        self.importing: dict[tuple[object, ...], BoundProgram] = {}
        self.maker = maker
        # The programs of the other backends that executions are spread over. Any: as above
        self.others: dict[BackendId, Any] = {}

    def with_runs(self, run: Run, bind: Bind, maker: object) -> BoundProgram:
        """The same program, executed by other functions."""
        return BoundProgram(
            self.shapes,
            self.program,
            run,
            bind,
            self.stops_in_place,
            self.inputs,
            self.outputs,
            maker,
        )
