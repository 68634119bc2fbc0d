"""The boundary to backends' code: whatever it raises becomes an error that names the backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from armpy.errors import ArmpyError, BackendError
from armpy.ops.operation import located
from armpy.types import BackendId

P = ParamSpec("P")
T = TypeVar("T")


def call_backend(
    backend_id: BackendId, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call one of a backend's methods.

    Raises
    ------
    BackendError
        If it raises; its own ArmpyErrors are raised as they are, with the backend's name.
    """
    where = f"{backend_id} / {method.__name__}"
    try:
        return method(*args, **kwargs)
    except ArmpyError as error:
        raise located(lambda: where, error) from error.__cause__
    except Exception as error:  # plugin boundary: raised again with the backend's name
        raise BackendError(f"the backend raised {error!r}", where=where) from error
