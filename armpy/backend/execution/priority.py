"""Priority of the execution that is under way, for backends whose devices have one."""

from __future__ import annotations

from contextvars import ContextVar

from armpy.types import Priority

_current: ContextVar[Priority] = ContextVar("current_priority", default=Priority.MEDIUM)

# What runs executions calls these, as a `with` statement takes as long as they do.
enter_priority = _current.set
leave_priority = _current.reset


def current_priority() -> Priority:
    """How urgent the execution is that is under way, against others of the application.

    Notes
    -----
    To be asked while a workload is executed. `PreparationRequest.priority` says what the network
    was prepared for; an execution may be started with another one.
    """
    return _current.get()
