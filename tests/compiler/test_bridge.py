"""Copies between memories, inferred shapes, metadata and dumps."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

import armpy
from armpy import DataType, ModelMetadata, OptimizerOptions, TensorInfo, ops
from armpy.compiler import optimize_graph
from armpy.compiler.files.plain import PlainReader, plain
from armpy.errors import LayerValidationError, ParserError
from armpy.execution import NetworkProperties
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import BinaryOperation, ElementwiseBinary, Transpose
from armpy_testing.backends.device_memory import BufferDevice
from armpy_testing.backends.fake_backends import OwnMemoryBackend, runtime_of
from armpy_testing.models.networks import ADD, RELU, chain, f32, floats, i32
from tests.support.passes import run

CPU = ReferenceBackend()


def test_nothing_is_copied_between_backends_that_share_host_memory() -> None:
    graph = chain()
    network = optimize_graph(graph, [CPU])
    assert network.graph is graph
    assert network.placement.num_copies == 0


def test_state_outputs_and_constants_cross_memories() -> None:
    net = Network()
    x = net.input("x", f32(2))
    state = net.variable("v", f32(2))
    total = net.add(ADD, x, state)
    net.assign(state, total)
    net.output("total", total)
    net.output("again", total)
    net.output("half", net.add(RELU, total))
    net.output("x", x)
    net.output("one", net.constant(floats(1)))
    model = Model(net, runtime_of(OwnMemoryBackend("Npu", {ElementwiseBinary})))
    for factor in (1, 2, 3):
        total_now, again, half, same, ones = model(floats(1, 2))
        for array in (total_now, again, half):
            np.testing.assert_array_equal(array, [factor, 2 * factor])
        np.testing.assert_array_equal(same, [1, 2])
        np.testing.assert_array_equal(ones, [1])


# Networks whose shapes have to be known when they are loaded


VALIDATE = OptimizerOptions(shape_inference="validate_only")


def test_open_dimensions_of_inputs_are_refused() -> None:
    with pytest.raises(LayerValidationError, match=r"input 'x'.*is not known.*got \(\?, 3\)"):
        run(chain(1, (None, 3)), {}, options=VALIDATE)


def test_shapes_that_depend_on_values_are_refused_with_their_layer() -> None:
    net = Network()
    shape = net.input("shape", i32(2))
    net.output("y", net.add(RELU, net.add(ops.Reshape(), net.input("x", f32(6)), shape, name="r")))
    with pytest.raises(LayerValidationError, match=r"Reshape .r.: the shape of .r. is not known"):
        run(net, {}, options=VALIDATE)


# Metadata as plain records


def test_a_list_in_the_place_of_metadata_by_name_is_refused() -> None:
    record = {**json.loads(json.dumps(plain(ModelMetadata()))), "outputs": ["probability"]}
    with pytest.raises(ParserError, match="outputs"):
        PlainReader().read(ModelMetadata, record, "metadata")


# Graph dumps: what a graph is at each stage of optimisation, for Graphviz


def network() -> Network:
    """``y = transpose(transpose(x)) + x``, of which the transposes cancel."""
    net = Network()
    x = net.input("x", TensorInfo((2, 3), DataType.FLOAT32))
    turned = net.add(Transpose((1, 0)), net.add(Transpose((1, 0)), x, name="one"), name="two")
    total = net.add(ElementwiseBinary(), turned, x, name="sum")
    net.output("y", net.add(ElementwiseBinary(BinaryOperation.MUL), total, x, name="product"))
    return net


def stages(folder: Path) -> dict[str, str]:
    """What was drawn, by stage, in order."""
    paths = sorted(folder.glob("*.dot"))
    return {path.stem.split("-", 2)[2]: path.read_text(encoding="utf-8") for path in paths}


def run_dumped(options: OptimizerOptions | None = None) -> None:
    with runtime_of(BufferDevice("Adder", [BinaryOperation.ADD])) as runtime:
        properties = NetworkProperties(optimizer=options)
        model = armpy.Model(network(), runtime, properties=properties)
        model.run({"x": np.ones((2, 3), np.float32)})


def test_each_stage_of_optimisation_is_drawn(tmp_path: Path) -> None:
    run_dumped(OptimizerOptions(dump_graphs=str(tmp_path / "new" / "folder")))
    dots = stages(tmp_path / "new" / "folder")
    assert [*dots] == ["loaded", "pass_cancel_transposes", "assigned", "substituted", "bridged"]
    assert all(text.startswith("digraph") for text in dots.values())
    assert "Transpose" in dots["loaded"]
    assert "Transpose" not in dots["pass_cancel_transposes"]
    assert "BackendID" not in dots["loaded"]
    assert "BackendID : Adder" in dots["assigned"]
    assert "BackendID : CpuRef" in dots["assigned"]
    assert "MemCopy" not in dots["substituted"]
    assert "MemCopy" in dots["bridged"]


def test_what_is_optimised_apart_is_drawn(tmp_path: Path) -> None:
    armpy.optimize(network(), options=OptimizerOptions(dump_graphs=str(tmp_path)))
    assert "loaded" in stages(tmp_path)
    assert "bridged" in stages(tmp_path)


def test_a_folder_that_cannot_be_written_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("here")
    with caplog.at_level(logging.WARNING, logger="armpy.compiler"):
        run_dumped(OptimizerOptions(dump_graphs=str(file)))
    (record,) = caplog.records  # of several graphs
    text = record.getMessage()
    assert text.startswith("OptimizerOptions.dump_graphs: the graph is not written down: ")
    assert text.endswith(". Name a folder that can be written")
    assert file.read_text() == "here"
    monkeypatch.setenv("ARMPY_DUMP_GRAPHS", str(file / "inner"))
    with caplog.at_level(logging.WARNING, logger="armpy.compiler"):
        run_dumped()
    assert caplog.records[1].getMessage().startswith("ARMPY_DUMP_GRAPHS: ")
    assert len(caplog.records) == 2
