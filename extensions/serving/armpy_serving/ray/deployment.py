"""Ray Serve: models as deployments that speak the Open Inference Protocol over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from typing import Any

from ray import serve
from starlette.responses import Response

from armpy.errors import InvalidArgumentError, ModelNotFoundError
from armpy.ops.operation import Array
from armpy_serving.cluster_resources import resource_name
from armpy_serving.metrics import ModelMetrics
from armpy_serving.ray.served_replica import ServedReplica
from armpy_serving.requests import HEADER, json_length, version_error
from armpy_serving.status import status_of, text_of

READY_WAIT_S = 0.5
"""Time that a request for readiness waits for a trial of the model."""


class ModelDeployment:
    """A replica of a deployment: one model that can be replaced, and others by their ids.

    Parameters
    ----------
    name : str
        The model's name in the protocol.
    others : mapping of str to str
        Paths of models that are loaded when they are asked for.
    arguments : mapping of str to object
        Arguments of every `ServedReplica`.
    """

    def __init__(
        self,
        name: str,
        path: str,
        others: Mapping[str, str],
        arguments: Mapping[str, Any],
    ) -> None:
        self._name = name
        self._others = others
        self._arguments = arguments
        self._current = self._made(path, name)
        # A loop holds weak references to its tasks; these have no other reference.
        self._closing: set[asyncio.Future[None]] = set()

    def _made(self, path: str, name: str, metrics: ModelMetrics | None = None) -> ServedReplica:
        return ServedReplica(path, name, metrics=metrics, **self._arguments)

    async def reconfigure(self, user_config: Mapping[str, Any]) -> None:
        """Put another model in the place of this one: ``{"model": path}``.

        Notes
        -----
        The new one is loaded beside requests, and takes over between two of them. The old one ends
        when all that it was given is answered.

        Raises
        ------
        InvalidArgumentError, ArmpyError
            If that is not what is said, or as `armpy.load`; the old one goes on.
        """
        path = user_config.get("model")
        if not isinstance(path, str):
            raise InvalidArgumentError(
                "there is no model to go on with",
                where="user_config",
                expected="{'model': path}",
                actual=repr(dict(user_config)),
            )
        metrics = self._current.served.metrics
        replacement = await asyncio.to_thread(self._made, path, self._name, metrics)
        old, self._current = self._current, replacement
        closing = asyncio.ensure_future(asyncio.to_thread(old.close))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def check_health(self) -> None:
        """Check that the model answers; Serve starts another replica if this raises."""
        await self._current.check()

    async def infer(self, inputs: Mapping[str, Array], model: str = "") -> dict[str, Array]:
        """Answer a call by a handle; errors are raised as they are."""
        replica = await self._replica(model or serve.get_multiplexed_model_id())
        return await replica.run(inputs)

    async def __call__(self, request: Any) -> Response:  # Any: Starlette's, which is not typed here
        """Answer a request of the Open Inference Protocol, be it with an error."""
        try:
            return await self._answer(request)
        except Exception as error:  # noqa: BLE001 - the client gets it
            document = json.dumps({"error": text_of(error)})
            return Response(document, status_of(error).http, media_type="application/json")

    async def _answer(self, request: Any) -> Response:  # Any: as above
        """Answer a request; errors as armpy has them."""
        name, asked_for = _route(request.scope)
        methods = _METHODS[asked_for]
        if request.method not in methods:
            verbs = ", ".join(methods)
            text = json.dumps({"error": f"{request.method} is not for this path, but {verbs}"})
            return Response(text, 405, {"Allow": verbs}, "application/json")
        if asked_for == "health":
            return Response(status_code=200)
        body = await request.body()
        replica = await self._replica(name or serve.get_multiplexed_model_id())
        if asked_for == "ready":
            await replica.check(READY_WAIT_S)
            return Response("{}", media_type="application/json")
        if request.method == "GET":
            return Response(json.dumps(replica.served.metadata), media_type="application/json")
        asked = replica.served.read(body, json_length(request.headers.get(HEADER)))
        results = await replica.run(asked.inputs, asked)
        content, size = replica.served.written(asked, results)
        headers = {} if size is None else {HEADER: str(size)}
        kind = "application/json" if size is None else "application/octet-stream"
        return Response(content, headers=headers, media_type=kind)

    async def _replica(self, name: str) -> ServedReplica:
        """The model of a name; the deployment's own for none."""
        if name in ("", self._name):
            return self._current
        if name not in self._others:
            raise ModelNotFoundError(
                "unknown model",
                where=f"model '{name}'",
                expected=", ".join([self._name, *self._others]),
            )
        opened: ServedReplica = await self._open(name)  # type: ignore[attr-defined]  # see below
        return opened


