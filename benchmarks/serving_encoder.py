"""A text encoder of the usual kind as an ONNX file, with random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

LENGTH, WIDTH, HEADS, LAYERS = 128, 256, 4, 4
"""Tokens of a text, numbers of a token, heads, layers: the size that is called mini."""


class _Graph:
    """Nodes and constants, one after the other."""

    def __init__(self, helper: Any, numpy_helper: Any) -> None:  # Any: modules of onnx
        self.helper, self.numpy_helper = helper, numpy_helper
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._random = np.random.default_rng(7)

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        """A constant's name."""
        name = f"c{len(self.constants)}"
        self.constants.append(self.numpy_helper.from_array(array, name))
        return name

    def weights(self, *shape: int) -> str:
        """Random weights, of a size that keeps the numbers in bounds."""
        scale = 1 / np.sqrt(shape[0])
        return self.constant((self._random.normal(size=shape) * scale).astype(np.float32))

    def add(self, kind: str, *inputs: str, **attributes: object) -> str:
        """A node's output."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def dense(self, value: str, rows: int, columns: int) -> str:
        """A product with weights, and a bias."""
        product = self.add("MatMul", value, self.weights(rows, columns))
        return self.add("Add", product, self.constant(np.zeros(columns, np.float32)))

    def normalised(self, value: str) -> str:
        """Layer normalisation."""
        ones, zeros = np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)
        scale, offset = self.constant(ones), self.constant(zeros)
        return self.add("LayerNormalization", value, scale, offset, axis=-1)

    def heads(self, value: str, *order: int) -> str:
        """A value by heads."""
        shape = self.constant(np.array([1, LENGTH, HEADS, WIDTH // HEADS], np.int64))
        split = self.add("Reshape", self.dense(value, WIDTH, WIDTH), shape)
        return self.add("Transpose", split, perm=list(order))

    def layer(self, value: str) -> str:
        """Attention, then two dense layers, each with a way around it."""
        query, key = self.heads(value, 0, 2, 1, 3), self.heads(value, 0, 2, 3, 1)
        scale = self.constant(np.array(1 / np.sqrt(WIDTH // HEADS), np.float32))
        scores = self.add("Mul", self.add("MatMul", query, key), scale)
        seen = self.add(
            "MatMul", self.add("Softmax", scores, axis=-1), self.heads(value, 0, 2, 1, 3)
        )
        joined = self.add("Transpose", seen, perm=[0, 2, 1, 3])
        whole = self.constant(np.array([1, LENGTH, WIDTH], np.int64))
        attended = self.dense(self.add("Reshape", joined, whole), WIDTH, WIDTH)
        value = self.normalised(self.add("Add", value, attended))
        inner = self.add("Relu", self.dense(value, WIDTH, 4 * WIDTH))
        return self.normalised(self.add("Add", value, self.dense(inner, 4 * WIDTH, WIDTH)))


def write_encoder(path: Path) -> None:
    """Write the file."""
    from onnx import TensorProto, helper, numpy_helper, save  # noqa: PLC0415

    graph = _Graph(helper, numpy_helper)
    table = graph.weights(1000, WIDTH)
    value = graph.add("Gather", table, "tokens", axis=0)
    for _ in range(LAYERS):
        value = graph.layer(value)
    graph.nodes.append(helper.make_node("Identity", [value], ["states"]))
    graph_proto = helper.make_graph(
        graph.nodes,
        "encoder",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, LENGTH])],
        [helper.make_tensor_value_info("states", TensorProto.FLOAT, [1, LENGTH, WIDTH])],
        graph.constants,
    )
    opsets = [helper.make_opsetid("", 17)]
    save(helper.make_model(graph_proto, opset_imports=opsets, ir_version=8), str(path))
