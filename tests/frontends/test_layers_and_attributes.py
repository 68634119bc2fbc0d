"""What a TFLite model's operators are when they reach a backend: layers_and_attributes.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.backend import ILayerSupport, PreparationRequest, ReasonCode, Support
from armpy.execution import Runtime, RuntimeOptions
from armpy.model import Model
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    Convolution2d,
    ElementwiseBinary,
    FullyConnected,
    FusedActivation,
    Pad,
    Quantize,
    Reduce,
    Reshape,
    Transpose,
)
from armpy.ops.operation import OperandInfos, Operation
from armpy.plugins import BackendRegistry
from armpy.tensor import TensorInfo
from armpy_testing.models.tflite_writer import Tensor, TfliteModel
from tests.support.tflite_files import network_of


class Named:
    """A model of one subgraph whose tensors go by their names."""

    def __init__(self) -> None:
        self.model = TfliteModel()
        self._graph = self.model.subgraph("main")
        self._tensors: dict[str | None, Tensor | None] = {None: None}

    def tensor(self, name: str, shape: Sequence[int], kind: str = "FLOAT32", **more: Any) -> None:
        self._tensors[name] = self._graph.tensor(name, shape, kind, **more)

    def operator(
        self, code: str, inputs: Sequence[str | None], output: str, **options: Any
    ) -> None:
        written = self._tensors[output]
        assert written is not None
        self._graph.operator(
            code, [self._tensors[name] for name in inputs], [written], options or None
        )

    def edge(self, inputs: Sequence[str], output: str) -> Named:
        named = [self._tensors[name] for name in (*inputs, output)]
        tensors = [tensor for tensor in named if tensor is not None]
        self._graph.inputs(*tensors[:-1])
        self._graph.outputs(tensors[-1])
        return self


class Asked(ReferenceBackend, ILayerSupport):
    """The reference, which writes down what it is asked about."""

    def get_id(self) -> str:
        return "Asked"

    def __init__(self, refuses_padding: bool = False) -> None:
        self.layers: dict[Operation, tuple[OperandInfos, Sequence[TensorInfo]]] = {}
        self._refuses_padding = refuses_padding
        self._support = super().get_layer_support(PreparationRequest())

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return self

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        explicit = isinstance(operation, Convolution2d) and isinstance(operation.padding, tuple)
        if explicit and self._refuses_padding:
            return Support.no(ReasonCode.ATTRIBUTE, "explicit padding is not supported")
        self.layers[operation] = inputs, outputs
        return self._support.is_layer_supported(operation, inputs, outputs)


def arriving(model: Named, backend: Asked | None = None) -> tuple[list[Operation], Asked]:
    """The operations of the layers that a backend got, and the backend."""
    backend = backend or Asked()
    registry = BackendRegistry()
    registry.register("Asked", lambda: backend)
    loaded = Model(network_of(model.model.to_bytes()), Runtime(RuntimeOptions(registry=registry)))
    assert loaded.placement is not None
    names = [layer.operation for layer in loaded.placement.layers if layer.backend == "Asked"]
    operations = [o for name in names for o in backend.layers if o.name == name]
    return list(dict.fromkeys(operations)), backend


def image_model(padding: str = "VALID", activation: str = "NONE") -> Named:
    """A convolution of a 4 x 4 image from tensor ``image`` to tensor ``conv``."""
    graph = Named()
    graph.tensor("image", (1, 4, 4, 1))
    graph.tensor("weights", (1, 3, 3, 1), data=np.ones((1, 3, 3, 1), np.float32))
    graph.tensor("bias", (1,), data=[1.0])
    side = 4 if padding == "SAME" else 2
    graph.tensor("conv", (1, side, side, 1))
    options: dict[str, Any] = {
        "padding": padding,
        "stride_w": 1,
        "stride_h": 1,
        "dilation_w_factor": 1,
        "dilation_h_factor": 1,
        "fused_activation_function": activation,
    }
    graph.operator("CONV_2D", ["image", "weights", "bias"], "conv", **options)
    graph.edge(["image"], "conv")
    return graph


@pytest.mark.parametrize(
    ("name", "activation"),
    [
        ("NONE", FusedActivation.NONE),
        ("RELU", FusedActivation.RELU),
        ("RELU_N1_TO_1", FusedActivation.RELU1),
        ("RELU6", FusedActivation.RELU6),
    ],
)
def test_a_fused_activation_is_an_attribute(name: str, activation: FusedActivation) -> None:
    ((operation,), _) = arriving(image_model(activation=name))
    assert operation == Convolution2d(activation=activation)


def test_an_activation_that_the_model_has_as_an_operator_is_a_layer() -> None:
    graph = image_model()
    graph.tensor("y", (1, 2, 2, 1))
    graph.operator("RELU6", ["conv"], "y")
    graph.edge(["image"], "y")
    convolution, activation = arriving(graph)[0]
    assert convolution == Convolution2d()
    assert isinstance(activation, Activation)
    assert activation.function is ActivationFunction.BOUNDED_RELU


@pytest.mark.parametrize("refuses", [False, True])
def test_a_padding_operator_is_an_attribute_where_the_backend_takes_it(refuses: bool) -> None:
    graph = Named()
    graph.tensor("x", (1, 2, 2, 1))
    graph.tensor("pads", (4, 2), "INT32", data=[[0, 0], [0, 2], [0, 2], [0, 0]])
    graph.tensor("padded", (1, 4, 4, 1))
    graph.tensor("weights", (1, 3, 3, 1), data=np.ones((1, 3, 3, 1), np.float32))
    graph.tensor("y", (1, 2, 2, 1))
    graph.operator("PAD", ["x", "pads"], "padded")
    options: dict[str, Any] = {"padding": "VALID", "stride_w": 1, "stride_h": 1}
    graph.operator("CONV_2D", ["padded", "weights", None], "y", **options)
    graph.edge(["x"], "y")
    operations, backend = arriving(graph, Asked(refuses))
    if refuses:
        pads = ((0, 0), (0, 2), (0, 2), (0, 0))
        assert operations == [Pad(pads), Convolution2d()]
    else:
        assert operations == [Convolution2d(padding=((0, 2), (0, 2)))]
    assert len(backend.layers[operations[-1]][0]) == 2  # the bias is left out


def two_tensors(code: str, operand: Sequence[int], shape: Sequence[int], **options: Any) -> Named:
    """An operator whose second operand is a constant."""
    graph = Named()
    graph.tensor("x", (2, 3, 2))
    graph.tensor("operand", (len(operand),), "INT32", data=list(operand))
    graph.tensor("y", tuple(shape))
    graph.operator(code, ["x", "operand"], "y", **options)
    graph.edge(["x"], "y")
    return graph


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (two_tensors("RESHAPE", [3, 4], (3, 4)), Reshape((3, 4))),
        (two_tensors("TRANSPOSE", [2, 1, 0], (2, 3, 2)), Transpose((2, 1, 0))),
        (two_tensors("MEAN", [1, 2], (2, 1, 1), keep_dims=True), (1, 2)),
    ],
    ids=["RESHAPE", "TRANSPOSE", "MEAN"],
)
def test_constant_operands_that_say_how_are_attributes(model: Named, expected: Any) -> None:
    (operation,), backend = arriving(model)
    assert (operation.axes if isinstance(operation, Reduce) else operation) == expected
    assert len([info for info in backend.layers[operation][0] if info is not None]) == 1


def test_broadcasting_is_no_layer() -> None:
    graph = Named()
    graph.tensor("a", (2, 3))
    graph.tensor("b", (3,))
    graph.tensor("y", (2, 3))
    graph.operator("ADD", ["a", "b"], "y", fused_activation_function="RELU")
    graph.edge(["a", "b"], "y")
    (operation,), backend = arriving(graph)
    assert isinstance(operation, ElementwiseBinary)
    assert operation.operation is BinaryOperation.ADD
    assert operation.activation is FusedActivation.RELU
    shapes = [info.shape for info in backend.layers[operation][0] if info is not None]
    assert shapes == [(2, 3), (3,)]


def test_quantisation_is_in_the_tensors_infos_and_its_operators_are_layers() -> None:
    graph = Named()
    graph.tensor("x", (1, 4))
    graph.tensor("q", (1, 4), "INT8", scale=0.5, zero_point=3)
    graph.tensor("weights", (2, 4), "INT8", scale=0.25, zero_point=0, data=np.ones((2, 4), np.int8))
    graph.tensor("y", (1, 2), "INT8", scale=1.0, zero_point=-1)
    graph.operator("QUANTIZE", ["x"], "q")
    graph.operator("FULLY_CONNECTED", ["q", "weights", None], "y")
    graph.edge(["x"], "y")
    operations, backend = arriving(graph)
    assert operations == [Quantize(), FullyConnected()]
    inputs, (output,) = backend.layers[operations[1]]
    assert inputs[0] is not None
    assert inputs[0].quantization is not None
    assert output.quantization is not None
    assert (inputs[0].quantization.scales, output.quantization.scales) == ((0.5,), (1.0,))
