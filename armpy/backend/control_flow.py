"""Time limits of control flow for backends, and marks on networks that are soon forgotten."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, Token

DEFAULT_LOOP_TIMEOUT_S = 2.0
"""Default time limit of control flow; NNAPI's default for loops."""

NUM_FREE_PREPARATIONS = 32
"""Networks that are prepared while a loop runs, and whose preparation takes no time of its own."""


class TimeBudget:
    """Time that an outermost control flow has left; `end_s` is by `time.perf_counter`."""

    def __init__(self, limit_s: float | None) -> None:
        self.end_s = math.inf if limit_s is None else time.perf_counter() + limit_s
        self._num_left = NUM_FREE_PREPARATIONS

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Leave the time of a preparation out, unless there were many: loops have to end."""
        left_s = self.end_s - time.perf_counter()
        self._num_left -= 1
        try:
            yield
        finally:
            if self._num_left >= 0:
                self.end_s = time.perf_counter() + left_s


# In the context: several threads prepare and execute networks, each with its own limits.
_network_timeout_s: ContextVar[float | None] = ContextVar(
    "network_timeout_s", default=DEFAULT_LOOP_TIMEOUT_S
)
_execution_timeout_s: ContextVar[tuple[float | None] | None] = ContextVar(
    "execution_timeout_s", default=None
)
_budget: ContextVar[TimeBudget | None] = ContextVar("budget", default=None)
_is_for_one_turn: ContextVar[bool] = ContextVar("is_for_one_turn", default=False)

is_for_one_turn = _is_for_one_turn.get


def loop_timeout_s() -> float | None:
    """Give the seconds that control flow of the network being prepared may take.

    Returns
    -------
    float or None
        Seconds, as `RuntimeOptions.loop_timeout_s` says; None for no limit.

    Notes
    -----
    To be asked when a workload is made, by backends that execute `If` or `While`
    themselves. `control_flow_time_left_s` gives the time left in an execution.
    """
    return _network_timeout_s.get()


def control_flow_time_left_s(timeout_s: float | None) -> float:
    """Give the seconds that control flow that begins now may take.

    Parameters
    ----------
    timeout_s : float, optional
        Result of `loop_timeout_s` when the workload was made.

    Returns
    -------
    float
        Seconds; infinite if there is no limit, 0 or less if the time is up.

    Notes
    -----
    To be asked while a workload is executed. An execution may have a time-out of its
    own, and inside other control flow that one's time counts: an outermost `If` or `While` and all
    that it runs share one budget. A loop whose condition is still true when the time is up raises
    `armpy.errors.ExecutionTimeoutError`. Backends that see to it declare the capability
    ``LoopTimeout``; loops of all others are stopped by the core.

    Examples
    --------
    >>> control_flow_time_left_s(loop_timeout_s())
    2.0
    """
    budget = _budget.get()
    # Inner control flow has the time of the outermost: a limit for each would multiply.
    if budget is not None:
        return budget.end_s - time.perf_counter()
    limit_s = current_timeout_s(timeout_s)
    return float("inf") if limit_s is None else limit_s


def current_timeout_s(default_s: float | None) -> float | None:
    """Return how long outermost control flow that begins now may take; None for no limit."""
    chosen = _execution_timeout_s.get()
    return default_s if chosen is None else chosen[0]


def begin_control_flow(
    timeout_s: float | None,
) -> tuple[TimeBudget, Token[TimeBudget | None] | None]:
    """Begin to execute a layer of control flow.

    Returns
    -------
    TimeBudget
    Token or None
        Argument for `end_control_flow`; None inside other control flow.
    """
    budget = _budget.get()
    # Inside other control flow nothing is set, so that only the outermost ends the time.
    if budget is not None:
        return budget, None
    budget = TimeBudget(current_timeout_s(timeout_s))
    return budget, _budget.set(budget)


def end_control_flow(token: Token[TimeBudget | None] | None) -> None:
    """End what `begin_control_flow` has begun."""
    if token is not None:
        _budget.reset(token)


@contextmanager
def execution_timeout(timeout_s: float | None) -> Iterator[None]:
    """Let control flow that begins in this context take so long; None for no limit."""
    # In a tuple, as None is an answer here, and nothing set is another one.
    token = _execution_timeout_s.set((timeout_s,))
    try:
        yield
    finally:
        _execution_timeout_s.reset(token)


@contextmanager
def network_timeout(timeout_s: float | None) -> Iterator[None]:
    """Set the time-out for workloads that are made in this context.

    What takes time here is not taken from control flow that waits for it.
    """
    budget, token = _budget.get(), _network_timeout_s.set(timeout_s)
    try:
        with nullcontext() if budget is None else budget.preparing():
            yield
    finally:
        _network_timeout_s.reset(token)


@contextmanager
def for_one_turn() -> Iterator[None]:
    """Let backends know that layers offered in this context are soon dropped."""
    token = _is_for_one_turn.set(True)
    try:
        yield
    finally:
        _is_for_one_turn.reset(token)