_METHODS = {
    "any": ("GET", "POST"),
    "health": ("GET",),
    "metadata": ("GET",),
    "ready": ("GET",),
    "infer": ("POST",),
}
"""Methods of HTTP, by the kind of path."""


def _route(scope: Mapping[str, Any]) -> tuple[str, str]:  # Any: as ASGI has it
    """The model of a path, empty for none, and the kind of path."""
    path = str(scope["path"])
    match path.removeprefix(str(scope.get("root_path", "")).rstrip("/")).strip("/").split("/"):
        case [""]:  # by the header alone
            return "", "any"
        case ["v2", "health", "live"]:
            return "", "health"
        case ["v2", "health", "ready"]:
            return "", "ready"
        case ["v2", "models", name] if name:
            return name, "metadata"
        case ["v2", "models", name, "ready" | "infer" as asked_for] if name:
            return name, asked_for
        case ["v2", "models", name, "versions", version, *_] if name:
            raise version_error(version)
    raise ModelNotFoundError(
        "there is nothing at this path",
        where=path,
        expected="/v2/models/NAME, /v2/models/NAME/ready or /v2/models/NAME/infer",
    )


async def _open(self: ModelDeployment, name: str) -> ServedReplica:
    """Load one of the other models."""
    return await asyncio.to_thread(self._made, self._others[name], name)


def deployment(
    model: str | os.PathLike[str],
    device: str | None = None,
    *,
    name: str = "model",
    models: Mapping[str, str | os.PathLike[str]] | None = None,
    max_models: int = 3,
    max_batch: int = 8,
    max_wait_ms: float = 2.0,
    num_cpus: float = 1,
    options: Mapping[str, Any] | None = None,
    **of_serve: Any,  # Any: as `ray.serve.deployment` takes them
) -> Any:  # Any: an application, which is not typed here
    """A model as an application of Ray Serve.

    Parameters
    ----------
    model : path
        On every node, as replicas outlive the program that has started them, and with it whatever
        it has put into Ray's store.
    device : str, optional
        A backend, as for `armpy_serving.ray.predictor`.
    name : str
        Name of the deployment, and of the model in the Open Inference Protocol.
    models : mapping of str to path, optional
        Others, by their ids: loaded when they are asked for, by the path of the request or the
        header ``serve_multiplexed_model_id``, by which Serve finds a replica that has it already.
    max_models : int
        Number of models that a replica keeps.
    max_batch, max_wait_ms
        Limits of the `Batcher` for requests of few rows; ``max_batch=1`` runs requests directly.
    num_cpus : float
        Processors of each replica, and threads of its model.
    options : mapping of str to object, optional
        Options of `armpy.load`.
    **of_serve
        Arguments of `ray.serve.deployment`: ``num_replicas``, ``autoscaling_config``,
        ``user_config`` (``{"model": path}`` replaces the model), ``max_ongoing_requests``, and so
        on.

    Raises
    ------
    InvalidArgumentError
        If a model is not a path.

    Notes
    -----
    Errors are answered with the status of `armpy_serving.status_of`: 400 for those the client can
    mend, 503 for what may pass, 504 for a deadline.

    Examples
    --------
    >>> serve.run(armpy_serving.ray.deployment("model.tflite", num_replicas=2))  # doctest: +SKIP
    """
    chosen: dict[str, Any] = {"num_threads": max(1, int(num_cpus)), **(options or {})}
    actor: dict[str, Any] = {"num_cpus": num_cpus, **of_serve.pop("ray_actor_options", {})}
    if device is not None:
        chosen = {"backends": [device], "on_fallback": "error", **chosen}
        actor["resources"] = {resource_name(device): 1, **actor.get("resources", {})}
    arguments = {"max_batch": max_batch, "max_wait_ms": max_wait_ms, "options": chosen}
    opens = serve.multiplexed(max_num_models_per_replica=max_models)(_open)
    # Made here, as Serve has the number of models in the method itself, and finds it by its name.
    replica = type("ModelDeployment", (ModelDeployment,), {_open.__name__: opens})
    others = {other: _path(path) for other, path in (models or {}).items()}
    deployed = serve.deployment(replica, name=name, ray_actor_options=actor, **of_serve)
    return deployed.bind(name, _path(model), others, arguments)


def _path(model: object) -> str:
    """A path that replicas find in whatever directory they work."""
    if isinstance(model, str | os.PathLike):
        return os.path.abspath(os.fsdecode(model))
    raise InvalidArgumentError(
        "replicas read the model again whenever one is started",
        where="deployment",
        expected="a path that leads to it on every node",
        actual=type(model).__name__,
    )
