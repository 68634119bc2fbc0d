"""Memory of one execution at a time: tensor handles, the caller's arrays, and the steps' calls."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn, Protocol

from numpy import empty, uint8

from armpy.backend.memory.tensor_handle import HostTensorHandle
from armpy.execution.memory.arena_pool import PooledArena, arena_pool

if TYPE_CHECKING:  # a model that was prepared ahead of time starts without all this
    from armpy.backend import Cancellation, ITensorHandle
    from armpy.execution.steps.control_flow import Targets
    from armpy.execution.steps.step import Execute, Step
    from armpy.ops.operation import Array
    from armpy.tensor import TensorInfo

    class Keeper(Protocol):
        """A program that keeps memory between executions."""

        def rest(self, memory: StepMemory) -> bool:
            """Let idle memory rest, with the pool's lock held; whether it rests."""

        def forget(self, memory: StepMemory) -> bool:
            """Leave resting memory to the thread that frees it, with the pool's lock held."""


NOTHING: Array = empty(0, uint8)
"""Placeholder of the caller's arrays between executions."""


class StepMemory:
    """Handles of one execution at a time, and the calls with them.

    It has no steps until `fill` is called.
    """

    # Those that it was resized for, by identity; None before.
    sizes: object = None

    # Gives back what backends have made for it, if they have made anything.
    give_back: Callable[[], object] | None = None

    # Returns whether an execution that was abandoned has it, and frees it; see `LoopLimits`.
    leaves_alone: Callable[[], bool] | None = None

    def __init__(
        self,
        sources: Sequence[TensorInfo],
        results: Sequence[TensorInfo],
        # Raises what a step raised, by its number, with the names of its backend and layer.
        raise_for: Callable[[int, BaseException], NoReturn],
        # Makes a function of the calls of all steps that executes them and watches what stops them;
        # it raises ArmpyError as `raise_for`.
        watch: Callable[[Sequence[Callable[[], object]]], Callable[[Cancellation | None], None]],
        *,
        is_always_watched: bool = False,  # whether steps are watched if nothing can stop them, too
    ) -> None:
        # An execution puts the caller's arrays into these and takes them out again.
        self.sources = tuple([HostTensorHandle(info, NOTHING) for info in sources])
        self.results = tuple([HostTensorHandle(info, NOTHING) for info in results])
        # What to call for each layer.
        self.steps: list[tuple[Execute, list[ITensorHandle | None], list[ITensorHandle]]] = []
        self._copies: Sequence[tuple[HostTensorHandle, ITensorHandle]] = ()
        self._bound = (*self.sources, *self.results)
        self.raise_for = raise_for
        self._watch = watch
        self._watched: Callable[[Cancellation | None], None] | None = None
        # What few networks need is done where steps are watched, so that others do not ask for it.
        self._is_always_watched = is_always_watched
        self.arenas: list[PooledArena] = []  # which networks use in turn
        # The program that keeps it between executions.
        self.program: weakref.ref[Keeper] | None = None
        self.is_stale = False  # whether it was not used when it was last looked at

    def fill(
        self,
        # For each layer what to call, with which inputs and outputs.
        steps: Sequence[tuple[Execute, list[ITensorHandle | None], list[ITensorHandle]]],
        # What executes each step on arrays alone, if it can.
        for_arrays: Sequence[Callable[[Sequence[Array]], object] | None],
        # Results that no step writes, and what they are copied from.
        copies: Sequence[tuple[HostTensorHandle, ITensorHandle]] = (),
    ) -> None:
        """Take the steps to execute from now on."""
        self.steps, self._copies = [*steps], copies
        self._take_sizes(for_arrays)

    def resize(self, steps: Sequence[Step], infos: Sequence[TensorInfo]) -> None:
        """Execute the same layers with other sizes of sources and results from now on."""
        for handle, info in zip(self._bound, infos, strict=True):
            handle._info = info
        self.steps = [
            (step.execute, ins, outs)
            for step, (_, ins, outs) in zip(steps, self.steps, strict=True)
        ]
        self._take_sizes([step.for_arrays for step in steps])

    def _take_sizes(self, for_arrays: Sequence[Callable[[Sequence[Array]], object] | None]) -> None:
        """Prepare for the sizes of results, and what executes each step on arrays."""
        self._watched = None
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

    def free(self) -> None:
        """Give everything back at once, or when an execution that was abandoned has ended."""
        if self.leaves_alone is not None and self.leaves_alone():
            return
        self.steps, self._copies, self._watched = [], (), None
        if self.give_back is not None:
            self.give_back()
        arena_pool.leave(self)

    def put(self, arrays: Sequence[Array]) -> None:
        """Put arrays of the sources and results in place for good."""
        for handle, array in zip(self._bound, arrays, strict=True):
            handle.array = array

    @property
    def copying(self) -> Callable[[], None] | None:
        """What fills results that no step writes; None if there are none."""
        return self._copy_results if self._copies else None

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
                self.raise_for(0, error)
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
            self.raise_for(step, error)
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

    def _run_watched(self, cancellation: Cancellation | None) -> None:
        """Execute the steps for whatever arrays are in place, watching what stops them."""
        if self._watched is None:
            calls: list[Callable[[], object]] = [
                partial(execute, ins, outs) for execute, ins, outs in self.steps
            ]
            if self._copies:
                calls.append(self._copy_results)
            self._watched = self._watch(calls)
        self._watched(cancellation)
