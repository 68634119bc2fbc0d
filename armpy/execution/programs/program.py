"""Programs: steps over planned memory, compiled now or read from a file, and how they execute.

A `BoundProgram` is a loaded network prepared for certain input shapes: its inputs, and how it is
executed.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from armpy.execution.memory.arena_pool import arena_pool

if TYPE_CHECKING:  # a model that was prepared ahead of time starts without all this
    from armpy.backend import Cancellation
    from armpy.execution.arrays.slots import InputSlot, OutputSlot
    from armpy.execution.programs.memory import StepMemory
    from armpy.execution.steps.control_flow import Shapes, Targets
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

    class Resources(Protocol):
        """What the executions of a program need, whatever their sizes."""

        def new_memory(self) -> StepMemory:
            """Make memory for one execution at a time; errors as of `StepProgram.new_memory`."""

        def uses(self, backend_id: BackendId) -> bool:
            """Return whether memory of a backend may be in use between executions."""

    class IdlingStep(Protocol):
        """Step of a program, whose workload may keep memory between executions."""

        @property
        def free_idle(self) -> Callable[[], None]:
            """Function that releases that memory."""

    Bind: TypeAlias = Callable[[Sequence[Array], Targets], Callable[[], Sequence[Array] | None]]
    """Prepares many executions with the same arrays; each returns new results."""

ProgramKey: TypeAlias = tuple[object, ...]
"""Key of a program of a loaded network: mostly the input shapes."""

# Threads come in bursts: what one burst needed at most is not kept for each network.
MAX_IDLE_MEMORIES = 4
"""Working memories that are kept for the next execution; more are made when threads need them."""


class StepProgram:
    """Steps over planned memory, whose executions side by side take it from a small pool.

    The first execution makes memory. Between executions it is idle, from where the next one takes
    it without a lock. It rests while others have its arenas, or when it was not used for a while;
    then it is given back (`armpy.execution.memory.idle_release`). Programs of compiled files are
    this class, those compiled in this process a `CompiledProgram`.
    """

    def __init__(
        self,
        resources: Resources,  # make memory, in which an execution needs nothing of the program
        steps: Sequence[IdlingStep],
        source_infos: tuple[TensorInfo, ...],
        result_infos: tuple[TensorInfo, ...],
        # Of programs that share memory: memory with other ones has to be resized.
        sizes: object = None,
        original: StepProgram | None = None,  # whose memory this one uses, resized
    ) -> None:
        self._resources = resources
        self._steps = steps
        self.source_infos = source_infos
        self.result_infos = result_infos
        self.sizes = sizes
        self.original = original
        # `pop` and `append` of a deque are one step each, so that a call takes no lock. They are
        # changed in place, as programs for other sizes share them.
        self._idle: deque[StepMemory]
        self._resting: deque[StepMemory]
        self._alive: weakref.WeakSet[StepMemory]
        if original is None:
            self._idle, self._resting = deque(maxlen=MAX_IDLE_MEMORIES), deque()
            self._alive = weakref.WeakSet()
        else:
            self._idle, self._resting = original._idle, original._resting
            self._alive = original._alive

    def new_memory(self) -> StepMemory:
        """Make memory for one execution at a time.

        Raises MemoryLimitError if there is no memory left; a backend's own ArmpyErrors are raised
        as they are; MemoryImportError if a backend cannot import an input in another one's memory.
        """
        memory = self._resources.new_memory()
        if self.sizes is not None:
            self.resize(memory)
        return memory

    def free_workloads(self) -> None:
        """Let workloads release memory that they keep between executions."""
        for step in self._steps:
            step.free_idle()

    def uses(self, backend_id: BackendId) -> bool:
        """Return whether memory of a backend may be among what `free_idle` gives back."""
        return self._resources.uses(backend_id)

    def take_memory(self) -> StepMemory:
        """Memory of this caller alone until it is put back; errors as of `new_memory`."""
        try:
            memory = self._idle.pop()
        except IndexError:  # asking first whether one is left would race with other threads
            memory = self._woken() or self._made()
        if memory.sizes is not self.sizes:
            self.resize(memory)
        return memory

    def resize(self, memory: StepMemory) -> None:
        """Make memory of a program for other sizes fit this one; only compiled ones have such."""
        raise NotImplementedError

    def put_back(self, memory: StepMemory) -> None:
        """Let the next execution have memory that was taken, and whose execution has succeeded."""
        self._idle.append(memory)

    def _woken(self) -> StepMemory | None:
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

    def _made(self) -> StepMemory:
        """New memory, which is given back when it idles."""
        if self.original is not None:  # which lives as long as there are programs for other sizes
            return self.original._made()
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

    def rest(self, memory: StepMemory) -> bool:
        """Let idle memory rest, with the pool's lock held; whether it rests."""
        if memory in self._resting:
            return True
        try:
            self._idle.remove(memory)
        except ValueError:  # an execution has it
            return False
        self._resting.append(memory)
        return True

    def forget(self, memory: StepMemory) -> bool:
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
