"""Fallback at run time: what a backend fails to execute is executed again on the next ones."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence
from typing import Protocol

from armpy.backend import Cancellation
from armpy.errors import ArmpyError, MemoryLimitError
from armpy.execution.error_attribution import FAILURES, backend_of
from armpy.execution.programs.bound_program import PlanKey
from armpy.execution.programs.protocols import ProgramPlan, Run
from armpy.execution.programs.static_plan import StaticPlan
from armpy.execution.steps.control_flow import Targets
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import BackendId

_FAILURES = (*FAILURES, MemoryLimitError)
"""What leads to the next backend, where one is to blame."""

_log = logging.getLogger("armpy.execution")


class PlanSource(Protocol):
    """Network that makes another plan when a backend has failed to execute the first one."""

    def plan_without(self, backend_id: BackendId, error: ArmpyError, key: PlanKey) -> ProgramPlan:
        """The plan without the backend; as of `LoadedNetwork`."""


class FallbackPlan:
    """A plan that is made anew, without the backend, when one fails to execute it.

    Parameters
    ----------
    network : PlanSource
        Whose plan it is; not kept alive.
    key : tuple
        What it is prepared for.
    plan : ProgramPlan
    run : callable
        Executes the plan.

    Notes
    -----
    A `BackendError` leads to the next backend, and so do a device that is gone, and memory that a
    backend has not got; what a caller has got wrong, cancellations and deadlines do not. Executions
    read their sources only, and write state when they have come to their end, so that each attempt
    begins with the same. A backend that has failed once gets no layer of the network again, if
    others take them all; else its error is the caller's.
    """

    def __init__(self, network: PlanSource, key: PlanKey, plan: ProgramPlan, run: Run) -> None:
        # Weak, as the network has this with its plans.
        self._network = weakref.ref(network)
        self._key = key
        # One tuple, so that another thread never sees the plan of one and the function of another.
        self._current = plan, run
        self.result_infos: tuple[TensorInfo, ...] = plan.result_infos

    def run(
        self,
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        """Execute once; parameters, result and errors as for `StaticPlan.run`."""
        while True:
            plan, run = self._current
            try:
                # A copy: an attempt that fails may have put new arrays where there were none.
                return run(sources, None if results is None else [*results], cancellation)
            except _FAILURES as error:
                following = self._following(plan, error)
                self._current = following, following.run

    def bind(self, sources: Sequence[Array], results: Sequence[Array]) -> Callable[[], None]:
        """Prepare many executions; parameters, result and errors as for `StaticPlan.bind`."""
        plan, call = self._bound(self._current[0], sources, results)

        def execute() -> None:
            nonlocal plan, call
            while True:
                try:
                    return call()
                except _FAILURES as error:
                    following = self._following(plan, error)
                    plan, call = self._bound(following, sources, results)

        return execute

    def _bound(
        self, plan: ProgramPlan, sources: Sequence[Array], results: Sequence[Array]
    ) -> tuple[ProgramPlan, Callable[[], None]]:
        """Let the first plan bind that can."""
        while True:
            assert isinstance(plan, StaticPlan)  # of a network without open shapes all are
            try:
                return plan, plan.bind(sources, results)
            except _FAILURES as error:
                plan = self._following(plan, error)

    def _following(self, plan: ProgramPlan, error: ArmpyError) -> ProgramPlan:
        """The plan without the backend that has failed.

        Raises
        ------
        ArmpyError
            The error itself, if it is no backend's or nobody else takes the layers.
        """
        network = self._network()
        backend_id = backend_of(error)
        if network is None or not backend_id:
            raise error
        try:
            following = network.plan_without(backend_id, error, self._key)
        except ArmpyError as refusal:
            _log.warning("no other backend can execute what %s failed to: %s", backend_id, refusal)
            raise error from error.__cause__
        # It would fail in the same way, for ever.
        if following is plan:
            raise error
        return following
