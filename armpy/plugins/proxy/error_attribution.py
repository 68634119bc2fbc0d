"""Attribution of an error to a backend, so that another one can execute instead."""

from __future__ import annotations

from armpy.errors import ArmpyError, BackendError, BackendUnavailableError
from armpy.types import HOST, BackendId

FAILURES = (BackendError, BackendUnavailableError)
"""The error of a backend that has failed, from whatever thread it was called."""

_NAME = "backend_id"


def blamed(
    backend_id: BackendId,
    # Other than a `BackendError`, or a `BackendUnavailableError` of a device that is gone, it stays
    # as it is; so does one that passes through a layer whose inner graph it comes from.
    error: ArmpyError,
    *,
    is_memory: bool = False,  # whether the backend had no memory, of whatever kind its error is
) -> ArmpyError:
    """An error with the id of the backend that has failed while it executed."""
    if backend_id != HOST and (is_memory or isinstance(error, FAILURES)):
        # The first name stays: the layers around an inner graph are not to blame.
        vars(error).setdefault(_NAME, backend_id)
    return error


def backend_of(error: ArmpyError) -> BackendId:
    """Return the backend that caused an error; empty if none did."""
    name = vars(error).get(_NAME)  # not what a vendor's class makes of the attribute
    return name if isinstance(name, str) else ""
