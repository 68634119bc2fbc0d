"""Workloads: executable form of single layers, made by a backend's factory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from armpy.backend.memory.tensor_handle import ITensorHandle
from armpy.core.dataclass import dataclass
from armpy.tensor import TensorInfo

if TYPE_CHECKING:  # an import here slows every start of a compiled model
    from armpy.ops.operation import Array, Operation


@dataclass(frozen=True, slots=True)
class WorkloadInfo:
    """Description of the layer that a workload is made for."""

    name: str  # the layer's name
    inputs: tuple[TensorInfo | None, ...]
    """Fully shaped; None for an omitted operand."""
    outputs: tuple[TensorInfo, ...]
    """Fully shaped, except for layers that need the capability ``DynamicOutputShapes``."""
    constants: tuple[Array | None, ...]
    """Elements of each input that is a constant, read-only; None for other inputs."""


class IWorkload(ABC):
    """One layer, prepared for execution.

    Notes
    -----
    Several threads may execute one workload at the same time, each with its own handles: it must
    not keep anything of an execution.
    """

    @abstractmethod
    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Compute the outputs.

        Parameters
        ----------
        inputs : sequence of (ITensorHandle or None)
            One per input of the layer, constants included. Not to be written to.
        outputs : sequence of ITensorHandle
            Tensors whose memory is not initialised and does not overlap that of an input. Must be
            written completely. An output that is not fully shaped is a `DynamicTensorHandle`, which
            has to be resized first.
        """

    def bind(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> Callable[[], object]:
        """Prepare many executions with the same handles.

        Parameters
        ----------
        inputs, outputs : sequence of ITensorHandle
            Tensors, as for `execute`. A `HostTensorHandle` keeps its array as long as the result is
            used, so that its address can be looked up here.

        Returns
        -------
        callable
            Does what `execute` does with them, by one thread at a time; by default it calls it, or
            `enqueue` if that is overridden, whose answer it gives.

        Notes
        -----
        A workload that looks at `current_cancellation` does so here, once: what it
        makes is stopped by that one only.
        """
        # Without a queue `enqueue` only calls `execute`, a call more at every step.
        queues = type(self).enqueue is not IWorkload.enqueue
        return partial(self.enqueue if queues else self.execute, inputs, outputs)

    def for_arrays(self) -> Callable[[Sequence[Array]], object] | None:
        """Function that does what `execute` does, on arrays in host memory; None for none.

        It gets those of the inputs, then those of the outputs, and saves calls of small networks
        the handles. All operands are there; any number of threads may call it.
        """
        return None

    def enqueue(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> ICompletion | None:
        """Begin an execution on a device with a queue.

        Parameters
        ----------
        inputs, outputs : sequence of ITensorHandle
            Tensors, as for `execute`. Elements may still be on their way from workloads of the same
            backend that were enqueued before: the queue keeps the order.

        Returns
        -------
        ICompletion or None
            Signals its end; None if it has ended, as after the default, which is `execute`.

        Notes
        -----
        The core waits before anybody else touches the tensors, and before the
        execution of the network ends.
        """
        self.execute(inputs, outputs)
        return None

    def free_idle_memory(self) -> None:
        """Release memory kept for later executions; nothing by default.

        Called when the application asks for idle memory; executions may be under way,
        and the next one makes its memory anew.
        """
        return


class ICompletion(ABC):
    """Completion of a command that was sent to a device."""

    @abstractmethod
    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; whether it has come.

        Raises
        ------
        ArmpyError
            If the device failed; again at each further call.
        """

    def cancel(self) -> None:
        """Stop the command, if the device can; `wait` returns soon then."""
        return


class IWorkloadFactory(ABC):
    """Makes the workloads of one loaded network on one backend."""

    @abstractmethod
    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """Prepare one layer; work to be done once (packing weights) belongs here.

        Raises
        ------
        ArmpyError
            If it cannot be prepared; the layer then moves to the next backend.
        """
