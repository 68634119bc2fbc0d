"""Requests to a KServe server: armpy beside NumPy and ONNX Runtime in the same server, in turns.

python -m lab.benchmarks.serving_kserve                    # what a request takes of the processor
python -m lab.benchmarks.serving_kserve MODEL.tflite ...   # 32 clients, beside ONNX Runtime

It needs the extra ``kserve``; the second form the extra ``bench`` as well, and
``backends/onnxruntime``, which writes .onnx files of floats.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

import grpc
import kserve
import numpy as np
import onnxruntime
from kserve.protocol.grpc import grpc_predict_v2_pb2 as pb
from kserve.protocol.grpc import grpc_predict_v2_pb2_grpc as stubs

import armpy
from armpy import DataType, Model, Network, TensorInfo, ops
from armpy_serving.kserve import ArmpyModelRepository, ArmpyModelServer
from extensions.serving.tests.kserve.kserve_server import HEADER, free_ports
from lab.benchmarks.peers import exported

HOST = "127.0.0.1"
CLIENTS = 32
WAYS = ("gRPC", "HTTP")


class NumpyModel(kserve.Model):
    """A product with a matrix, as one would write it for KServe."""

    def __init__(self) -> None:
        super().__init__("numpy")
        self.weights = np.full((64, 10), 0.01, np.float32)
        self.ready = True

    def predict(self, payload: Any, headers: Any = None) -> Any:  # Any: KServe's
        """Answer a request."""
        return answer(payload, {"scores": payload.inputs[0].as_numpy() @ self.weights})


class OnnxModel(kserve.Model):
    """A session of ONNX Runtime, as one would write it for KServe."""

    def __init__(self, name: str, path: Path) -> None:
        super().__init__(name)
        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.names = [output.name for output in self.session.get_outputs()]
        self.ready = True

    def predict(self, payload: Any, headers: Any = None) -> Any:  # Any: KServe's
        """Answer a request."""
        arrays = {tensor.name: tensor.as_numpy() for tensor in payload.inputs}
        outputs = self.session.run(None, arrays)
        return answer(payload, dict(zip(self.names, outputs, strict=True)))


def answer(payload: Any, outputs: dict[str, Any]) -> Any:  # Any: KServe's
    """An answer of KServe's with arrays."""
    outputs_sent = []
    for name, array in outputs.items():
        output_sent = kserve.InferOutput(name, [*array.shape], "FP32")
        output_sent.set_data_from_numpy(array, binary_data=payload.use_binary_outputs)
        outputs_sent.append(output_sent)
    return kserve.InferResponse(
        payload.id or "",
        payload.model_name,
        outputs_sent,
        use_binary_outputs=payload.use_binary_outputs,
        requested_outputs=payload.request_outputs,
    )


def serve(folder: Path, http_port: int, grpc_port: int) -> None:
    """Serve a folder's models, and ONNX Runtime's where there is an .onnx file beside them."""
    repository = ArmpyModelRepository(folder / "armpy")
    repository.load_models()
    others = [OnnxModel(f"onnx_{path.stem}", path) for path in (folder / "onnx").glob("*.onnx")]
    server = ArmpyModelServer(
        repository,
        HOST,
        http_port=http_port,
        grpc_port=grpc_port,
        enable_latency_logging=False,
    )
    server.start([NumpyModel(), *others])


def tiny_model() -> Model:
    """The product that `NumpyModel` computes."""
    net = Network("tiny")
    value = net.input("x", TensorInfo((None, 64), DataType.FLOAT32), default_shape=(1, 64))
    weights = net.constant(np.full((10, 64), 0.01, np.float32))
    net.output("scores", net.add(ops.FullyConnected(), value, weights))
    return Model(net)


def cpu_s(pid: int) -> float:
    """Processor time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def grpc_request(name: str, arrays: dict[str, Any]) -> Any:  # Any: arrays, messages
    """A request with bytes."""
    request = pb.ModelInferRequest(model_name=name)
    for key, array in arrays.items():
        request.inputs.add(name=key, datatype=datatype(array), shape=array.shape)
        request.raw_input_contents.append(array.tobytes())
    return request


def datatype(array: Any) -> str:  # Any: an array
    """What the protocol calls an array's elements."""
    return {"float32": "FP32", "int32": "INT32", "int64": "INT64"}[array.dtype.name]


