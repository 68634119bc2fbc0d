"""A program with memory of its own: what one execution at a time runs on."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from armpy.backend.cancellation import Cancellation
from armpy.errors import (
    BackendError,
    BackendUnavailableError,
    ExecutionTimeoutError,
    InvalidArgumentError,
    LayerValidationError,
)
from armpy_numba_acc import program as programs
from armpy_numba_acc import runtime, store
from armpy_numba_acc.machine import cost_model
from armpy_numba_acc.machine import execution as layout
from armpy_numba_acc.machine.alignment import ALIGNMENT_BYTES, address_of, aligned, is_aligned
from armpy_numba_acc.machine.execution import Command, ExecutionRecord, Slot
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.layout import num_words, word_of, words_of
from armpy_numba_acc.machine.space import Space
from armpy_numba_acc.native.python_function import (
    DEFINITION_WORDS,
    HEADER_BYTES,
    address_of_interpreters,
    check_layout,
    free_lock,
    new_lock,
    python_function,
)
from armpy_numba_acc.program.program import Program

if TYPE_CHECKING:  # saved programs run without what estimates and compiles
    import numpy.typing as npt

    from armpy.backend import ICustomAllocator
    from armpy.ops.operation import Array
    from armpy_numba_acc.machine.cost_model.model import MachineModel
    from armpy_numba_acc.native.image import LoadedImage
    from armpy_numba_acc.program.estimate import Rates
    from armpy_numba_acc.program.program import ProgramTiming, SizedProgram
    from armpy_numba_acc.runtime.threads import Pool

EXECUTOR = Kernel("executor")
"""Code of the thread that an application calls from."""

PYTHON_CALL = Kernel("python_call", (HEADER_BYTES,))
"""What Python calls; it calls the executor."""

_NUM_THREADS, _NUM_TENSORS, _NUM_SLOTS, _CANCEL, _START, _FINISHED = (
    word_of(ExecutionRecord, field)
    for field in ("num_threads", "num_tensors", "num_slots", "cancel", "start", "finished")
)
_TICKETS, _LET_OTHERS, _ARBITER, _IS_PATIENT, _TURN = (
    word_of(ExecutionRecord, field)
    for field in ("tickets", "let_others", "arbiter", "is_patient", "turn")
)

_SAVE_THREAD = address_of_interpreters("PyEval_SaveThread")

_SPARE = 8
"""An arena that has grown too small is followed by one that is larger by this part than needed."""

_PAUSE_NS = 50_000_000
"""Interval at which loops return to Python, which checks for interrupts."""

_PATIENT_US = 200.0
"""Programs that take longer wait until processors are free. Others would take longer to wake up."""

_LONG_US = 20.0
"""Programs that take longer let other Python threads run meanwhile. To have their turn back after
a shorter one would take longer than the program."""


_DOUBTFUL_US = 500.0
"""Programs that take longer are faster on several threads. What shorter ones gain depends on how
far apart the cores are, and on what else they do: both change while a process runs."""

_SHARE_US, _SHORT_SHARE_US = 3.0, 0.75
"""Least duration of a share, and where each thread has but `_LEAST_SHARES` of them: to claim shares
takes 0.05 us, and 0.3 us where cores have no cache in common."""

_LEAST_SHARES, _MOST_SHARES = 2, 16
"""Of a command, for each thread. With more, kernels begin more often and end no sooner."""


def _do_nothing() -> None:
    """Give back memory that needs no more than its last reference to go."""


def needed_kernels(program: Program, num_threads: int) -> list[Kernel]:
    """Every kernel whose code a program needs to run on so many threads; its own come first."""
    # The first execution on several threads asks for the workers'.
    workers = [runtime.threads.WORKER] if num_threads > 1 else []
    return [*program.kernels, EXECUTOR, PYTHON_CALL, *workers]


class LoadedCode:
    """A program's kernels in memory; shared by its instances.

    Parameters
    ----------
    isa : Isa
        The one that the program is for.
    model : MachineModel, optional
        Says which commands are worth several threads; the typical one of `isa` if left out.
    addresses : mapping of Kernel to int, optional
        Addresses of the kernels' code, if it comes with the program: no other code is used then.
        Otherwise code is looked up, and compiled if it is missing.
    timing : ProgramTiming, optional
        How long commands take; estimated by the model if left out.
    most_threads : int, optional
        Fewer than the program is for, where it was made for other machines than this.
    image : LoadedImage, optional
        Where `addresses` lie, if that is not there until the process ends.

    Attributes
    ----------
    num_threads : int
        Threads that are worth their while for this program.
    image : LoadedImage or None
        What has to be referred to as long as its code may run.
    program : Program
        For any sizes, if it has been resized.
    sized : Program or SizedProgram
        For the code's own sizes.
    has_loops : bool
        Whether it may run for any time.
    is_long : bool
        Whether other Python threads are to run meanwhile.
    is_counted : bool
        Whether it asks the process's arbiter for cores.
    is_patient : bool
        Whether it waits there.
    is_doubtful : bool
        Whether its calls have to show if several threads are faster than one.

    Raises
    ------
    BackendUnavailableError
        If native code cannot look into the arrays of this interpreter, or a kernel is missing that
        cannot be compiled here.
    """

    def __init__(
        self,
        program: Program,
        isa: Isa,
        model: MachineModel | None = None,
        addresses: Mapping[Kernel, int] | None = None,
        timing: ProgramTiming | None = None,
        most_threads: int | None = None,
        image: LoadedImage | None = None,
    ) -> None:
        check_layout()
        self.isa = isa
        self._model = model
        self.has_loops = program.has_loops
        self.program = program
        self._most_threads = most_threads
        self.image = image
        self._take(program, timing)
        needed = needed_kernels(program, self.num_threads)
        if addresses is None:
            addresses = store.kernel_addresses(needed, isa, program.num_threads)
        elif missing := [kernel.symbol for kernel in needed if kernel not in addresses]:
            raise BackendUnavailableError(
                "a program came without the code of its kernels",
                where="NumbaAcc",
                expected=f"that of {len(needed)}",
                actual=f"{', '.join(missing)} missing",
            )
        self.executor = addresses[EXECUTOR]
        self.python_call = addresses[PYTHON_CALL]
        self.worker = addresses[runtime.threads.WORKER] if self.num_threads > 1 else 0
        self.kernels = [addresses[kernel] for kernel in program.kernels]
        self.constants = program.constants
        # Constants of a file lie where the file has them, and vectors want cache lines.
        if not is_aligned(self.constants):
            self.constants = aligned(program.constants.nbytes, zeroed=False)
            self.constants[:] = program.constants
        programs.offer_constants(self.constants)
        self._hold_workers()

    def _take(self, sized: Program | SizedProgram, timing: ProgramTiming | None = None) -> None:
        """Take a program's sizes, and decide how it is run."""
        self.sized = sized
        self.figures = sized.figures
        timing = timing or self._rates.timing(self.figures)
        self._durations_us, self._least_us, least_total_us = timing
        duration_us = sum(self._durations_us)
        num_threads = self.program.num_threads
        is_shared = num_threads > 1 and duration_us >= least_total_us
        if is_shared:
            shared_us = sum([us for us in self._durations_us if us >= self._least_us])
            is_shared = shared_us >= least_total_us
        self.num_threads = num_threads if is_shared else 1
        if self._most_threads is not None:
            self.num_threads = min(self.num_threads, self._most_threads)
        self.is_long = self.has_loops or duration_us >= _LONG_US
        self.is_patient = duration_us >= _PATIENT_US
        is_short = duration_us < _DOUBTFUL_US and not self.has_loops
        self.is_doubtful = is_short and self.num_threads > 1
        # A thread may not wait while it holds the interpreter's lock.
        self.is_counted = self.is_long and (self.is_patient or self.num_threads > 1)

    @property
    def is_parallel(self) -> npt.NDArray[np.bool_]:
        """Return which commands are worth several threads; ndarray, bool, shape (commands,)."""
        return np.array(self._durations_us) >= self._least_us

    def _hold_workers(self) -> None:
        """Let the process have workers, if executions are to have some."""
        if self.num_threads > 1:
            self.pool.hold(self)

    def num_shares(self) -> npt.NDArray[np.int64]:
        """Return the shares of each command that several threads run; 0 for others."""
        if self.num_threads == 1:
            return np.zeros(len(self._durations_us), np.int64)
        durations_us = np.array(self._durations_us)
        least = np.clip(durations_us / _SHORT_SHARE_US, 2, _LEAST_SHARES * self.num_threads)
        most = _MOST_SHARES * self.num_threads
        shares = np.clip(durations_us / _SHARE_US, least, most).astype(np.int64)
        return np.where(self.is_parallel, np.maximum(shares, self.figures.table[2]), 0)

    def resized(self, program: SizedProgram) -> LoadedCode:
        """The same code for other sizes."""
        return ResizedCode(self, program)

    def _worker(self) -> int:
        """Address of the code of workers."""
        worker = runtime.threads.WORKER
        return store.kernel_addresses([worker], self.isa)[worker]

    def take_all_threads(self) -> None:
        """Have as many threads as the program is for, whatever they are worth."""
        self.worker = self._worker()
        self.num_threads = self.program.num_threads
        self.pool.hold(self)

    @cached_property
    def pool(self) -> Pool:
        """The process's workers."""
        return runtime.threads.pool()

    @property
    def model(self) -> MachineModel:
        """Return the model of costs."""
        return self._model or cost_model.typical(self.isa)

    @cached_property
    def _rates(self) -> Rates:
        """Return the speed of its commands by the model, alike for all programs of a template."""
        return programs.Rates.of(self.figures, self.isa, self.model)


