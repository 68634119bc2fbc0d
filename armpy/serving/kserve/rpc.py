"""Calls of gRPC, which take a request's bytes as they are."""

from __future__ import annotations

from typing import Any

from grpc import aio
from kserve.protocol.grpc import grpc_predict_v2_pb2 as pb
from kserve.protocol.grpc.grpc_predict_v2_pb2_grpc import (
    add_GRPCInferenceServiceServicer_to_server as add_servicer,
)
from kserve.protocol.grpc.interceptors import ExceptionToStatusInterceptor
from kserve.protocol.grpc.servicer import InferenceServicer
from kserve.protocol.infer_type import to_http_parameters

from armpy.errors import InvalidArgumentError
from armpy.serving.contents import (
    RAW_ONLY,
    Array,
    array_of_bytes,
    array_of_contents,
    bytes_of,
    contents_of,
)
from armpy.serving.kserve.errors import kserve_error
from armpy.serving.kserve.repository import ArmpyModelRepository
from armpy.serving.protocol import PLATFORM
from armpy.serving.requests import InferenceRequest
from armpy.serving.status import status_of


class ArmpyServicer(InferenceServicer):
    """KServe's calls, with inferences and metadata of armpy's own.

    Parameters
    ----------
    data_plane, extension
        KServe's.
    repository : ArmpyModelRepository

    Notes
    -----
    gRPC cancels a call whose deadline passes, or whose client goes away, and thereby stops the run.
    """

    def __init__(self, data_plane: Any, extension: Any, repository: ArmpyModelRepository) -> None:
        super().__init__(data_plane, extension)  # Any: KServe's
        self._repository = repository

    async def ModelInfer(self, request: Any, context: Any) -> Any:
        """Answer an inference."""  # Any: messages of gRPC
        try:
            model = self._repository.served_model(request.model_name)
            served = model.served
            try:
                asked = _request_of(request)
            except InvalidArgumentError as error:
                served.metrics.requested(status_of(error).grpc)
                raise
            outputs = await model.infer(asked)
            made = _answer(served.output_datatypes, outputs, raw=bool(request.raw_input_contents))
        except Exception as error:
            raise kserve_error(error, is_grpc=True) from error
        made.id, made.model_name = request.id, request.model_name
        return made

    async def ModelMetadata(self, request: Any, context: Any) -> Any:
        """Answer with a model's metadata."""  # Any: messages of gRPC
        try:
            model = self._repository.served_model(request.name)
            inputs, outputs = model.get_input_types(), model.get_output_types()
        except Exception as error:
            raise kserve_error(error, is_grpc=True) from error
        return pb.ModelMetadataResponse(
            name=request.name, platform=PLATFORM, inputs=inputs, outputs=outputs
        )


def make_server(servicer: ArmpyServicer, address: str, max_bytes: tuple[int, int]) -> aio.Server:
    """A server of gRPC that listens at an address, and has not started.

    Parameters
    ----------
    servicer : ArmpyServicer
    address : str
        Host and port.
    max_bytes : (int, int)
        Of messages that are sent, and received.
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
    server.add_insecure_port(address)
    return server


def _request_of(request: Any) -> InferenceRequest:
    """A message's request."""  # Any: a message of gRPC
    raw = request.raw_input_contents
    if raw and len(raw) != len(request.inputs):
        raise InvalidArgumentError(
            "there are not as many raw contents as inputs",
            where="request",
            expected=str(len(request.inputs)),
            actual=str(len(raw)),
        )
    inputs: dict[str, Array] = {}
    for index, tensor in enumerate(request.inputs):
        if tensor.name in inputs:
            raise InvalidArgumentError("an input comes twice", where=f"input '{tensor.name}'")
        if raw and tensor.HasField("contents"):
            raise InvalidArgumentError(
                "there are raw and typed contents", where=f"input '{tensor.name}'"
            )
        make, given = (array_of_bytes, raw[index]) if raw else (array_of_contents, tensor.contents)
        inputs[tensor.name] = make(tensor.name, tensor.datatype, tensor.shape, given)
    return InferenceRequest(
        inputs,
        {tensor.name: tensor.datatype for tensor in request.inputs},
        tuple(output.name for output in request.outputs),
        id=request.id,
        parameters=to_http_parameters(request.parameters),
    )


def _answer(datatypes: dict[str, str], outputs: dict[str, Array], *, raw: bool) -> Any:
    """A message with outputs, as bytes if the inputs were, or if one has no other form."""
    raw = raw or any(datatypes[name] in RAW_ONLY for name in outputs)
    made = pb.ModelInferResponse()  # Any: a message of gRPC
    for name, array in outputs.items():
        tensor = made.outputs.add(name=name, datatype=datatypes[name], shape=array.shape)
        if raw:
            made.raw_output_contents.append(bytes_of(array))
        else:
            field, elements = contents_of(datatypes[name], array)
            getattr(tensor.contents, field).extend(elements)
    return made
