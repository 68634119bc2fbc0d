"""KServe's server with armpy's routes and calls, at an address that can be chosen."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from grpc import ServerCredentials, aio, ssl_server_credentials
from kserve import ModelServer
from kserve.constants.constants import FASTAPI_APP_IMPORT_STRING
from kserve.model_server import args as arguments
from kserve.protocol.rest.multiprocess.server import RESTServerMultiProcess
from kserve.protocol.rest.server import RESTServer
from prometheus_client import REGISTRY

from armpy_serving.kserve.data_plane import ArmpyDataPlane
from armpy_serving.kserve.http import BodyLimit, add_routes
from armpy_serving.kserve.repository import ArmpyModelRepository
from armpy_serving.kserve.rpc import ArmpyServicer, make_server
from armpy_serving.prometheus import PrometheusCollector

LOOPBACK = "127.0.0.1"
_LOOPBACKS = (LOOPBACK, "::1", "localhost")


class ArmpyRESTServer(RESTServer):
    """KServe's server of HTTP, with armpy's routes before its own.

    Parameters
    ----------
    logs_requests : bool
        Whether to log each request, and its time.
    max_body_bytes : int
        Maximum size of a request's body.
    arguments, options
        KServe's.
    """

    def __init__(
        self,
        repository: ArmpyModelRepository,
        host: str,
        logs_requests: bool,
        max_body_bytes: int,
        *arguments: Any,  # Any: KServe's
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.config.host = host  # KServe's is 0.0.0.0, whatever one asks for
        self.config.access_log = logs_requests
        self._repository = repository
        self._max_body_bytes = max_body_bytes

    def _add_middlewares(self, app: FastAPI) -> None:
        """Limit bodies, and add KServe's, which measure and log, if that is asked for."""
        if self.config.access_log or self.access_log_format:
            super()._add_middlewares(app)
        app.add_middleware(BodyLimit, max_bytes=self._max_body_bytes)

    def _register_endpoints(self, app: FastAPI) -> None:
        """Register KServe's endpoints, and armpy's; worker processes do so as well."""
        super()._register_endpoints(app)
        add_routes(app, self._repository)
        REGISTRY.register(PrometheusCollector())


class ArmpyModelServer(ModelServer):
    """KServe's server for models of armpy.

    Parameters
    ----------
    repository : ArmpyModelRepository
        Repository with its models loaded.
    host : str
        Where to listen; the loopback if nothing is said.
    max_message_bytes : (int, int)
        The longest messages of gRPC that are sent, and received.
    max_body_bytes : int
        The longest body of a request by HTTP.
    repository_api : bool, optional
        Whether clients may load and unload models; if not given, those of the loopback may.
    options
        KServe's: ``http_port``, ``grpc_port``, ``workers`` and so on.

    Notes
    -----
    Of several workers, each has a copy of every model, and the first process another, for gRPC.
    """

    def __init__(
        self,
        repository: ArmpyModelRepository,
        host: str = LOOPBACK,
        max_message_bytes: tuple[int, int] = (8 << 20, 8 << 20),
        *,
        max_body_bytes: int = 256 << 20,
        repository_api: bool | None = None,
        **options: Any,  # Any: KServe's
    ) -> None:
        super().__init__(registered_models=repository, **options)
        self.host = host
        self.dataplane = ArmpyDataPlane(repository)
        self._max_message_bytes = max_message_bytes
        self._max_body_bytes = max_body_bytes
        repository.is_open = host in _LOOPBACKS if repository_api is None else repository_api

    def start(self, models: list[Any] | None = None) -> None:
        """Serve until SIGTERM or SIGINT; what runs then is finished within the grace period.

        Parameters
        ----------
        models : list of kserve.Model, optional
            Others than the repository's.
        """
        for model in models or ():
            self.register_model(model)
        self.dataplane.required = frozenset(self.registered_models.get_models())
        server = self._rest_server = ArmpyRESTServer(
            self.registered_models,
            self.host,
            self.enable_latency_logging,
            self._max_body_bytes,
            FASTAPI_APP_IMPORT_STRING,
            self.dataplane,
            self.model_repository_extension,
            self.http_port,
            access_log_format=self.access_log_format,
            workers=self.workers,
            grace_period=self.grace_period,
            event_loop=self.event_loop,
            timeout_keep_alive=self.timeout_keep_alive,
            ssl_certfile=self.ssl_certfile,
            ssl_keyfile=self.ssl_keyfile,
        )
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        """Serve over both, and end them one after the other."""
        self.setup_event_loop()
        calls = await self._start_calls() if self.enable_grpc else None
        try:
            await self._serve_http()
        finally:
            if calls is not None:
                await calls.stop(self.grace_period)
            for name in list(self.registered_models.get_models()):
                self.registered_models.unload(name)

    async def _start_calls(self) -> aio.Server:
        """Start to listen for calls of gRPC."""
        servicer = ArmpyServicer(
            self.dataplane, self.model_repository_extension, self.registered_models
        )
        host = f"[{self.host}]" if ":" in self.host else self.host
        address = f"{host}:{self.grpc_port}"
        calls = make_server(servicer, address, self._max_message_bytes, self._credentials())
        await calls.start()
        return calls

    def _credentials(self) -> ServerCredentials | None:
        """TLS for gRPC with the files that HTTP has."""
        if not self.ssl_certfile:
            return None
        chain = Path(self.ssl_certfile).read_bytes()
        key = Path(self.ssl_keyfile).read_bytes() if self.ssl_keyfile else chain
        return ssl_server_credentials([(key, chain)])

    async def _serve_http(self) -> None:
        """Serve over HTTP until a signal comes."""
        if self.workers == 1:
            # uvicorn hears signals, and sends itself them again when it is done: those do nothing.
            _on_signals(lambda: None)
            await self._rest_server.start()
            return
        processes = self._rest_multiprocess_server = RESTServerMultiProcess(
            FASTAPI_APP_IMPORT_STRING,
            self.dataplane,
            self.model_repository_extension,
            self.http_port,
            workers=self.workers,
            grace_period=self.grace_period,
            log_config_file=arguments.log_config_file,
        )
        processes._rest_server = self._rest_server
        _on_signals(processes.should_exit.set)
        await processes.start()


def _on_signals(call: Callable[[], None]) -> None:
    """Have the event loop call a function when the process receives SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(call))
