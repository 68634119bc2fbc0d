"""A MobileNetV2 as an ONNX file has it: channels first, batch normalisation, clips, shortcuts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from armpy_numba_acc import NumbaBackend
from armpy_reference import ReferenceBackend

import armpy
from armpy import OptimizerOptions
from armpy.compiler.optimize import simplified
from armpy.ops import Transpose
from armpy.ops.operation import Array

onnx = pytest.importorskip("onnx", reason="the onnx package is not installed")

BLOCKS = ((8, 8, 1), (8, 12, 2), (12, 12, 1))
"""Channels before and after each block, and its stride."""


class Writer:
    """Nodes and weights of a network in the making."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(5)
        self.nodes: list[object] = []
        self.weights: list[object] = []

    def weight(self, values: Array) -> str:
        """A constant."""
        name = f"w{len(self.weights)}"
        self.weights.append(onnx.numpy_helper.from_array(np.asarray(values, np.float32), name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        """A node of one output, which is its name."""
        name = f"n{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def convolution(self, x: str, before: int, after: int, size: int, stride: int = 1) -> str:
        """A convolution and its batch normalisation; depthwise if it is not pointwise."""
        depth = 1 if size > 1 and before == after else before
        filters = self.random.normal(0, 0.5, (after, depth, size, size))
        y = self.node(
            "Conv", x, self.weight(filters), group=before // depth, strides=[stride] * 2,
            pads=[size // 2] * 4,
        )  # fmt: skip
        statistics = [self.random.uniform(0.5, 1.5, after) for _ in range(4)]
        return self.node("BatchNormalization", y, *map(self.weight, statistics))

    def clipped(self, x: str) -> str:
        """ReLU6."""
        return self.node("Clip", x, self.weight(np.array(0)), self.weight(np.array(6)))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    writer = Writer()
    x = writer.clipped(writer.convolution("x", 3, 8, 3, 2))
    for before, after, stride in BLOCKS:
        wide = 4 * before
        y = writer.clipped(writer.convolution(x, before, wide, 1))
        y = writer.clipped(writer.convolution(y, wide, wide, 3, stride))
        y = writer.convolution(y, wide, after, 1)
        x = writer.node("Add", x, y) if (before, stride) == (after, 1) else y
    x = writer.node("Flatten", writer.node("GlobalAveragePool", x))
    last = writer.weight(writer.random.normal(0, 0.3, (10, 12)))
    x = writer.node("Gemm", x, last, writer.weight(np.arange(10) / 10), transB=1)
    kind = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        writer.nodes,
        "mobilenet",
        [onnx.helper.make_tensor_value_info("x", kind, (1, 3, 32, 32))],
        [onnx.helper.make_tensor_value_info(x, kind, (1, 10))],
        writer.weights,
    )
    opsets = [onnx.helper.make_opsetid("", 17)]
    path = tmp_path_factory.mktemp("mobilenet") / "mobilenet.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backends", [("CpuRef",), ("NumbaAcc", "CpuRef")], ids=lambda n: n[0])
def test_it_agrees_with_the_reference_evaluator(file: Path, backends: tuple[str, ...]) -> None:
    evaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator(str(file))
    values = np.random.default_rng(1).normal(size=(1, 3, 32, 32)).astype(np.float32)
    (expected,) = evaluator.run(None, {"x": values})
    model = armpy.load(file, backends=list(backends))
    got = np.asarray(model(values))
    assert np.abs(got - expected).max() < 1e-4 * np.abs(expected).max()
    assert model.placement is not None
    assert {str(layer.backend) for layer in model.placement.layers} == {backends[0]}


def test_only_the_image_is_transposed(file: Path) -> None:
    graph = armpy.load(file, backends=["CpuRef"]).graph
    simple = simplified(graph, (NumbaBackend(), ReferenceBackend()), OptimizerOptions())
    turned = [layer["input"] for layer in simple.layers if isinstance(layer.operation, Transpose)]
    assert turned == list(graph.inputs)
