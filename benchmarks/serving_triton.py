"""Triton for the benchmarks of servers: its models, its clients, its processes."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path

from armpy import Model
from armpy.graph import SubgraphView
from armpy.ops.operation import Array
from armpy_serving.protocol import datatype_of
from armpy_serving.triton import InstanceSettings, TritonExport, TritonOptions, export_model
from armpy_serving.triton.config import config_text, model_config
from benchmarks.common import find_example
from extensions.serving.tests.triton.triton_server import TritonServer

NUMPY = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.weights = np.full((64, 10), 0.01, np.float32)

    def execute(self, requests):
        answers = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", x @ self.weights)]))
        return answers
"""

ONNX_RUNTIME = """
import os
import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        path = os.path.join(args["model_repository"], args["model_version"], "model.onnx")
        self.session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        self.inputs = [one.name for one in self.session.get_inputs()]
        self.outputs = [one.name for one in self.session.get_outputs()]

    def execute(self, requests):
        answers = []
        for request in requests:
            tensors = request.inputs()
            given = {{ours: tensor.as_numpy() for ours, tensor in zip(self.inputs, tensors)}}
            made = self.session.run(self.outputs, given)
            names = {names!r}
            tensors = [pb_utils.Tensor(name, array) for name, array in zip(names, made)]
            answers.append(pb_utils.InferenceResponse(output_tensors=tensors))
        return answers
"""


def add_armpy(repository: Path, name: str, model: Model, instances: int) -> None:
    """Add a model as armpy serves it."""
    settings = InstanceSettings("", {"num_threads": 1})
    options = TritonOptions(name, instances=instances)
    export_model(model, repository, TritonExport(options, settings))


def add_module(repository: Path, name: str, model: Model, instances: int, text: str) -> Path:
    """Add a model that is a module, with the same inputs and outputs; its version's folder."""
    options = TritonOptions(name, instances=instances)
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(text)
    config = config_text(model_config(options, model.inputs, model.outputs))
    (repository / name / "config.pbtxt").write_text(config)
    return folder


def add_onnx_runtime(
    repository: Path, name: str, model: Model, instances: int, file: Path | None
) -> None:
    """Add the same network as ONNX Runtime runs it: a file of its own, or what is exported."""
    names = [spec.name for spec in model.outputs]
    text = ONNX_RUNTIME.format(names=names)
    folder = add_module(repository, name, model, instances, text)
    if file is not None:
        shutil.copyfile(file, folder / "model.onnx")
        return
    find_example()
    from armpy_onnxruntime.export import export_model as exported  # noqa: PLC0415

    graph = model.graph
    (folder / "model.onnx").write_bytes(exported(SubgraphView.of(graph, graph.layers)))


async def _ask(
    address: str,
    name: str,
    inputs: Mapping[str, Array],
    types: Mapping[str, str],
    callers: int,
    seconds: float,
) -> list[float]:
    """Ask again and again from so many tasks; how long each took, in milliseconds."""
    import tritonclient.grpc.aio as client  # noqa: PLC0415

    loop = asyncio.get_running_loop()
    tensors = []
    for key, array in inputs.items():
        tensor = client.InferInput(key, array.shape, types[key])
        tensor.set_data_from_numpy(array)
        tensors.append(tensor)
    took: list[float] = []
    async with client.InferenceServerClient(address) as grpc:
        await grpc.infer(name, tensors)
        until = loop.time() + seconds

        async def ask() -> None:
            while (begin := loop.time()) < until:
                await grpc.infer(name, tensors)
                took.append((loop.time() - begin) * 1e3)

        await asyncio.gather(*(ask() for _ in range(callers)))
    return took


def ask(
    server: TritonServer,
    name: str,
    model: Model,
    inputs: Mapping[str, Array],
    callers: int,
    seconds: float,
) -> list[float]:
    """Ask a model from so many callers; milliseconds of each answer."""
    types = {spec.name: datatype_of(spec.data_type) for spec in model.inputs}
    return asyncio.run(_ask(server.grpc, name, inputs, types, callers, seconds))