def http_request(name: str, arrays: dict[str, Any]) -> bytes:  # Any: arrays
    """A whole request of HTTP, with bytes and for bytes."""
    data = kserve.InferRequest(
        name,
        [kserve.InferInput(key, [*array.shape], datatype(array)) for key, array in arrays.items()],
        parameters={"binary_data_output": True},
    )
    for tensor, array in zip(data.inputs, arrays.values(), strict=True):
        tensor.set_data_from_numpy(array, binary_data=True)
    body, length = data.to_rest()
    head = (
        f"POST /v2/models/{name}/infer HTTP/1.1\r\nHost: x\r\n{HEADER}: {length}\r\n"
        f"Content-Type: application/octet-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + bytes(body)


async def load_grpc(port: int, request: Any, number: int, clients: int) -> list[float]:
    """Send requests over gRPC; how long each took, in seconds."""  # Any: a message
    async with grpc.aio.insecure_channel(f"{HOST}:{port}") as channel:
        stub = stubs.GRPCInferenceServiceStub(channel)

        async def client() -> list[float]:
            return [await _timed(stub.ModelInfer(request)) for _ in range(number // clients)]

        return [*chain(*await asyncio.gather(*(client() for _ in range(clients))))]


async def load_http(port: int, request: bytes, number: int, clients: int) -> list[float]:
    """Send requests over HTTP; how long each took, in seconds."""

    async def client() -> list[float]:
        reader, writer = await asyncio.open_connection(HOST, port)
        try:
            return [await _timed(exchange(reader, writer)) for _ in range(number // clients)]
        finally:
            writer.close()

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if not head.startswith(b"http/1.1 200"):
            raise RuntimeError(head.decode())
        if b"\r\ntransfer-encoding: chunked" not in head:
            await reader.readexactly(int(head.split(b"\r\ncontent-length: ")[1].split()[0]))
            return
        while length := int(await reader.readline(), 16):
            await reader.readexactly(length + 2)
        await reader.readexactly(2)

    return [*chain(*await asyncio.gather(*(client() for _ in range(clients))))]


async def _timed(waiting: Any) -> float:  # Any: something to await
    """How long something takes, in seconds."""
    begin_s = time.perf_counter()
    await waiting
    return time.perf_counter() - begin_s


def measure(
    pid: int, ports: Sequence[int], way: str, name: str, arrays: Any, number: int, clients: int
) -> tuple[float, float, float]:
    """Milliseconds of the server's processor time per request, requests per second, p99 in ms."""
    http_port, grpc_port = ports  # Any: arrays
    loading = (
        load_http(http_port, http_request(name, arrays), number, clients)
        if way == "HTTP"
        else load_grpc(grpc_port, grpc_request(name, arrays), number, clients)
    )
    before_s, begin_s = cpu_s(pid), time.perf_counter()
    times = asyncio.run(loading)
    wall_s = time.perf_counter() - begin_s
    p99_ms = float(np.percentile(times, 99)) * 1e3
    return (cpu_s(pid) - before_s) / len(times) * 1e3, len(times) / wall_s, p99_ms


def compare(
    pid: int,
    ports: Sequence[int],
    ways: Sequence[str],
    pairs: Any,  # Any: arrays
    number: int,
    clients: int,
    rounds: int,
) -> None:
    """Print medians of both sides of each pair, which are measured in turns."""
    for way in ways:
        for mine, other in pairs:
            turns_of: dict[str, list[tuple[float, float, float]]] = {mine[0]: [], other[0]: []}
            for turn in range(rounds + 1):
                for name, arrays in (mine, other) if turn % 2 else (other, mine):
                    measured_turn = measure(pid, ports, way, name, arrays, number, clients)
                    if turn:  # the first warms up
                        turns_of[name].append(measured_turn)
            ratios = [a[1] / b[1] for a, b in zip(*turns_of.values(), strict=True)]
            for name, turns in turns_of.items():
                cpu, rate, p99 = (median(column) for column in zip(*turns, strict=True))
                print(f"{way}  {name:36} {cpu:8.3f} ms CPU  {rate:8.1f}/s  p99 {p99:8.2f} ms")
            print(
                f"{way}  throughput {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--requests", type=int, default=1600)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(Path(options.serve[0]), int(options.serve[1]), int(options.serve[2]))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pairs = prepare(folder, options.models)
        ports = free_ports(2)
        command = [sys.executable, "-W", "ignore", "-m", "lab.benchmarks.serving_kserve", "--serve"]
        with (
            (folder / "log").open("wb") as log,
            subprocess.Popen([*command, name, *map(str, ports)], stdout=log, stderr=log) as process,
        ):
            try:
                wait_for(ports[1], folder / "log")
                clients = [CLIENTS] if options.models else [1, CLIENTS]
                for number in clients:
                    print(f"{number} clients")
                    compare(
                        process.pid,
                        ports,
                        options.ways,
                        pairs,
                        options.requests,
                        number,
                        options.rounds,
                    )
            finally:
                process.terminate()


def prepare(folder: Path, models: Sequence[Path]) -> Any:
    """Put files in place; pairs of names and arrays of what is compared."""  # Any: arrays
    (folder / "armpy").mkdir()
    (folder / "onnx").mkdir()
    with tiny_model() as tiny:
        tiny.save(folder / "armpy" / "tiny.armpy")
        tiny.save(folder / "armpy" / "unused.armpy")  # one alone would have another name
    if not models:
        x = {"x": np.ones((1, 64), np.float32)}
        return [(("tiny", x), ("numpy", x))]
    pairs = []
    for path in models:
        (folder / "armpy" / path.name).symlink_to(path.resolve())
        with armpy.load(path) as model:
            arrays = {
                spec.name: np.ones(
                    [1 if n is None else n for n in spec.shape or ()], spec.data_type.dtype
                )
                for spec in model.inputs
            }
        written = folder / "onnx" / f"{path.stem}.onnx"
        is_onnx = path.suffix == ".onnx"
        written.write_bytes(path.read_bytes() if is_onnx else exported(path, [*arrays.values()]))
        session = onnxruntime.InferenceSession(written, providers=["CPUExecutionProvider"])
        names = [tensor.name for tensor in session.get_inputs()]  # in armpy's order
        theirs = dict(zip(names, arrays.values(), strict=True))
        pairs.append(((path.stem, arrays), (f"onnx_{path.stem}", theirs)))
    return pairs


def wait_for(port: int, log: Path) -> None:
    """Wait until the server is ready."""
    with grpc.insecure_channel(f"{HOST}:{port}") as channel:
        try:
            grpc.channel_ready_future(channel).result(120)
        except grpc.FutureTimeoutError:
            raise RuntimeError(log.read_text()) from None
    time.sleep(1)  # HTTP comes a moment later


if __name__ == "__main__":
    main()
