"""Routes of HTTP that read and write requests themselves, in place of KServe's.

Notes
-----
KServe's route makes a Python number of every element that comes as bytes, rounds what is no
integer, answers some errors with 422 and words of its own, and NaN with ``null``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route

from armpy.errors import (
    ArmpyError,
    InvalidArgumentError,
    ModelUnavailableError,
    UnimplementedError,
)
from armpy_serving.contents import Array
from armpy_serving.kserve.errors import error_response, http_exception_response
from armpy_serving.kserve.repository import ArmpyModelRepository
from armpy_serving.metrics import ModelMetrics
from armpy_serving.requests import (
    HEADER,
    InferenceRequest,
    json_length,
    read_request,
    version_error,
)
from armpy_serving.served_model import ServedModel

T = TypeVar("T")

LARGE_BYTES = 1 << 16
"""Bodies from here on are read and written on a thread: JSON of this size takes a millisecond."""

_WATCH_AFTER_S = 0.05
"""Clients are watched from here on; most answers are away by then, and watching has its price."""


def add_routes(app: Starlette, repository: ArmpyModelRepository) -> None:
    """Add armpy's routes to an application, before all others, and answer errors as the protocol.

    Parameters
    ----------
    app : Starlette
        KServe's, ``kserve.model_server.app``.
    """
    routes = _Routes(repository)
    model, changed = "/v2/models/{name}", "/v2/repository/models/{name}"
    version = f"{model}/versions/{{version}}"
    app.router.routes[:0] = [
        _ModelRoute(repository, f"{model}/infer", routes.infer, methods=["POST"]),
        _ModelRoute(repository, model, routes.metadata, methods=["GET"]),
        _ModelRoute(repository, f"{model}/ready", routes.ready, methods=["GET"]),
        _ModelRoute(repository, f"{version}/infer", routes.no_version, methods=["POST"]),
        _ModelRoute(repository, f"{version}/ready", routes.no_version, methods=["GET"]),
        _ModelRoute(repository, version, routes.no_version, methods=["GET"]),
        _ModelRoute(repository, "/v1/models/{name}:predict", routes.version_1, methods=["POST"]),
        _ModelRoute(repository, "/v1/models/{name}:explain", routes.version_1, methods=["POST"]),
        Route("/v2/repository/index", routes.index, methods=["POST"]),
        Route(f"{changed}/load", routes.load, methods=["POST"]),
        Route(f"{changed}/unload", routes.unload, methods=["POST"]),
    ]
    app.add_exception_handler(HTTPException, http_exception_response)


class _ModelRoute(Route):
    """A route for models of armpy; KServe's own routes, after it, are for all others."""

    def __init__(self, repository: ArmpyModelRepository, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)  # Any: Starlette's
        self._repository = repository

    def matches(self, scope: Any) -> Any:  # Any: Starlette's
        match, child = super().matches(scope)
        if match is Match.FULL and self._repository.is_foreign(child["path_params"]["name"]):
            return Match.NONE, {}
        return match, child


class _Routes:
    """Endpoints over a repository's models."""

    def __init__(self, repository: ArmpyModelRepository) -> None:
        self._repository = repository

    async def infer(self, request: Request) -> Response:
        try:
            model = self._repository.served_model(request.path_params["name"])
            with model.place():
                asked = await _read(request, model.metrics)
                run = asyncio.create_task(model.infer_in_place(asked))
                served, outputs = await _while_connected(request, run)
            return await _written(served, asked, outputs)
        except HTTPException:  # the body is too long, or compressed
            raise
        except ClientDisconnect:
            return Response(status_code=499)
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            return Response(status_code=499)  # the run was stopped, as its client has gone
        except Exception as error:  # noqa: BLE001 - the client gets it
            return error_response(error)

    async def metadata(self, request: Request) -> Response:
        """Answer with a model's metadata, quantisation among them."""
        try:
            model = self._repository.served_model(request.path_params["name"])
            return JSONResponse(model.served.metadata)
        except ArmpyError as error:
            return error_response(error)

    async def ready(self, request: Request) -> Response:
        """Answer whether a model can answer, or with the reason why not."""
        name = request.path_params["name"]
        try:
            problem = await self._repository.served_model(name).problem()
            if problem:
                raise ModelUnavailableError(problem, where=f"model '{name}'")
        except ArmpyError as error:
            return error_response(error)
        return JSONResponse({"name": name, "ready": True})

    async def version_1(self, request: Request) -> Response:
        """Refuse requests of version 1, whatever their body: KServe's routes look at that first."""
        name = request.path_params["name"]
        try:
            await _body(request)
            self._repository.served_model(name)
            raise InvalidArgumentError(
                "models of armpy do not speak version 1 of the protocol",
                where=f"model '{name}'",
                expected=f"version 2: POST /v2/models/{name}/infer",
                actual=request.url.path,
                fix='Send {"inputs": [{"name", "datatype", "shape", "data"}]} there; '
                f"GET /v2/models/{name} has names, datatypes and shapes",
            )
        except ClientDisconnect:
            return Response(status_code=499)
        except ArmpyError as error:
            return error_response(error)

    async def no_version(self, request: Request) -> Response:
        """Refuse a version, whatever the body: KServe's routes look at that first."""
        return error_response(version_error(request.path_params["version"]))

    async def index(self, request: Request) -> Response:
        """List the models."""
        try:
            return JSONResponse(self._repository.index())
        except ArmpyError as error:
            return error_response(error)

    async def load(self, request: Request) -> Response:
        """Load a model's file."""
        name = request.path_params["name"]
        try:
            self._repository.check_open()
            body = await _body(request)
            await _apart(len(body), lambda: _check_load(name, body))
            await self._repository.load(name)
        except HTTPException:  # the body is too long, or compressed
            raise
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:  # noqa: BLE001 - the client gets it
            return error_response(error)
        return JSONResponse({"name": name, "load": True})

    async def unload(self, request: Request) -> Response:
        name = request.path_params["name"]
        try:
            self._repository.check_open()
            self._repository.unload(name)
        except ArmpyError as error:
            return error_response(error)
        return JSONResponse({"name": name, "unload": True})


