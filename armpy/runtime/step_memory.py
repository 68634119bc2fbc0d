"""Memory of one execution at a time, and the steps that run in it; pools of such memories."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar

from numpy import empty, uint8

from armpy.backend import HostTensorHandle

if TYPE_CHECKING:  # a model that was prepared ahead of time starts without all this
    from armpy.backend import Cancellation, ITensorHandle
    from armpy.ops.operation import Array
    from armpy.runtime.control_flow import Targets
    from armpy.runtime.steps import Execute
    from armpy.tensor import TensorInfo

MAX_IDLE_MEMORIES = 4
"""Working memories that are kept for the next execution; more are made when threads need them."""

NOTHING: Array = empty(0, uint8)
"""What is in place of the caller's arrays between executions."""


class StepMemory(ABC):
    """Handles of one execution at a time, and what is called with them.

    Parameters
    ----------
    sources, results : sequence of TensorInfo
        Of what the caller's arrays are put in place of.

    Attributes
    ----------
    steps : list of tuple
        What to call for each layer, and with which handles.
    sources, results : tuple of HostTensorHandle
        Of the graph's sources and results, in order. An execution puts the caller's arrays into
        them and takes them out again.
    """

    def __init__(self, sources: Sequence[TensorInfo], results: Sequence[TensorInfo]) -> None:
        self.sources = tuple([HostTensorHandle(info, NOTHING) for info in sources])
        self.results = tuple([HostTensorHandle(info, NOTHING) for info in results])
        self.steps: list[tuple[Execute, list[ITensorHandle | None], list[ITensorHandle]]] = []
        self._copies: list[tuple[HostTensorHandle, ITensorHandle]] = []
        self._targets = [(h, h.info.known_shape, h.info.data_type.dtype) for h in self.results]
        self._bound = (*self.sources, *self.results)
        self._is_always_watched = False

    def run(  # noqa: PLR0912 - as below
        self,
        sources: Sequence[Array],
        results: Targets | None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        """Execute once with some arrays in place, then forget them.

        Parameters
        ----------
        sources, results, cancellation
            As for `PooledPlan.run`.

        Returns
        -------
        list of ndarray
            Every result.

        Raises
        ------
        BackendError
            If a backend fails; its own ArmpyErrors are raised as they are.
        """
        # Every call and every turn of a loop comes by here: functions of its own for binding
        # and unbinding, and enumerate, each cost some percent of a small network's call.
        index = 0
        for handle in self.sources:
            handle.array = sources[index]
            index += 1  # noqa: SIM113
        if results is None:
            made: list[Array] = []
            results = made
            for handle, shape, dtype in self._targets:
                handle.array = array = empty(shape, dtype)
                made.append(array)
        else:
            index = 0
            for handle in self.results:
                given = results[index]
                if given is None:
                    results[index] = given = empty(*self._targets[index][1:])
                handle.array = given
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
            # Whoever drops an array then is rid of its memory, whatever else is kept here.
            for handle in self._bound:
                handle.array = NOTHING
        return results  # type: ignore[return-value]  # there is none missing any more

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

        Raises
        ------
        ArmpyError
            What a step raised, with the names of its backend and layer.
        """

    @abstractmethod
    def _raise(self, step: int, error: BaseException) -> NoReturn:
        """Raise what a step raised, with the names of its backend and layer."""


MemoryT = TypeVar("MemoryT", bound=StepMemory)


class PooledPlan(ABC, Generic[MemoryT]):
    """A plan whose executions side by side take their memory from a small pool."""

    def __init__(self) -> None:
        self._idle: deque[MemoryT] = deque(maxlen=MAX_IDLE_MEMORIES)

    @abstractmethod
    def new_memory(self) -> MemoryT:
        """Make what one execution at a time needs."""

    def run(
        self,
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        """Execute once; any number of threads may do so at the same time.

        Parameters
        ----------
        sources : sequence of ndarray
            One per source of the graph (inputs, then variables), checked already. Not
            written to.
        results : list of (ndarray or None), optional
            Arrays to write results to, which overlap no source. None is replaced by a new one.
        cancellation : Cancellation, optional
            What stops it; the current one.

        Returns
        -------
        list of ndarray
            One per result of the graph (outputs, then variables' next values).

        Raises
        ------
        BackendError
            If a backend fails; its own ArmpyErrors are raised as they are.
        """
        try:
            memory = self._idle.pop()
        except IndexError:  # asking first whether one is left would race with other threads
            memory = self.new_memory()
        # While it is here no other thread can have it, so that an execution needs no lock.
        try:
            made = memory.run(sources, results, cancellation)
        except BaseException:  # it is not used again, and whoever keeps the error keeps no memory
            memory.free()
            raise
        self._idle.append(memory)
        return made
