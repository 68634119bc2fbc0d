"""Waits for what devices have been told to do."""

from __future__ import annotations

from armpy.backend import Cancellation, ICompletion
from armpy.errors import BackendError
from armpy.plugins.proxy.guarded_call import ask_method, call_method, describe, is_a
from armpy.types import BackendId

# Far below the 10 ms within which `Execution.cancel` promises to be effective.
_SLICE_S = 0.002
"""How long to wait for a device before looking whether to stop."""


def as_completion(backend_id: BackendId, answer: object) -> ICompletion | None:
    """What a workload's ``enqueue`` has answered.

    Raises
    ------
    BackendError
        If it is something else.
    """
    if answer is None:
        return None
    if not is_a(answer, ICompletion):
        raise BackendError(
            "the answer has the wrong type",
            where=f"{backend_id} / enqueue",
            expected="ICompletion or None",
            actual=describe(answer),
        )
    return answer  # type: ignore[return-value]  # just checked


def wait_for(
    backend_id: BackendId, completion: ICompletion, cancellation: Cancellation | None = None
) -> None:
    """Wait until a device has done what it was told, or stop it.

    Raises
    ------
    ExecutionCancelledError, ExecutionTimeoutError
        If it was stopped.
    BackendError
        If it fails; a backend's own ArmpyErrors are raised as they are.
    """
    if cancellation is not None:
        while not ask_method(backend_id, bool, completion, "wait", _SLICE_S):
            if cancellation.is_cancelled:
                stop(backend_id, completion)
                raise cancellation.error
    elif not ask_method(backend_id, bool, completion, "wait"):
        # Without a limit there is no reason to return early: the arrays may still be written to.
        raise BackendError("the device has not come to its end", where=f"{backend_id} / wait")


def stop(backend_id: BackendId, completion: ICompletion) -> None:
    """Stop a device, if it can be stopped, and wait until it uses no memory any more.

    Raises
    ------
    BackendError
        If it fails; a backend's own ArmpyErrors are raised as they are.
    """
    call_method(backend_id, completion, "cancel")
    ask_method(backend_id, bool, completion, "wait")
