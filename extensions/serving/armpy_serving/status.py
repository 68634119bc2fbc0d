"""Statuses of errors: whose fault each is, in the words of HTTP, gRPC and Triton.

Notes
-----
What a caller can do something about (names, types, shapes, a model that is not there) is 400 or
404; a request that needs more memory than the model's limit is 413. 503 is what may pass by itself,
and can be tried again: a full queue, no memory, a process that has ended, a model that is being
taken away. 504 is a deadline. All else is the server's, 500.
"""

from __future__ import annotations

from asyncio import CancelledError

from armpy.core.dataclass import dataclass
from armpy.errors import (
    BackendCapabilityError,
    BackendUnavailableError,
    CompilationPostponedError,
    DeadObjectError,
    ExecutionCancelledError,
    ExecutionTimeoutError,
    GraphValidationError,
    InvalidArgumentError,
    LayerValidationError,
    MemoryQuotaError,
    ModelNotFoundError,
    ModelUnavailableError,
    QueueFullError,
    UnimplementedError,
    without_memory,
)


@dataclass(frozen=True, slots=True)
class ErrorStatus:
    """Status with which a server answers."""

    http: int
    grpc: str  # name of a code of gRPC
    triton: str  # name of a code of Triton's Python backend (``pb_utils.TritonError``)

    @property
    def can_be_tried_again(self) -> bool:
        """Return whether the same request may be answered later, or by another server."""
        return self.http in _PASSING


_PASSING = frozenset((429, 503, 504))
_WRONG = ErrorStatus(400, "INVALID_ARGUMENT", "INVALID_ARG")
_BUSY = ErrorStatus(503, "UNAVAILABLE", "UNAVAILABLE")
_INTERNAL = ErrorStatus(500, "INTERNAL", "INTERNAL")

# The first that an error is of: special ones before their bases.
_STATUSES: tuple[tuple[type[BaseException], ErrorStatus], ...] = (
    (ModelNotFoundError, ErrorStatus(404, "NOT_FOUND", "NOT_FOUND")),
    (ModelUnavailableError, _BUSY),
    (InvalidArgumentError, _WRONG),
    # Shapes that are open in the file are checked by the layers that get them.
    (LayerValidationError, _WRONG),
    (GraphValidationError, _WRONG),
    (ExecutionTimeoutError, ErrorStatus(504, "DEADLINE_EXCEEDED", "UNAVAILABLE")),
    (ExecutionCancelledError, ErrorStatus(499, "CANCELLED", "CANCELLED")),
    (CancelledError, ErrorStatus(499, "CANCELLED", "CANCELLED")),
    (QueueFullError, _BUSY),
    (MemoryQuotaError, ErrorStatus(413, "RESOURCE_EXHAUSTED", "INVALID_ARG")),
    (MemoryError, ErrorStatus(503, "RESOURCE_EXHAUSTED", "UNAVAILABLE")),
    (DeadObjectError, _BUSY),
    (BackendUnavailableError, _BUSY),
    (CompilationPostponedError, _BUSY),
    (BackendCapabilityError, ErrorStatus(501, "UNIMPLEMENTED", "UNSUPPORTED")),
    (UnimplementedError, ErrorStatus(501, "UNIMPLEMENTED", "UNSUPPORTED")),
)


def status_of(error: BaseException) -> ErrorStatus:
    """The status with which a server answers a request that has come to an error."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), _INTERNAL)


def text_of(error: BaseException) -> str:
    """The text of an error for a client; never empty."""
    if isinstance(error, MemoryError):  # Python's own has none
        error = without_memory(error)
    return str(error) or type(error).__name__
