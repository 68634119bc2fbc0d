"""The way of a backend into the process: discover, trust, load, guard.

The steps are here in this order, and each calls its room. Plugins with hooks go the same way.
`BackendLoader` takes a registry's candidates along it, and records how far each has come;
`BackendRegistry` is what callers hold. What goes wrong with one candidate stops no other.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from armpy import plugins  # rooms that few processes enter
from armpy.backend import IBackendInternal
from armpy.errors import BackendError
from armpy.plugins.checks import CheckedBackend, OpenedCandidate
from armpy.plugins.discovery.candidate import (
    Candidate,
    CandidateKind,
    CandidateStatus,
    Failure,
    RejectionError,
)
from armpy.plugins.discovery.directories import ENVIRONMENT_VARIABLE, backend_paths, find_modules
from armpy.plugins.discovery.discover import (
    Discovery,
    find_distribution_libraries,
    find_entry_points,
)
from armpy.plugins.discovery.entry_point_cache import installed
from armpy.plugins.discovery.references import load_reference
from armpy.plugins.options import PluginOptions
from armpy.plugins.proxy.guard import BackendProxy
from armpy.plugins.proxy.guarded_call import let_user_interrupt
from armpy.plugins.trust.pinned_code import NOT_PINNED, PinnedCode, serve_distribution
from armpy.plugins.trust.policy import Trust
from armpy.types import BackendId


def discover(options: PluginOptions) -> Discovery:
    """Find the backends and plugins of installed distributions, and backends in directories."""
    found = installed()
    backends, hook_plugins = find_entry_points(found)
    libraries, unreadable = find_distribution_libraries(found)
    environment = os.environ.get(ENVIRONMENT_VARIABLE, "")
    paths, skipped = backend_paths(options.directories, environment)
    modules, others = find_modules(paths)
    return Discovery(
        (*backends, *libraries, *modules), tuple(hook_plugins), (*unreadable, *skipped, *others)
    )


def open_trusted(candidate: Candidate, trust: Trust, private_name: str) -> OpenedCandidate:
    """Import the code of a backend that is trusted; errors as of `open_candidate`."""
    # Checked again: the files may have changed since they were found.
    opened = open_candidate(candidate, private_name, trust.check(candidate))
    # The probe has judged another backend, then: what runs here was never tried.
    if candidate.backend_id not in ("", opened.backend_id):
        raise RejectionError(
            f"its get_backend_id returned '{opened.backend_id}', "
            f"and '{candidate.backend_id}' when it was probed"
        )
    candidate.api_version = opened.api_version
    return opened


def open_candidate(
    candidate: Candidate,  # an entry point, a directory's module, or one backend of a library
    private_name: str,  # for a directory's module; see `modules.private_name`
    pinned: PinnedCode = NOT_PINNED,  # code to import instead of the present one
) -> OpenedCandidate:
    """Import a candidate's code; raises RejectionError or what that code raises."""
    if candidate.kind is CandidateKind.DIRECTORY:
        return plugins.modules.open_module(candidate, private_name, pinned)
    if candidate.kind is CandidateKind.LIBRARY:
        factories = plugins.libraries.open_library(candidate, pinned)
        if candidate.backend_id not in factories:
            listed = ", ".join(factories) or "no backend"
            raise RejectionError(f"it has {listed}, and had this one when it was probed")
        return OpenedCandidate(candidate.backend_id, "", factories[candidate.backend_id])
    loaded = open_plugin(candidate, pinned)
    # An entry point may also name a backend that is made already.
    factory = loaded if callable(loaded) else lambda: loaded
    return OpenedCandidate(candidate.backend_id, "", factory)


def open_plugin(candidate: Candidate, pinned: PinnedCode) -> object:
    """Import what an entry point names, from a snapshot if it has a pin.

    Raises RejectionError if it was imported before its pin was checked; BaseException (whatever the
    plugin raises).
    """
    if pinned.module is not None:
        # Before the import, which then finds the bytes that were hashed.
        serve_distribution(pinned.module, candidate)
    return load_reference(candidate.name)


def create(candidate: Candidate, opened: OpenedCandidate) -> CheckedBackend:
    """Make a backend, check it against the contract, and note what it says of itself."""
    checked = opened.create()
    candidate.api_version = checked.api_version
    candidate.device_type = checked.device_type.name
    candidate.status = CandidateStatus.REGISTERED
    return checked


def guard(backend_id: BackendId, backend: IBackendInternal) -> BackendProxy:
    """Put a backend in its proxy; raises BackendError if it has another id by now."""
    proxy = BackendProxy(backend)
    if proxy.get_id() != backend_id:
        raise BackendError(
            "the backend calls itself otherwise than when it was registered",
            where=f"{backend_id} / get_id",
            expected=repr(backend_id),
            actual=repr(proxy.get_id()),
        )
    return proxy


def attempt(
    step: Callable[[], None],
    # `private_name` and `name`: as for `failures.describe_failure`.
    private_name: str = "",
    name: str = "",
) -> tuple[CandidateStatus, Failure] | None:
    """Take a step with a candidate; return its outcome if that goes wrong, else None."""
    try:
        step()
    # Without a traceback: the text names the broken rule, and no code of the candidate failed.
    except RejectionError as error:
        return CandidateStatus.REJECTED, Failure(str(error), fix=error.fix)
    except BaseException as error:  # noqa: BLE001 - plugin boundary: recorded
        # SystemExit counts as a failure, but the user's Ctrl-C is not the candidate's.
        let_user_interrupt(error)
        return CandidateStatus.FAILED, plugins.failures.describe_failure(error, private_name, name)
    return None
