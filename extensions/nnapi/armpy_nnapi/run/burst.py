"""Bursts: executions of one compilation in quick succession."""

from __future__ import annotations

import weakref

from armpy_nnapi.compile.compilation import Compilation
from armpy_nnapi.results import bad_data, bad_state, check_kind, unexpected_null
from armpy_nnapi.run.execution import Execution
from armpy_nnapi.run.turn import Turn


class Burst:
    """Executions of one compilation in quick succession, one at a time.

    Parameters
    ----------
    compilation : Compilation
        Finished.

    Raises
    ------
    NnapiError
        UNEXPECTED_NULL without a compilation; BAD_STATE if it is not finished or failed.

    Notes
    -----
    Quickest with a reusable execution, whose arguments are checked once: write the next elements
    into its arrays and compute again. A context manager; `close` gives back what its executions
    have prepared, and so does a watchdog if they are not used for some seconds.

    Examples
    --------
    >>> import numpy as np
    >>> from armpy_nnapi import Burst, Compilation, Execution, ModelBuilder
    >>> builder = ModelBuilder()
    >>> x = builder.input(np.float32, (2,))
    >>> compilation = Compilation(builder.finish(builder.relu(x)))
    >>> compilation.finish()
    >>> execution, values, result = Execution(compilation), np.zeros(2, "f4"), np.zeros(2, "f4")
    >>> execution.set_reusable(True)
    >>> execution.set_input(0, values)
    >>> execution.set_output(0, result)
    >>> with Burst(compilation) as burst:
    ...     for number in (1, -1):
    ...         values[:] = number
    ...         burst.compute(execution)
    ...         print(result)
    [1. 1.]
    [0. 0.]
    """

    def __init__(self, compilation: Compilation) -> None:
        if compilation is None:
            raise unexpected_null("the compilation", where="Burst")
        check_kind(compilation, Compilation, "Burst")
        compilation.check_ready("Burst")
        self._compilation = compilation
        self._latest: Execution | None = None
        # Weak: the application's executions may go before the burst does.
        self._reusable: weakref.WeakSet[Execution] = weakref.WeakSet()
        self._is_closed = False
        self._turn = Turn()

    def compute(self, execution: Execution) -> None:
        """Run an execution; as `Execution.compute`.

        Raises
        ------
        NnapiError
            UNEXPECTED_NULL without an execution; BAD_DATA if it is of another compilation;
            BAD_STATE if another thread computes in this burst; else as `Execution.compute`.

        References
        ----------
        NNAPI ``ANeuralNetworksExecution_burstCompute``.
        """
        # Arguments checked at the last call need not be again; most bursts have one execution.
        if execution is not self._latest or execution is None:
            self._check(execution)
        # `take` and `give_back` of the turn, without their calls: a burst is there to be quick.
        tokens = self._turn.tokens
        try:
            tokens.pop()
        except IndexError:
            raise bad_state(
                "another thread computes in the burst, or it is closed",
                where="Burst.compute",
                fix="Make a burst for each thread",
            ) from None
        try:
            execution.compute()
        finally:
            tokens.append(None)

    def _check(self, execution: Execution) -> None:
        """Check that an execution is of this burst's compilation."""
        where = "Burst.compute"
        if execution is None:
            raise unexpected_null("the execution", where=where)
        check_kind(execution, Execution, where)
        if execution.compilation is not self._compilation:
            raise bad_data("the execution is of another compilation than the burst", where=where)
        if execution.is_reusable:  # others are not kept: they have come to their end
            self._latest = execution
            self._reusable.add(execution)

    def close(self) -> None:
        """Compute no more; BAD_STATE while a thread computes."""
        if not self._turn.take():  # and never given back, so that it cannot compute any more
            if self._is_closed:
                return
            raise bad_state("a thread computes in the burst", where="Burst.close")
        self._is_closed = True
        self._latest = None
        for execution in [*self._reusable]:
            execution.release()

    def __enter__(self) -> Burst:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
