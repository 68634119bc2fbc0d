"""Messages of the protocol's gRPC calls, made here: generated modules of two packages collide.

References
----------
Open Inference Protocol, version 2: ``open_inference_grpc.proto``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "inference.GRPCInferenceService"
"""Full name of the service, the same of all servers."""

_TENSOR = "name:string=1 datatype:string=2 shape:int64*=3"

# Fields as NAME:TYPE=NUMBER, with * for repeated ones. Parameters are left out.
_MESSAGES = {
    "ServerLiveRequest": "",
    "ServerLiveResponse": "live:bool=1",
    "ServerReadyRequest": "",
    "ServerReadyResponse": "ready:bool=1",
    "ModelReadyRequest": "name:string=1 version:string=2",
    "ModelReadyResponse": "ready:bool=1",
    "ServerMetadataRequest": "",
    "ServerMetadataResponse": "name:string=1 version:string=2 extensions:string*=3",
    "ModelMetadataRequest": "name:string=1 version:string=2",
    "TensorMetadata": _TENSOR,
    "ModelMetadataResponse": "name:string=1 versions:string*=2 platform:string=3 "
    "inputs:TensorMetadata*=4 outputs:TensorMetadata*=5",
    "InferTensorContents": "bool_contents:bool*=1 int_contents:int32*=2 int64_contents:int64*=3 "
    "uint_contents:uint32*=4 uint64_contents:uint64*=5 fp32_contents:float*=6 "
    "fp64_contents:double*=7 bytes_contents:bytes*=8",
    "InferInputTensor": f"{_TENSOR} contents:InferTensorContents=5",
    "InferRequestedOutputTensor": "name:string=1",
    "InferOutputTensor": f"{_TENSOR} contents:InferTensorContents=5",
    "ModelInferRequest": "model_name:string=1 model_version:string=2 id:string=3 "
    "inputs:InferInputTensor*=5 outputs:InferRequestedOutputTensor*=6 raw_input_contents:bytes*=7",
    "ModelInferResponse": "model_name:string=1 model_version:string=2 id:string=3 "
    "outputs:InferOutputTensor*=5 raw_output_contents:bytes*=6",
}


@cache
def message_classes() -> dict[str, Any]:
    """Classes of all messages, by name, of a pool of their own."""  # Any: protobuf's
    file = descriptor_pb2.FileDescriptorProto(
        name="armpy_protocol_kit.proto", package="inference", syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields.split():
            field, _, rest = text.partition(":")
            kind, _, number = rest.partition("=")
            _add_field(message, field, kind, int(number))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"inference.{name}"))
        for name in _MESSAGES
    }


def _add_field(message: Any, name: str, kind: str, number: int) -> None:  # Any: protobuf's
    """Add a field to a message's description."""
    kinds = descriptor_pb2.FieldDescriptorProto
    is_repeated, kind = kind.endswith("*"), kind.rstrip("*")
    field = message.field.add(
        name=name,
        number=number,
        label=kinds.LABEL_REPEATED if is_repeated else kinds.LABEL_OPTIONAL,
    )
    if kind in _MESSAGES:
        field.type, field.type_name = kinds.TYPE_MESSAGE, f".inference.{kind}"
    else:
        field.type = kinds.Type.Value(f"TYPE_{kind.upper()}")
