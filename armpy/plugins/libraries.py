"""Opens shared libraries with what installed packages announce in the group ``armpy.libraries``."""

from __future__ import annotations

from collections.abc import Callable

from armpy.backend import IBackendInternal
from armpy.plugins.discovery.candidate import Candidate, RejectionError
from armpy.plugins.discovery.references import load_reference
from armpy.plugins.library_check import check_machine
from armpy.plugins.proxy.guarded_call import describe
from armpy.plugins.trust.pinned_code import NOT_PINNED, PinnedCode, library_copy
from armpy.types import BackendId

BackendFactory = Callable[[], IBackendInternal]


def open_library(
    candidate: Candidate,  # a library of a distribution
    pinned: PinnedCode = NOT_PINNED,  # the library is loaded from a copy of the bytes in it
) -> dict[BackendId, BackendFactory]:
    """Open a library with what is installed for it; the factories of its backends by their ids.

    Raises RejectionError if it is for another machine, an id is not text, or two backends have one;
    BaseException (whatever the opener or the library raises).
    """
    check_machine(candidate.path)
    path = candidate.path
    if pinned.module is not None:
        path = library_copy(pinned.module, path)
    return open_with(candidate.opener, path)


def open_with(opener: str, path: str) -> dict[BackendId, BackendFactory]:
    """Call an opener with the path of a library; errors as of `open_library`."""
    # Its form is the contract of the entry-point group.
    made = load_reference(opener)(path)  # type: ignore[operator]
    factories: dict[BackendId, BackendFactory] = {}
    for factory in [made] if callable(made) else made:
        backend_id = factory().get_id()
        if not isinstance(backend_id, str):
            raise RejectionError(f"its get_id returned {describe(backend_id)}, not a str")
        if backend_id in factories:
            raise RejectionError(f"two of its backends have the id '{backend_id}'")
        factories[backend_id] = factory
    return factories
