"""A server of the Open Inference Protocol over a served model, without sockets."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from armpy import ArmpyError, DataType, Model, Network, Runtime, RuntimeOptions, TensorInfo, ops
from armpy.errors import InvalidArgumentError, ModelNotFoundError
from armpy_serving import ServedModel, status_of
from armpy_serving.contents import array_of_bytes, array_of_contents, bytes_of, contents_of
from armpy_serving.protocol_kit.target import CallError, HttpAnswer
from armpy_serving.requests import HEADER, json_length

NAME = "two"
ADD = ops.ElementwiseBinary(ops.BinaryOperation.ADD)


def served_two() -> ServedModel:
    """A model with a float and an integer input, and an output of each."""
    net = Network()
    value = net.input("x", TensorInfo((None, 2), DataType.FLOAT32), default_shape=(1, 2))
    net.output("double", net.add(ADD, value, value))
    number = net.input("n", TensorInfo((3,), DataType.SIGNED32))
    net.output("sum", net.add(ADD, number, number))
    return ServedModel(Model(net, Runtime(RuntimeOptions(["CpuRef"]))), NAME)


def served_strings() -> ServedModel:
    """A model that appends a string to others."""
    net = Network()
    words = net.input("words", TensorInfo((None,), DataType.STRING))
    net.output("loud", net.add(ops.StringConcat(), words, net.constant("!")))
    return ServedModel(Model(net, Runtime(RuntimeOptions(["CpuRef"]))), "strings")


class ReferenceServer:
    """Answers requests as the protocol says."""

    def __init__(self, served: ServedModel) -> None:
        self.served = served

    def close(self) -> None:
        """Close the model."""
        self.served.model.close()
        self.served.model.runtime.close()

    def send(
        self, verb: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> HttpAnswer:
        """Answer over HTTP."""
        parts = path.strip("/").split("/")
        if parts[:2] == ["v2", "models"] and parts[2] != self.served.name:
            return _json(404, {"error": f"unknown model '{parts[2]}'"})
        match verb, parts:
            case "GET", ["v2", "health", "live" | "ready"] | ["v2", "models", _, "ready"]:
                return _json(200, {})
            case "GET", ["v2"]:
                extensions = ["binary_tensor_data"]
                return _json(200, {"name": "r", "version": "1", "extensions": extensions})
            case "GET", ["v2", "models", _]:
                return _json(200, self.served.metadata)
            case "POST", ["v2", "models", _, "infer"]:
                return self._infer(body or b"", headers)
        return _json(404, {"error": f"nothing at {path}"})

    def _infer(self, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        try:
            length = json_length(headers.get(HEADER))
        except ArmpyError as error:
            return _json(400, {"error": str(error)})
        status, answer, length = self.served.answer(body, length)
        return HttpAnswer(status, {} if length is None else {HEADER.lower(): str(length)}, answer)

    def call(self, name: str, request: Any) -> Any:
        """Answer a call of gRPC."""
        try:
            return self._called(name, request)
        except ArmpyError as error:
            raise CallError(status_of(error).grpc, str(error)) from error

    def _called(self, name: str, request: Any) -> Any:
        from armpy_serving.protocol_kit.messages import message_classes

        answer = message_classes()[f"{name}Response"]
        asked = getattr(request, "model_name", "") or getattr(request, "name", "")
        if asked not in ("", self.served.name):
            raise ModelNotFoundError("unknown model", actual=asked)
        if name == "ServerLive":
            return answer(live=True)
        if name in ("ServerReady", "ModelReady"):
            return answer(ready=True)
        if name == "ServerMetadata":
            return answer(name="r", version="1")
        if name == "ModelMetadata":
            metadata = self.served.metadata
            return answer(
                name=self.served.name,
                platform=metadata["platform"],
                inputs=metadata["inputs"],
                outputs=metadata["outputs"],
            )
        return self._inferred(request, answer)

    def _inferred(self, request: Any, answer_class: Any) -> Any:
        raws = request.raw_input_contents
        if raws and len(raws) != len(request.inputs):
            raise InvalidArgumentError("there are not as many raw contents as inputs")
        inputs = {}
        for index, tensor in enumerate(request.inputs):
            if tensor.name in inputs:
                raise InvalidArgumentError("an input comes twice")
            if raws and tensor.HasField("contents"):
                raise InvalidArgumentError("there are raw and typed contents")
            make, contents = (
                (array_of_bytes, raws[index]) if raws else (array_of_contents, tensor.contents)
            )
            inputs[tensor.name] = make(tensor.name, tensor.datatype, tensor.shape, contents)
        outputs = self.served.run(
            inputs,
            {tensor.name: tensor.datatype for tensor in request.inputs},
            [output.name for output in request.outputs],
        )
        answer = answer_class(model_name=self.served.name, id=request.id)
        for name, array in outputs.items():
            datatype = self.served.output_datatypes[name]
            tensor = answer.outputs.add(name=name, datatype=datatype, shape=array.shape)
            if raws:
                answer.raw_output_contents.append(bytes_of(array))
            else:
                field, elements = contents_of(datatype, np.asarray(array))
                getattr(tensor.contents, field).extend(elements)
        return answer


def _json(status: int, document: object) -> HttpAnswer:
    return HttpAnswer(status, {}, json.dumps(document).encode())


def listening(send: Callable[..., HttpAnswer]) -> ThreadingHTTPServer:
    """The same behind a socket of the loopback."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def _answer(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(size) if size else None
            answer = send(self.command, self.path, body, dict(self.headers.items()))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_POST = _answer  # noqa: N815 - the library's names

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)
