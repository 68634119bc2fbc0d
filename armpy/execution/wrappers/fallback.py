"""Fallback at run time: what a backend fails to execute is executed again on the next ones."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from armpy.backend import Cancellation
from armpy.errors import ArmpyError, MemoryLimitError
from armpy.execution.error_attribution import FAILURES, backend_of
from armpy.execution.programs.compiled_program import CompiledProgram
from armpy.execution.programs.program import PlanKey
from armpy.execution.programs.staged_program import NetworkProgram
from armpy.execution.steps.control_flow import Targets
from armpy.execution.wrappers.runs import Runs
from armpy.ops.operation import Array
from armpy.types import BackendId

_FAILURES = (*FAILURES, MemoryLimitError)
"""What leads to the next backend, where one is to blame."""

_log = logging.getLogger("armpy.execution")

PlanWithout: TypeAlias = Callable[[BackendId, ArmpyError, PlanKey], NetworkProgram]
"""Makes another plan when a backend has failed; see `LoadedNetwork.plan_without`."""

WeakPlanWithout: TypeAlias = Callable[[], PlanWithout | None]
"""Weak reference to a `PlanWithout`, as a `weakref.WeakMethod`."""


def falling_back(
    runs: Runs,  # of the plan
    # Weak reference to a PlanWithout; of the network whose plan it is.
    plan_without: WeakPlanWithout,
    key: PlanKey,  # what it is prepared for
    plan: NetworkProgram,
) -> Runs:
    """Execute a plan that is made anew, without the backend, when one fails to execute it.

    A `BackendError` leads to the next backend, and so do a device that is gone, and memory that a
    backend has not got; what a caller has got wrong, cancellations and deadlines do not. Executions
    read their sources only, and write state when they have come to their end, so that each attempt
    begins with the same. A backend that has failed once gets no layer of the network again, if
    others take them all; else its error is the caller's.
    """
    next_plans = _NextPlans(plan_without, key)
    # One tuple, so that another thread never sees the plan of one and the function of another.
    current = plan, runs.run

    def run(
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        nonlocal current
        while True:
            latest, run_latest = current
            try:
                # A copy: an attempt that fails may have put new arrays where there were none.
                targets = None if results is None else [*results]
                return run_latest(sources, targets, cancellation)
            except _FAILURES as error:
                plan = next_plans.plan(latest, error)
                current = plan, plan.run

    def bind(sources: Sequence[Array], results: Targets) -> Callable[[], None]:
        latest, call = next_plans.bound(current[0], sources, results)

        def execute() -> None:
            nonlocal latest, call
            while True:
                try:
                    return call()
                except _FAILURES as error:
                    plan = next_plans.plan(latest, error)
                    latest, call = next_plans.bound(plan, sources, results)

        return execute

    return Runs(run, None if runs.bind is None else bind)


class _NextPlans(NamedTuple):
    """Plans that follow one whose backend has failed."""

    plan_without: WeakPlanWithout
    key: PlanKey

    def bound(
        self, plan: NetworkProgram, sources: Sequence[Array], results: Targets
    ) -> tuple[NetworkProgram, Callable[[], None]]:
        """Let the first plan bind that can."""
        while True:
            assert isinstance(plan, CompiledProgram)  # of a network without open shapes all are
            try:
                return plan, plan.bind(sources, results)  # type: ignore[arg-type]  # all shapes are known
            except _FAILURES as error:
                plan = self.plan(plan, error)

    def plan(self, plan: NetworkProgram, error: ArmpyError) -> NetworkProgram:
        """The plan without the backend that has failed.

        Raises ArmpyError (the error itself, if it is not a backend's or no other backend takes the
        layers).
        """
        plan_without = self.plan_without()
        backend_id = backend_of(error)
        if plan_without is None or not backend_id:
            raise error
        try:
            following = plan_without(backend_id, error, self.key)
        except ArmpyError as refusal:
            _log.warning("no other backend can execute what %s failed to: %s", backend_id, refusal)
            raise error from error.__cause__
        # It would fail in the same way, for ever.
        if following is plan:
            raise error
        return following
