"""Messages of gRPC: requests out of them, and answers into them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kserve.protocol.grpc import grpc_predict_v2_pb2 as pb
from kserve.protocol.infer_type import to_http_parameters

from armpy.errors import InvalidArgumentError
from armpy_serving.contents import (
    RAW_ONLY,
    Array,
    array_of_bytes,
    array_of_contents,
    bytes_of,
    contents_of,
)
from armpy_serving.requests import InferenceRequest, check_output
from armpy_serving.served_model import ServedModel


def request_of_message(request: Any) -> InferenceRequest:  # Any: a message of gRPC
    """The request that a message of gRPC is.

    Raises
    ------
    InvalidArgumentError
        If its inputs cannot be used.
    UnimplementedError
        If an output is asked for in a way that there is not; see `check_output`.
    """
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
        make, contents = (
            (array_of_bytes, raw[index]) if raw else (array_of_contents, tensor.contents)
        )
        inputs[tensor.name] = make(tensor.name, tensor.datatype, tensor.shape, contents)
    for output in request.outputs:
        check_output(output.name, to_http_parameters(output.parameters))
    return InferenceRequest(
        inputs,
        {tensor.name: tensor.datatype for tensor in request.inputs},
        tuple(output.name for output in request.outputs),
        id=request.id,
        parameters=to_http_parameters(request.parameters),
    )


def answer_of(
    served: ServedModel,
    request: InferenceRequest,
    outputs: Mapping[str, Array],
    *,
    raw: bool,
) -> Any:  # Any: a message of gRPC
    """The message that answers a request.

    Parameters
    ----------
    raw : bool
        Whether outputs are bytes, as they are if the inputs were; they also are if one of them
        has no other form.
    """
    datatypes = served.output_datatypes
    raw = raw or any(datatypes[name] in RAW_ONLY for name in outputs)
    response = pb.ModelInferResponse(id=request.id, model_name=served.name)
    for name, array in outputs.items():
        tensor = response.outputs.add(name=name, datatype=datatypes[name], shape=array.shape)
        if raw:
            response.raw_output_contents.append(bytes_of(array, served.memory_limit_bytes))
        else:
            field, elements = contents_of(datatypes[name], array, served.memory_limit_bytes)
            getattr(tensor.contents, field).extend(elements)
    return response