class BodyLimit:
    """Middleware that refuses longer bodies, of every route, before they are in memory."""

    def __init__(self, app: Any, max_bytes: int) -> None:  # Any: ASGI's
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # Any: ASGI's
        """Have the application read no more than it may."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        content_length = next(
            (value for key, value in scope["headers"] if key == b"content-length"), b"0"
        )
        declared, received = int(content_length), 0

        async def read() -> Any:  # Any: ASGI's
            """Part of the body; nothing is read of one that is said to be too long."""
            nonlocal received
            if declared <= self._max_bytes:
                message = await receive()
                received += len(message.get("body", b""))
            if max(declared, received) > self._max_bytes:
                raise HTTPException(
                    413,
                    f"The body is too long: expected at most {self._max_bytes} bytes, "
                    f"got {declared or f'more than {received - 1}'}. Send less at a time, or start "
                    "the server with a larger --max_body_bytes",
                )
            return message

        await self._app(scope, read, send)


async def _read(request: Request, metrics: ModelMetrics) -> InferenceRequest:
    try:
        with metrics.reading():
            body = await _body(request)
            length = json_length(request.headers.get(HEADER))
            return await _apart(len(body), lambda: read_request(body, length))
    except HTTPException:
        metrics.requested("INVALID_ARGUMENT")
        raise


async def _body(request: Request) -> bytes:
    """Return the body of an uncompressed request."""
    encodings = ",".join(request.headers.getlist("Content-Encoding")).lower()
    if {word.strip() for word in encodings.split(",")} - {"", "identity"}:
        raise HTTPException(
            415,
            f"The header Content-Encoding names an unsupported encoding: expected none or "
            f"identity, got {encodings!r}. "
            "Send the body uncompressed",
        )
    body: bytes = await request.body()
    return body


def _check_load(name: str, body: bytes) -> None:
    """Check that a model is to be loaded as its file is: Triton could take another in the body."""
    where = f"load of model '{name}'"
    try:
        document = json.loads(body) if body else {}
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(
            "the body is not JSON", where=where, expected="nothing, or an object", actual=str(error)
        ) from error
    if not isinstance(document, dict):
        raise InvalidArgumentError(
            "the body is not an object",
            where=where,
            expected="nothing, or an object",
            actual=type(document).__name__,
        )
    parameters = document.get("parameters", {})
    if not isinstance(parameters, dict):
        raise InvalidArgumentError(
            "the body's 'parameters' are not an object",
            where=where,
            expected="an object",
            actual=type(parameters).__name__,
        )
    for word in parameters:
        if word == "config" or word.startswith("file:"):
            raise UnimplementedError(
                f"the parameter {word} is Triton's alone",
                where=where,
                fix="Put the file into the folder of models, and load it without the parameter",
            )


async def _written(
    served: ServedModel, request: InferenceRequest, outputs: dict[str, Array]
) -> Response:
    num_bytes = sum(array.nbytes for array in outputs.values())
    body, json_length = await _apart(num_bytes, lambda: served.written(request, outputs))
    if json_length is None:
        return Response(body, media_type="application/json")
    return Response(body, headers={HEADER: str(json_length)}, media_type="application/octet-stream")


async def _apart(num_bytes: int, function: Callable[[], T]) -> T:
    """Call a function, on a thread if there is much to read or write."""
    if num_bytes < LARGE_BYTES:
        return function()
    return await asyncio.get_running_loop().run_in_executor(None, function)


async def _while_connected(request: Request, task: asyncio.Task[T]) -> T:
    """Wait for a run, which is stopped if the client goes away."""
    try:
        done, _ = await asyncio.wait({task}, timeout=_WATCH_AFTER_S)
        if not done:
            gone = asyncio.ensure_future(request.receive())
            await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
            gone.cancel()
    finally:
        task.cancel()  # nothing, if it is done
    return await task
