"""Check whether a backend can be used on this machine, as a runtime does."""

from __future__ import annotations

from armpy.backend import OptionScope
from armpy.backend.options import check_options
from armpy.errors import ArmpyError
from armpy.plugins.proxy.guard import BackendProxy
from armpy.plugins.proxy.guarded_call import call_method


def find_unavailability(backend: BackendProxy) -> ArmpyError | None:
    """Open a backend with its default options; return the error, None if it can be used.

    A `DeviceNotFoundError` says that its hardware, driver or vendor package is missing.
    """
    try:
        scopes = check_options(backend.options, {}, backend.get_id())
        options = scopes[OptionScope.RUNTIME]
        context = backend.for_runtime(options).create_backend_context(options)
        if context is not None:
            call_method(backend.get_id(), context, "close")
    except ArmpyError as error:
        return error
    return None


def shortened(error: ArmpyError) -> str:
    """Return what failed and the fix, without the place, for a line that begins with it."""
    return ". ".join(text.rstrip(".") for text in (error.failed, error.fix) if text)