class ResizedCode(LoadedCode):
    """The kernels of loaded code, run with other sizes.

    Parameters
    ----------
    original : LoadedCode
        Has the kernels.
    sized : SizedProgram
        Made from the original's program.
    """

    def __init__(self, original: LoadedCode, sized: SizedProgram) -> None:
        self.isa = original.isa
        self._model = original._model
        self.has_loops = original.has_loops
        self.program = original.program
        self._most_threads = original._most_threads
        self.image = original.image
        self._rates = original._rates
        self.executor = original.executor
        self.python_call = original.python_call
        self.worker = original.worker
        self.kernels = original.kernels
        self.constants = original.constants
        self._take(sized)
        if self.num_threads > 1:
            self.worker = self._worker()
            self._hold_workers()


class Instance:
    """Working memory of one execution at a time.

    Parameters
    ----------
    is_profiled : bool
        Whether the time of every command is taken.
    allocator : ICustomAllocator, optional
        Gives the memory for the program's own tensors, and gets it back.

    Attributes
    ----------
    function : callable
        Native code that executes once, on plain arrays; how many commands have not run.
    is_parallel : bool
        Whether it may have several threads.
    times_ns : ndarray, int64, shape (commands + 1,), or None
        When the last execution began and when each command had come to its end, by the clock
        of `time.perf_counter`.
    """

    def __init__(
        self,
        code: LoadedCode,
        *,
        is_profiled: bool = False,
        allocator: ICustomAllocator | None = None,
    ) -> None:
        program = code.program
        self.code = code
        self._allocator = allocator
        self._arena, self._free_arena = self._make_arena(code.sized.arena_bytes)
        self._arguments = np.empty(len(code.sized.argument_values), np.int64)
        self._sync = aligned(layout.SYNC_BYTES)
        self._failure = self._sync[layout.FAILURE :].view(np.int64)
        self._control = self._sync[layout.CONTROL :].view(np.int64)
        self._tensor_arguments = np.flatnonzero(program.argument_bases >= Space.TENSORS)
        self._bases = self._make_bases()
        self._commands = self._make_commands()
        self._never = Cancellation()
        self.times_ns: npt.NDArray[np.int64] | None = None
        if is_profiled:
            self.times_ns = np.zeros(program.num_commands + 1, np.int64)
        self._slots = self._make_slots()
        call = self._make_call()
        self._call = call.data
        self._take_sizes()
        self.function = python_function(code.python_call, call, at=num_words(ExecutionRecord))

    def resize(self, code: LoadedCode) -> None:
        """Run other sizes from now on: code that the present one was `LoadedCode.resized` to."""
        self.code = code
        needed_bytes = code.sized.arena_bytes
        if needed_bytes > self._arena.nbytes:
            # Some more than that: sizes that grow step by step are not to have a new one each.
            self._free_arena()
            del self._arena  # first, as both would take room
            arena_bytes = needed_bytes + needed_bytes // _SPARE
            self._arena, self._free_arena = self._make_arena(arena_bytes)
            self._bases = self._make_bases()
        self._take_sizes()

    def _take_sizes(self) -> None:
        """Write all that follows from the program's sizes to where native code looks."""
        code = self.code
        np.add(code.sized.argument_values, self._bases, out=self._arguments)
        self._slots[:, 2] = code.sized.argument_values.take(self._tensor_arguments)
        self._commands[:, 2] = code.figures.table[2]
        self._commands[:, 3] = code.num_shares()
        self.is_parallel = code.num_threads > 1
        is_tried = code.is_doubtful and self.times_ns is None
        self._trial = runtime.team_trial.TeamTrial() if is_tried else None
        call = self._call
        if code.is_counted and not call[_TURN]:
            call[_TURN] = self._make_turn()
        is_shared = self.is_parallel or code.is_counted
        call[_TICKETS] = code.pool.tickets if is_shared else 0
        call[_LET_OTHERS] = _SAVE_THREAD if code.is_long else 0
        call[_ARBITER] = code.pool.arbiter if code.is_counted else 0
        call[_IS_PATIENT] = code.is_patient
        call[_NUM_THREADS] = 1

    def _make_arena(self, size_bytes: int) -> tuple[Array, Callable[[], object]]:
        """Zeros for the program's own tensors, and what gives them back."""
        if self._allocator is None or size_bytes == 0:
            return aligned(size_bytes), _do_nothing
        arena = self._allocator.allocate(size_bytes, ALIGNMENT_BYTES)
        free = weakref.finalize(self, self._allocator.free, arena)
        # The memory may hold anything, and padding is read without being written.
        arena.fill(0)
        return arena, free

    def _make_bases(self) -> npt.NDArray[np.int64]:
        """The address of what each argument is an offset in; 0 for numbers and tensors."""
        addresses = {
            Space.ARENA: address_of(self._arena),
            Space.CONSTANTS: address_of(self.code.constants),
            Space.FAILURE: address_of(self._failure),
            Space.TABLES: address_of(self._arguments),
            Space.CONTROL: address_of(self._control),
        }
        bases = np.zeros(len(self._arguments), np.int64)
        for space, address in addresses.items():
            bases[self.code.program.argument_bases == space] = address
        return bases

    def _make_call(self) -> npt.NDArray[np.int64]:
        """Return the arguments of native code, and room for the interpreter after them."""
        code, program = self.code, self.code.program
        words = words_of(
            ExecutionRecord,
            commands=address_of(self._commands),
            num_commands=program.num_commands,
            sync=address_of(self._sync),
            cancel=self._never.address,
            times=0 if self.times_ns is None else address_of(self.times_ns),
            tickets=0,
            finished=0,
            executor=code.executor,
            num_threads=1,
            num_tensors=program.num_inputs + program.num_outputs,
            num_slots=len(self._slots),
            slots=address_of(self._slots),
            array_type=id(np.ndarray),
            to_python=address_of_interpreters("PyLong_FromLongLong"),
            let_others=0,
            take_back=address_of_interpreters("PyEval_RestoreThread"),
            start=0,
            arbiter=0,
            is_patient=0,
            acquire=address_of_interpreters("PyThread_acquire_lock_timed"),
            release=address_of_interpreters("PyThread_release_lock"),
            turn=0,
            granted=0,
            next=0,
            team=0,
        )
        return np.array([*words, *[0] * DEFINITION_WORDS], np.int64)

    def _make_turn(self) -> int:
        """A lock of the interpreter's that is free once it is the execution's turn to run."""
        turn = new_lock()
        # Not when the interpreter ends, as threads may still wait.
        weakref.finalize(self, free_lock, turn).atexit = False
        return turn

    def _make_slots(self) -> npt.NDArray[np.int64]:
        """The `Slot` of each argument of commands that lies in the caller's arrays."""
        indexes = self._tensor_arguments
        slots = np.empty((len(indexes), num_words(Slot)), np.int64)
        slots[:, 0] = self.code.program.argument_bases[indexes] - Space.TENSORS
        slots[:, 1] = address_of(self._arguments) + 8 * indexes
        return slots

    def _make_commands(self) -> npt.NDArray[np.int64]:
        """The executor's table: a `Command` each."""
        code, program = self.code, self.code.program
        start = address_of(self._arguments)
        commands = np.empty((program.num_commands, num_words(Command)), np.int64)
        commands[:, 0] = [code.kernels[number] for number in program.command_kernels]
        commands[:, 1] = start + 8 * program.argument_starts[:-1].astype(np.int64)
        return commands

    def bind(self, tensors: Sequence[Array]) -> None:
        """Look the addresses of arrays up for good; `run` is given none of them any more.

        Parameters
        ----------
        tensors : sequence of ndarray
            Inputs, then outputs; C-contiguous. They have to live as long.
        """
        addresses = np.array([address_of(array) for array in tensors], np.int64)
        self._arguments[self._tensor_arguments] = addresses[self._slots[:, 0]] + self._slots[:, 2]
        # Native code is to expect no tensors, and to write no addresses over these.
        self._call[_NUM_TENSORS] = self._call[_NUM_SLOTS] = 0

    def bound_call(self, cancellation: Cancellation | None) -> Callable[[], None]:
        """Return a function that executes a bound program without loops once."""
        if cancellation is None:
            cancellation = self._never
        self._call[_CANCEL] = cancellation.address
        # All that an execution of a small network does in Python: every name is a local one.
        function, explain = self.function, partial(self._explain, cancellation)

        def call() -> None:
            left = function()
            if left:
                explain(left)

        if not self.is_parallel:
            return call

        def call_together() -> None:
            self._take_threads()
            call()
            if self._trial is not None:
                self._trial.end()

        return call_together

    def _take_threads(self) -> None:
        """Get ready the threads of the next execution, if it may have several."""
        trial, code = self._trial, self.code
        is_alone = trial is not None and trial.begin()
        self._call[_NUM_THREADS] = (
            1 if is_alone else code.pool.engage(code.num_threads, code.worker, code.image)
        )

    def run(
        self,
        tensors: Sequence[Array],
        cancellation: Cancellation | None = None,
        time_left_s: float = math.inf,
        timeout_s: float | None = None,
    ) -> None:
        """Execute once.

        Parameters
        ----------
        tensors : sequence of ndarray
            Inputs, then outputs; C-contiguous.
        cancellation
            What stops the execution.
        time_left_s
            How long each loop that lies in no other one may take.
        timeout_s
            The configured limit, of which `time_left_s` is the rest. Used in errors.

        Raises
        ------
        InvalidArgumentError
            If an index is out of range; the outputs are undefined then.
        ExecutionTimeoutError, ExecutionCancelledError
            If it was stopped, or a loop takes longer.
        """
        if self.is_parallel:
            self._take_threads()
        if self.code.has_loops:
            self._run_loops(tensors, cancellation or self._never, time_left_s, timeout_s)
        elif cancellation is not None:
            self._run_until(cancellation, tensors)
        elif self.function(*tensors):  # it has not run everything
            self.run_again(tensors)
        if self._trial is not None:
            self._trial.end()

    def run_again(self, tensors: Sequence[Array]) -> int:
        """Run the program, whatever class the arrays are of; how many commands have not run."""
        left = self.function(*tensors)
        if left == layout.NOT_RUN:  # native code reads plain arrays only
            left = self.function(*(array.view(np.ndarray) for array in tensors))
        if left == layout.NOT_RUN:
            raise BackendError(
                "the program has another number of tensors",
                expected=str(self._call[word_of(ExecutionRecord, "num_tensors")]),
                actual=str(len(tensors)),
            )
        # A failure is reported before a cancellation: it says more, and both leave commands undone.
        if self._failure[0]:
            raise self._error(left)
        return left

    def _error(self, left: int) -> InvalidArgumentError | LayerValidationError:
        """Return the error of the command that has failed: the first one of those that are left."""
        size, index = int(self._failure[0]) - 1, int(self._failure[1])
        info = self.code.sized.infos[-left]
        if size == layout.NO_AXIS:
            return LayerValidationError(
                f"the branch that the condition chooses cannot run: {info.label}",
                where="NumbaAcc",
            )
        if size == layout.NO_REGION:
            return LayerValidationError(
                "a region cannot be used",
                where=f"NumbaAcc / '{info.label}'",
                expected="finite corners, in order and within the image unless regions are free",
                actual=f"other ones in row {index}",
            )
        return InvalidArgumentError(
            "an index is out of range",
            where=f"NumbaAcc / '{info.label}'",
            expected=f"0 to {size - 1}",
            actual=str(index),
        )

    def _run_loops(
        self,
        tensors: Sequence[Array],
        cancellation: Cancellation,
        time_left_s: float,
        timeout_s: float | None,
    ) -> None:
        """Run a program with loops, which comes back now and then to let Python do its own."""
        control, call = self._control, self._call
        is_limited = math.isfinite(time_left_s)
        control[layout.CONTROL_DEPTH] = 0
        control[layout.CONTROL_LIMIT] = max(int(time_left_s * 1e9), 0) if is_limited else -1
        num_commands = self.code.program.num_commands
        try:
            while True:
                control[layout.CONTROL_PAUSE] = time.perf_counter_ns() + _PAUSE_NS
                self._run_until(cancellation, tensors)
                left = num_commands - call[_FINISHED]
                if not left:
                    break
                end = control[layout.CONTROL_END]
                if end >= 0 and time.perf_counter_ns() >= end:
                    raise self._timed_out(timeout_s)
                call[_START] = call[_FINISHED]
        finally:
            # Also after an error: the next execution has to begin at the first command.
            call[_START] = 0

    def _timed_out(self, timeout_s: float | None) -> ExecutionTimeoutError:
        """The error for a loop that takes too long."""
        label = self.code.sized.infos[self._call[_FINISHED]].label
        return ExecutionTimeoutError(
            "control flow takes too long",
            where=f"NumbaAcc / '{label}'",
            expected=f"its end within {timeout_s or 0:g} s (loop_timeout_s)",
            actual=f"{self._control[layout.CONTROL_TURNS]} turns and no end",
            fix="Raise loop_timeout_s, or set it to None for no limit, if it ends at all",
        )

    def _run_until(self, cancellation: Cancellation, tensors: Sequence[Array]) -> None:
        """Run the program unless it is stopped."""
        self._call[_CANCEL] = cancellation.address
        try:
            left = self.run_again(tensors)
        finally:
            # It may be gone before the next execution, in which native code would still ask it.
            self._call[_CANCEL] = self._never.address
        if left:
            self._explain(cancellation, left)

    def _explain(self, cancellation: Cancellation, left: int) -> None:
        """Say why the program has not run everything, unless a loop lets Python have its turn."""
        if self._failure[0]:
            raise self._error(left)
        if self._control[layout.CONTROL_NEXT] != layout.STAY:
            # Nothing failed, and no loop lets Python have its turn: it was cancelled.
            raise cancellation.error
