from armpy_serving.protocol_kit.grpc_calls import grpc_caller as grpc_caller
from armpy_serving.protocol_kit.grpc_rules import GRPC_RULES as GRPC_RULES

__all__: list[str]
