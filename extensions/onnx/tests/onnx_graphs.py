"""Writes ONNX graphs of several nodes, by the names of their tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper


class GraphWriter:
    """Collects nodes and constants of a graph.

    Parameters
    ----------
    seed : int
        Of the random weights.
    """

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def constant(self, values: object) -> str:
        """Add a constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def input(self, name: str, *shape: object, element_type: int = TensorProto.FLOAT) -> str:
        """Add an input."""
        self.inputs.append(helper.make_tensor_value_info(name, element_type, shape))
        return name

    def output(self, value: str, name: str, *shape: object) -> None:
        """Add an output of floats, a copy of a tensor."""
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node of one output."""
        return self.several(kind, inputs, 1, **attributes)[0]

    def several(
        self, kind: str, inputs: Sequence[str], count: int, domain: str = "", **attributes: Any
    ) -> list[str]:
        """Add a node of several outputs."""
        names = [f"n{len(self.nodes)}_{number}" for number in range(count)]
        node = helper.make_node(kind, inputs, names, names[0], domain=domain, **attributes)
        self.nodes.append(node)
        return names

    def model(self, opset: int = 20) -> ModelProto:
        """Make the model."""
        graph = helper.make_graph(self.nodes, "graph", self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)
