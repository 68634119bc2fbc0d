"""Invocations: everything that a call asks of a network, said before the call begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from armpy.core.arguments import check_instance
from armpy.errors import InvalidArgumentError
from armpy.execution.calls.run import run_by_name
from armpy.execution.scheduling.loop_timeout import UNSET, Unset, loop_timeout
from armpy.types import Priority

if TYPE_CHECKING:  # an import here slows every start of a compiled model
    from armpy.execution.calls.callee import Callee, LoadedCallee
    from armpy.execution.calls.network_memory import NetworkMemory
    from armpy.execution.wrappers.debugging import DebugCallback
    from armpy.ops.operation import Array

    Named: TypeAlias = dict[str, Array]
    Finish: TypeAlias = Callable[[Named], Named]


class Invocation(NamedTuple):
    """Everything that a call asks of a network.

    `LoadedNetwork.invoke` runs it, `LoadedNetwork.bind` prepares it for many runs, and
    `armpy.execution.calls.async_execution.start` runs it on a thread of the runtime's. A call that
    asks for nothing but outputs makes none: it goes to `armpy.execution.calls.run` at once.
    Bound executions read and write stored elements in place, with the settings' time for loops.
    """

    inputs: Mapping[str, object]  # every input
    # Arrays to write stored outputs to; the ones missing are made.
    outputs: Mapping[str, object] | None = None
    quantize_inputs: bool = False  # whether real numbers are quantised for a quantised input
    finish: Finish | None = None  # makes of the outputs what the caller is to have
    memory: NetworkMemory | None = None  # what the call is executed in
    debug: DebugCallback | None = None  # called with every value
    # How long it may take, with the time that it waits for a thread.
    deadline_s: float | None = None
    # How long an outermost If or While may take, with all that it runs; None for no limit. Left
    # out, the settings say it.
    loop_timeout_s: float | Unset | None = UNSET
    priority: Priority = Priority.MEDIUM  # of a started execution that waits for a thread
    # Whether calls of a bound execution can be stopped at any time, also if backends do not stop
    # themselves.
    cancellable: bool = False
    keep_alive: object = None  # what has to live as long; networks go with their runtime

    @property
    def is_plain(self) -> bool:
        """True if the call asks for arrays only, without memory, debug callback or deadline."""
        return self.memory is None and self.debug is None and self.deadline_s is None

    def callee(self, network: LoadedCallee) -> Callee:
        """The network in the memory that is asked for, or with every value an output.

        Raises InvalidArgumentError if both are asked for, or the memory is another object or
        another network's.
        """
        if self.memory is None:
            if self.debug is None:
                return network
            # Few programs debug.
            from armpy.execution.calls.debugged_network import DebuggedNetwork  # noqa: PLC0415

            return DebuggedNetwork(network, self.debug)
        if self.debug is not None:
            raise InvalidArgumentError(
                "working memory has no room for every value",
                where="debug",
                fix="Leave out memory or debug",
            )
        from armpy.execution.calls.network_memory import NetworkMemory  # noqa: PLC0415

        check_instance(self.memory, "memory", NetworkMemory)
        return self.memory.of(network)

    def check_deadline(self) -> None:
        """Check that nothing is asked for that a deadline forbids.

        Raises InvalidArgumentError if working memory or a callback is given.
        """
        # A run that is late is left to end by itself, and goes on writing to its arrays.
        if self.memory is not None or self.debug is not None:
            raise InvalidArgumentError(
                "a run with a deadline may have to be left alone with all that it uses",
                where="memory" if self.debug is None else "debug",
                fix="Leave it out, or deadline_s",
            )

    def run(self, callee: Callee) -> Named:
        """Execute once on this thread, without a deadline; errors as of `run_by_name`."""
        with self.loop_limit():
            results = run_by_name(callee, self.inputs, self.outputs, self.quantize_inputs)
        return results if self.finish is None else self.finish(results)

    def loop_limit(self) -> AbstractContextManager[None]:
        """Let loops take the time that is asked for."""
        limit_s = self.loop_timeout_s
        return nullcontext() if limit_s is UNSET else loop_timeout(limit_s)
