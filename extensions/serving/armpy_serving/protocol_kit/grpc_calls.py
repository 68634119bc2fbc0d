"""Calls of gRPC to any server."""

from __future__ import annotations

from typing import Any

import grpc

from armpy_serving.protocol_kit.messages import SERVICE, message_classes
from armpy_serving.protocol_kit.target import TIMEOUT_S, Call, CallError


def grpc_caller(address: str) -> Call:
    """Return what makes calls of gRPC to a server, such as ``localhost:8001``."""
    channel = grpc.insecure_channel(address)

    def call(name: str, request: Any) -> Any:  # Any: protobuf's
        answer_class = message_classes()[f"{name}Response"]
        function = channel.unary_unary(
            f"/{SERVICE}/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer_class.FromString,
        )
        try:
            return function(request, timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            raise CallError(error.code().name, error.details()) from error

    return call
