"""A backend that declares abilities beyond running layers.

References
----------
Arm NN backend developer guide, "The GetCapabilities interface".
"""

from __future__ import annotations

from armpy.backend import Capabilities, Capability, IBackendInternal, current_cancellation

from .Example_common import ElementwiseBackend, Floats, add

BACKEND_ID = "ExampleCapabilities"
AT_ONCE = 65536
"""Elements between two looks at whether the execution is to stop: much less than 10 ms."""


def get_backend_id() -> str:
    """First entry point."""
    return BACKEND_ID


def get_version() -> str:
    """Second entry point."""
    return "2.0"


def backend_factory() -> IBackendInternal:
    """Third entry point."""
    return CapableBackend(BACKEND_ID, kernel=add_until_cancelled)


def add_until_cancelled(lhs: Floats, rhs: Floats, out: Floats) -> None:
    """Add piece by piece, and stop between two if that is wished."""
    cancellation = current_cancellation()
    sources, target = (lhs.reshape(-1), rhs.reshape(-1)), out.reshape(-1)
    for start in range(0, target.size, AT_ONCE):
        if cancellation is not None:
            cancellation.check()
        piece = slice(start, start + AT_ONCE)
        add(sources[0][piece], sources[1][piece], target[piece])


class CapableBackend(ElementwiseBackend):
    """Adds tensors, and can be stopped."""

    def get_capabilities(self) -> Capabilities:
        """Questions of the core. A missing name is the same as False."""
        return {
            # It takes a network only if it can run all of it.
            Capability.ALL_OR_NOTHING: True,
            # Its tensors may be packed into one arena in either way.
            Capability.SINGLE_AXIS_PACKING: True,
            Capability.MULTI_AXIS_PACKING: True,
            # Its workloads look at `current_cancellation`.
            Capability.CANCELLABLE_EXECUTION: True,
            # A name of its own, which the core does not know, does no harm.
            "ExampleVectorWidth": 8,
        }
