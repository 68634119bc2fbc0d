"""Errors of armpy as those that KServe, Starlette and gRPC know."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus

import grpc
from grpc_interceptor.exceptions import GrpcException
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from armpy.errors import InvalidArgumentError
from armpy_serving.status import status_of, text_of

_ROUTES = "POST /v2/models/NAME/infer, or GET /v2/models/NAME for what it takes"

_LOG = logging.getLogger("armpy_serving")


def kserve_error(error: Exception, *, is_grpc: bool) -> Exception:
    """The exception whose status KServe's servers answer with: ``GrpcException`` or HTTP's."""
    status = status_of(error)
    log_error(error)
    kserve_made: Exception = (
        GrpcException(status_code=grpc.StatusCode[status.grpc], details=text_of(error))
        if is_grpc
        else HTTPException(status.http, text_of(error))
    )
    return kserve_made


def error_response(error: Exception) -> Response:
    """The answer of the protocol to a request that has come to an error."""
    log_error(error)
    return _json_response(text_of(error), status_of(error).http)


async def http_exception_response(request: Request, error: Exception) -> Response:
    """The answer of the protocol to what Starlette refuses: paths and methods, and the like."""
    status, detail = getattr(error, "status_code", 500), getattr(error, "detail", error)
    if detail == HTTPStatus(status).phrase:  # Starlette's own: there is no such route
        actual = f"{request.method} {request.url.path}"
        detail = InvalidArgumentError(detail.lower(), expected=_ROUTES, actual=actual)
    return _json_response(str(detail), status)


def log_error(error: Exception) -> None:
    """Log an error that is the server's, with its traceback."""
    if status_of(error).http == 500:
        _LOG.error("a request has failed", exc_info=error)


def _json_response(text: str, status: int) -> Response:
    """The answer with an error's text, escaped: Starlette's JSON cannot have a lone surrogate."""
    body = json.dumps({"error": text}).encode()
    return Response(body, status, media_type="application/json")
