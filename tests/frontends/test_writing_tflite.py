"""Graphs written as .tflite files give the same results in armpy and in LiteRT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import tflite

import armpy
from armpy import (
    DataType,
    Model,
    Network,
    Runtime,
    RuntimeOptions,
    TensorInfo,
    UnimplementedError,
    ops,
)
from armpy.core.flatbuffers.writer import FlatTable, write_flatbuffer
from armpy.frontends.tflite.reader import TFLITE_SCHEMA
from armpy.frontends.tflite_writer.tflite import Extras, read_extras, tflite_bytes, write_tflite
from armpy.graph import Graph
from armpy_testing.litert_oracle import run_litert

FLOATS = DataType.FLOAT32
CPU = ["CpuRef"]
Floats = npt.NDArray[np.float32]


def run(graph: Graph, array: Floats) -> Floats:
    with Model(graph, Runtime(RuntimeOptions(backends=CPU))) as model:
        (output,) = model.run({model.inputs[0].name: array}).values()
        return output


def read_back(graph: Graph, array: Floats) -> Floats:
    with armpy.load(tflite_bytes(graph), backends=CPU) as model:
        (output,) = model.run({model.inputs[0].name: array}).values()
        return output


IMAGE: Floats = np.random.default_rng(9).uniform(0, 1, (1, 8, 8, 3)).astype(np.float32)


def many_operations() -> Graph:
    """One layer of each operation with attributes that TFLite has as tensors or options."""
    generator = np.random.default_rng(4)
    net = Network()
    x = net.input("image", TensorInfo((1, 8, 8, 3), FLOATS))
    filters = net.constant(generator.normal(0, 1, (1, 3, 3, 6)).astype(np.float32))
    x = net.add(ops.DepthwiseConvolution2d((2, 2), padding=((0, 1), (2, 0))), x, filters)
    upward = net.constant(generator.normal(0, 1, (4, 2, 2, 6)).astype(np.float32))
    x = net.add(ops.TransposeConvolution2d((2, 2)), x, upward)
    x = net.add(ops.Pooling2d(pool_size=(3, 3), stride=(2, 2), padding=((1, 1), (1, 1))), x)
    x = net.add(ops.Pad(((0, 0), (1, 0), (0, 2), (0, 0))), x)
    x = net.add(ops.Resize((6, 6), ops.ResizeMethod.BILINEAR, half_pixel_centers=True), x)
    x = net.add(ops.Transpose((0, 2, 1, 3)), x)
    x = net.add(ops.StridedSlice((0, 1, 0, 0), (1, 5, 6, 4), (1, 2, 1, 1)), x)
    x = net.add(ops.Activation(ops.ActivationFunction.LEAKY_RELU, 0.25), x)
    first, second = net.add_layer(ops.Splitter(2, 3), [x]).outputs
    x = net.add(ops.Stack(1), first, second)
    x = net.add(ops.Reshape((1, 4, 6, 2)), x)
    x = net.add(ops.SpaceToDepth(2), x)
    x = net.add(ops.Reduce(ops.ReduceOperation.MAX, (2,), keep_dims=True), x)
    x = net.add(ops.Slice((0, 1, 0, 2), (1, 1, 1, 5)), x)
    x = net.add(ops.Squeeze((1,)), x)
    x = net.add(ops.ExpandDims(1), x)
    net.output("y", net.add(ops.Tile((1, 1, 1, 2)), x))
    return net.build()


def test_attributes_become_tensors_and_options() -> None:
    graph = many_operations()
    expected = run(graph, IMAGE)
    np.testing.assert_array_equal(read_back(graph, IMAGE), expected)
    np.testing.assert_allclose(
        run_litert(tflite_bytes(graph), [IMAGE])[0], expected, rtol=1e-5, atol=1e-6
    )


def test_what_the_format_does_not_have_is_refused_by_the_layers_name() -> None:
    net = Network()
    x = net.input("x", TensorInfo((4,), FLOATS))
    net.output("y", net.add(ops.ElementwiseUnary(ops.UnaryOperation.ERF), x, name="bell"))
    with pytest.raises(UnimplementedError, match=r"'bell'.*no operator ERF"):
        tflite_bytes(net.build())


def test_a_layer_that_is_not_written_is_not_said_to_be_missing_in_the_format() -> None:
    """TFLite has CUMSUM, which armpy reads and does not write."""
    net = Network()
    x = net.input("x", TensorInfo((4,), FLOATS))
    net.output("y", net.add(ops.Cumulate(axis=0), x, name="sums"))
    text = r"'sums': armpy writes no \.tflite operator for it\. Write a compiled model: NAME\.armpy"
    with pytest.raises(UnimplementedError, match=text):
        tflite_bytes(net.build())


def test_state_is_refused() -> None:
    net = Network()
    x = net.input("x", TensorInfo((4,), FLOATS))
    total_before = net.variable("kept", TensorInfo((4,), FLOATS))
    total = net.add(ops.ElementwiseBinary(), x, total_before)
    net.assign(total_before, total)
    net.output("y", total)
    with pytest.raises(UnimplementedError, match=r"'kept'.*keeps state"):
        tflite_bytes(net.build())


def test_the_schemas_own_code_reads_what_is_written() -> None:
    content = write_flatbuffer(
        FlatTable(
            "Model",
            {
                "Version": 3,
                "Description": "äöü",
                "Buffers": [
                    FlatTable("Buffer", {}),
                    FlatTable("Buffer", {"Data": bytes(range(5))}),
                ],
                "OperatorCodes": [
                    FlatTable("OperatorCode", {"DeprecatedBuiltinCode": 9, "BuiltinCode": 9})
                ],
            },
        ),
        b"TFL3",
        TFLITE_SCHEMA,
    )
    assert tflite.Model.ModelBufferHasIdentifier(content, 0)
    model = tflite.Model.GetRootAs(content, 0)
    assert model.Version() == 3
    assert model.Description().decode() == "äöü"
    assert model.BuffersLength() == 2
    assert bytes(model.Buffers(1).DataAsNumpy()) == bytes(range(5))
    assert content.index(bytes(range(5))) % 16 == 0
    code = model.OperatorCodes(0)
    assert (code.BuiltinCode(), code.DeprecatedBuiltinCode(), code.Version()) == (9, 9, 1)


def test_names_that_are_taken_get_a_number() -> None:
    net = Network()
    x = net.input("same", TensorInfo((1,), FLOATS))
    y = net.add(ops.ElementwiseBinary(), x, x, name="same")
    net.output("y", net.add(ops.Cast(), y, output=TensorInfo(None, DataType.SIGNED32)))
    with armpy.load(tflite_bytes(net.build()), backends=CPU) as model:
        assert [spec.name for spec in (*model.inputs, *model.outputs)] == ["same", "y"]


@pytest.mark.parametrize("name", ["with.tflite", "with.onnx", "with"])
def test_metadata_and_labels_of_the_original_go_along(tmp_path: Path, name: str) -> None:
    net = Network()
    x = net.input("x", TensorInfo((None, 2), FLOATS))
    net.output("y", net.add(ops.ElementwiseBinary(), x, x))
    extras = Extras({"TFLITE_METADATA": b"described"}, {"labels.txt": b"cat\ndog\n"})
    write_tflite(net.build(), tmp_path / name, extras=extras)
    assert read_extras(tmp_path / name) == extras
