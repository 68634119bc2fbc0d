"""Graphs written as .tflite files give the same results when they are read."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from pathlib import Path

import numpy as np
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
from armpy.ops.operation import Operation
from armpy.tensor import Quantization

FLOATS = DataType.FLOAT32
CPU = ["CpuRef"]


def test_every_attribute_is_written_or_refused() -> None:
    kit = pytest.importorskip(
        "armpy_conformance.contract.attribute_cases", reason="armpy-conformance is not installed"
    )
    runtime, num_written = Runtime(RuntimeOptions(backends=CPU)), 0
    for case in chain.from_iterable(kit.attribute_cases().values()):
        graph, feeds = case.graph(), case.feeds()
        with suppress(UnimplementedError):
            content = tflite_bytes(graph)
            with Model(graph, runtime) as model, armpy.load(content, backends=CPU) as reread:
                outputs = zip(model.run(feeds).values(), reread.run(feeds).values(), strict=True)
                for expected, output in outputs:
                    np.testing.assert_array_equal(output, expected, str(case))
            num_written += 1
    assert num_written > 200


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (ops.ElementwiseUnary(ops.UnaryOperation.ERF), "no operator ERF"),
        (ops.L2Normalization(epsilon=0.5), "epsilon is 0.5, and .tflite has only 1e-12"),
        (ops.LogSoftmax(2.0), "beta is 2.0, and .tflite has only 1.0"),
        (
            ops.Cumulate(axis=0),  # TFLite has CUMSUM, which armpy reads
            r"armpy writes no \.tflite operator for it\. Write a compiled model: NAME\.armpy",
        ),
        (ops.Reduce(ops.ReduceOperation.PROD, zero_absorbs=True), "zero_absorbs is True"),
    ],
)
def test_what_the_format_does_not_have_is_refused_by_the_layers_name(
    operation: Operation, text: str
) -> None:
    net = Network()
    x = net.input("x", TensorInfo((4,), FLOATS))
    net.output("y", net.add(operation, x, name="bell"))
    with pytest.raises(UnimplementedError, match=f"'bell'.*{text}"):
        tflite_bytes(net.build())


def test_scales_that_the_formats_operator_ignores_are_refused() -> None:
    net = Network()
    fine, coarse = (
        TensorInfo((4,), DataType.QASYMM_S8, Quantization.per_tensor(step)) for step in (0.25, 0.5)
    )
    operation = ops.ElementwiseBinary(ops.BinaryOperation.MAXIMUM)
    x, y = net.input("x", fine), net.input("y", coarse)
    net.output("z", net.add_layer(operation, [x, y], name="bell", outputs=[fine]).outputs[0])
    with pytest.raises(UnimplementedError, match=r"'bell'.*MAXIMUM of \.tflite ignores"):
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
