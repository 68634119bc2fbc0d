"""Calls of gRPC, which take a request's bytes as they are."""

from __future__ import annotations

from typing import Any

from grpc import ServerCredentials, aio
from kserve.protocol.grpc import grpc_predict_v2_pb2 as pb
from kserve.protocol.grpc.grpc_predict_v2_pb2_grpc import (
    add_GRPCInferenceServiceServicer_to_server as add_servicer,
)
from kserve.protocol.grpc.interceptors import ExceptionToStatusInterceptor
from kserve.protocol.grpc.servicer import InferenceServicer

from armpy.errors import InvalidArgumentError
from armpy_serving.kserve.errors import kserve_error
from armpy_serving.kserve.messages import answer_of, request_of_message
from armpy_serving.kserve.repository import ArmpyModelRepository
from armpy_serving.protocol import PLATFORM
from armpy_serving.requests import version_error


class ArmpyServicer(InferenceServicer):
    """KServe's calls, with inferences and metadata of armpy's own.

    Parameters
    ----------
    data_plane, extension
        KServe's.

    Notes
    -----
    gRPC cancels a call whose deadline passes, or whose client goes away, and thereby stops the run.
    """

    def __init__(self, data_plane: Any, extension: Any, repository: ArmpyModelRepository) -> None:
        super().__init__(data_plane, extension)  # Any: KServe's
        self._repository = repository

    async def ModelInfer(self, request: Any, context: Any) -> Any:
        """Answer an inference."""  # Any: messages of gRPC
        if self._repository.is_foreign(request.model_name):
            return await super().ModelInfer(request, context)
        try:
            if request.model_version:
                raise version_error(request.model_version)
            model = self._repository.served_model(request.model_name)
            with model.metrics.reading():
                asked = request_of_message(request)
            served, outputs = await model.infer(asked)
            raw = bool(request.raw_input_contents)
            return answer_of(served, asked, outputs, raw=raw)
        except Exception as error:
            raise kserve_error(error, is_grpc=True) from error

    async def ModelReady(self, request: Any, context: Any) -> Any:
        """Return whether a model can answer."""  # Any: messages of gRPC
        if request.version and not self._repository.is_foreign(request.name):
            raise kserve_error(version_error(request.version), is_grpc=True)
        return await super().ModelReady(request, context)

    async def ModelMetadata(self, request: Any, context: Any) -> Any:
        """Answer with a model's metadata."""  # Any: messages of gRPC
        if self._repository.is_foreign(request.name):
            return await super().ModelMetadata(request, context)
        try:
            if request.version:
                raise version_error(request.version)
            model = self._repository.served_model(request.name)
            inputs, outputs = model.get_input_types(), model.get_output_types()
        except Exception as error:
            raise kserve_error(error, is_grpc=True) from error
        return pb.ModelMetadataResponse(
            name=request.name, platform=PLATFORM, inputs=inputs, outputs=outputs
        )

    async def RepositoryModelLoad(self, request: Any, context: Any) -> Any:
        """Load a model's file."""  # Any: messages of gRPC
        try:
            self._repository.check_open()
            _check_named(request.model_name)
            await self._repository.load(request.model_name)
        except Exception as error:
            raise kserve_error(error, is_grpc=True) from error
        return pb.RepositoryModelLoadResponse(model_name=request.model_name, isLoaded=True)

    async def RepositoryModelUnload(self, request: Any, context: Any) -> Any:
        """Unload a model."""  # Any: messages of gRPC
        try:
            self._repository.check_open()
            _check_named(request.model_name)
            self._repository.unload(request.model_name)
        except Exception as error:
            raise kserve_error(error, is_grpc=True) from error
        return pb.RepositoryModelUnloadResponse(model_name=request.model_name, isUnloaded=True)


def _check_named(name: str) -> None:
    """Check that a call names a model."""
    if not name:
        raise InvalidArgumentError(
            "the call names no model",
            where="request",
            expected="model_name in field 1, as KServe's messages have it",
            fix="Triton's client sends it in another field over gRPC: use its client for HTTP",
        )


def make_server(
    servicer: ArmpyServicer,
    address: str,
    max_bytes: tuple[int, int],
    credentials: ServerCredentials | None = None,
) -> aio.Server:
    """A server of gRPC that listens at an address, and has not started.

    Parameters
    ----------
    address : str
        Host and port.
    max_bytes : (int, int)
        Maximum size of messages that are sent, and received.
    credentials : ServerCredentials, optional
        Credentials for TLS; without, nothing is encrypted.
    """
    server = aio.server(
        interceptors=(ExceptionToStatusInterceptor(),),
        options=[
            ("grpc.max_send_message_length", max_bytes[0]),
            ("grpc.max_receive_message_length", max_bytes[1]),
            # Else a second server on the port would silently get a part of the calls.
            ("grpc.so_reuseport", 0),
        ],
    )
    add_servicer(servicer, server)
    if credentials is None:
        server.add_insecure_port(address)
    else:
        server.add_secure_port(address, credentials)
    return server
