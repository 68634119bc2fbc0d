"""Collects the nodes of an ONNX model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from armpy.graph import Value
from armpy.ops import FusedActivation
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_onnxruntime.engine import require

OPSET = 20
IR_VERSION = 9
"""The version that came with opset 20; ONNX Runtime refuses newer ones than it knows."""

TO_CHANNEL_FIRST = (0, 3, 1, 2)
TO_CHANNEL_LAST = (0, 2, 3, 1)


class ModelWriter:
    """Collects nodes; keeps images with the channels first as long as layers agree to it.

    Notes
    -----
    ONNX convolves images with the channels first, armpy's mostly have them last. Each value
    has its *native* tensor, in armpy's order of axes, or a *channel-first* one, or both:
    a request for the missing one adds a Transpose, once. So a region of
    convolutions, activations and additions is transposed at its edges only.
    """

    def __init__(self) -> None:
        self._onnx = require("onnx", "armpy-onnxruntime")
        self._nodes: list[Any] = []  # Any: the package onnx has no types
        self._inputs: list[Any] = []
        self._weights: dict[str, Array] = {}
        self._native: dict[Value, str] = {}
        self._channel_first: dict[Value, str] = {}

    def add_input(self, value: Value) -> None:
        """Let the model read a value."""
        name = f"in_{len(self._inputs)}"  # by position, so that equal parts are equal models
        self._inputs.append(self._info(name, value.info))
        self._native[value] = name

    def add(self, op_type: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        """Add a node; returns the name of its output."""
        output = output or f"t{len(self._nodes)}"
        node = self._onnx.helper.make_node(op_type, list(inputs), [output], **attributes)
        self._nodes.append(node)
        return output

    def constant(self, array: Array) -> str:
        """Add a constant that the exporter makes."""
        name = f"c{len(self._weights)}"
        self._weights[name] = array
        return name

    def scalar(self, number: float) -> str:
        """Add a float32 scalar."""
        return self.constant(np.array(number, np.float32))

    def native(self, value: Value) -> str:
        """The tensor with armpy's order of axes."""
        if value not in self._native:
            if value.data is not None:
                self._native[value] = self.constant(value.data)
            else:
                source = self._channel_first[value]
                self._native[value] = self.add("Transpose", [source], perm=TO_CHANNEL_LAST)
        return self._native[value]

    def channel_first(self, value: Value) -> str:
        """The tensor of an NHWC image with the channels first.

        Notes
        -----
        A constant of a lower rank gets axes of size 1 in front, as broadcasting would do.
        """
        if value not in self._channel_first:
            if value.data is not None:
                image = value.data.reshape((1,) * (4 - value.data.ndim) + value.data.shape)
                self._channel_first[value] = self.constant(image.transpose(TO_CHANNEL_FIRST))
            else:
                self._channel_first[value] = self.add(
                    "Transpose", [self.native(value)], perm=TO_CHANNEL_FIRST
                )
        return self._channel_first[value]

    def is_channel_first(self, value: Value) -> bool:
        """Whether the tensor of a value is there with its channels first."""
        return value in self._channel_first

    def write(
        self, value: Value, name: str, *, channel_first: bool, activation: FusedActivation
    ) -> None:
        """Say which tensor a layer's output is, after its activation."""
        low, high = activation.bounds
        if high is not None:
            name = self.add("Clip", [name, self.scalar(low or 0.0), self.scalar(high)])
        elif low is not None:
            name = self.add("Relu", [name])
        (self._channel_first if channel_first else self._native)[value] = name

    def finish(self, outputs: Sequence[Value]) -> bytes:
        """The model that writes the given values."""
        names = [f"out_{i}" for i in range(len(outputs))]
        for name, value in zip(names, outputs, strict=True):
            self.add("Identity", [self.native(value)], name)
        helper, numpy_helper = self._onnx.helper, self._onnx.numpy_helper
        graph = helper.make_graph(
            self._nodes,
            "subgraph",
            self._inputs,
            [self._info(name, x.info) for name, x in zip(names, outputs, strict=True)],
            [numpy_helper.from_array(array, name) for name, array in self._weights.items()],
        )
        opset = helper.make_opsetid("", OPSET)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION)
        serialized: bytes = model.SerializeToString()
        return serialized

    def _info(self, name: str, info: TensorInfo) -> Any:  # Any: as above
        """Name, type and shape of an input or output."""
        kind = self._onnx.TensorProto.FLOAT
        return self._onnx.helper.make_tensor_value_info(name, kind, info.known_shape)
