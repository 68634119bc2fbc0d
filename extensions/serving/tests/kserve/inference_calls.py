"""Inferences over HTTP (JSON, bytes) and gRPC (typed, raw), written by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy_serving.protocol import dtype_of
from armpy_serving.protocol_kit.answers import check_error, checked_answer, checked_message

from .kserve_server import HEADER, KServeProcess

Arrays = Mapping[str, npt.NDArray[np.generic]]

FIELDS = {
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    "BOOL": "bool_contents",
    "INT64": "int64_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
}
NAMES: dict[np.dtype[Any], str] = {  # Any: dtypes of all kinds
    np.dtype(dtype_of(name)): name for name in (*FIELDS, "FP16")
}


class CallError(Exception):
    """The server's refusal of a call."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


def by_json(server: KServeProcess, model: str, arrays: Arrays) -> Arrays:
    """Call with numbers in JSON."""
    inputs = [entry | {"data": array.ravel().tolist()} for entry, array in _entries(arrays)]
    return _post(server, model, json.dumps({"inputs": inputs}).encode(), {})


def by_bytes(server: KServeProcess, model: str, arrays: Arrays) -> Arrays:
    """Call with bytes after the JSON, for outputs as bytes."""
    inputs = [
        entry | {"parameters": {"binary_data_size": array.nbytes}}
        for entry, array in _entries(arrays)
    ]
    head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    body = b"".join([head, *(array.tobytes() for array in arrays.values())])
    return _post(server, model, body, {HEADER: str(len(head))})


def grpc_modules() -> SimpleNamespace:
    """gRPC, and the classes that KServe's wheel has generated."""
    import grpc
    from kserve.protocol.grpc import grpc_predict_v2_pb2, grpc_predict_v2_pb2_grpc

    return SimpleNamespace(
        grpc=grpc, pb=grpc_predict_v2_pb2, stub=grpc_predict_v2_pb2_grpc.GRPCInferenceServiceStub
    )


def message(model: str, arrays: Arrays, *, raw: bool, **fields: Any) -> Any:
    """A request of gRPC."""  # Any: generated classes
    request = grpc_modules().pb.ModelInferRequest(model_name=model, **fields)
    for entry, array in _entries(arrays):
        tensor = request.inputs.add(**entry)
        if raw:
            request.raw_input_contents.append(array.tobytes())
        else:
            getattr(tensor.contents, FIELDS[entry["datatype"]]).extend(array.ravel().tolist())
    return request


def send(address: str, request: Any, timeout_s: float = 60) -> Arrays:
    """Send a request over gRPC; its outputs."""  # Any: generated classes
    modules = grpc_modules()
    with modules.grpc.insecure_channel(address) as channel:
        try:
            answer = modules.stub(channel).ModelInfer(request, timeout=timeout_s)
        except modules.grpc.RpcError as error:
            raise CallError(error.code().name, error.details()) from error
    assert answer.model_name == request.model_name
    assert answer.id == request.id
    return checked_message(answer)


def by_raw(server: KServeProcess, model: str, arrays: Arrays) -> Arrays:
    """Call over gRPC with bytes."""
    return send(server.grpc_address, message(model, arrays, raw=True))


def by_typed(server: KServeProcess, model: str, arrays: Arrays) -> Arrays:
    """Call over gRPC with typed contents."""
    return send(server.grpc_address, message(model, arrays, raw=False))


WAYS: Mapping[str, Callable[[KServeProcess, str, Arrays], Arrays]] = {
    "JSON": by_json,
    "bytes": by_bytes,
    "raw": by_raw,
    "typed": by_typed,
}


def _entries(arrays: Arrays) -> list[tuple[dict[str, Any], npt.NDArray[np.generic]]]:
    """Names, datatypes and shapes of inputs, and their arrays."""  # Any: JSON
    return [
        ({"name": name, "datatype": NAMES[array.dtype], "shape": [*array.shape]}, array)
        for name, array in arrays.items()
    ]


def _post(server: KServeProcess, model: str, body: bytes, headers: dict[str, str]) -> Arrays:
    """Send a body; its outputs."""
    status, headers_sent, answer = server.send("POST", f"/v2/models/{model}/infer", body, headers)
    if status != 200:
        raise CallError(str(status), check_error(status, answer))
    return checked_answer(answer, headers_sent.get(HEADER.lower()))
