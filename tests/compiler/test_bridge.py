"""Copies between memories, inferred shapes, metadata and dumps."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

import armpy
from armpy import DataType, ModelMetadata, OptimizerOptions, TensorInfo, TensorMetadata, ops
from armpy.compiler import OptimizedNetwork, optimize_graph
from armpy.compiler.files.plain import PlainReader, plain
from armpy.errors import InvalidArgumentError, LayerValidationError, ParserError
from armpy.execution import NetworkProperties
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Activation, BinaryOperation, ElementwiseBinary, Reshape, Transpose
from armpy_testing.backends.device_memory import BufferDevice
from armpy_testing.backends.fake_backends import OwnMemoryBackend, runtime_of
from armpy_testing.models.networks import ADD, RELU, chain, diamond, f32, floats, i32, ints
from tests.support.passes import run

CPU = ReferenceBackend()


def steps(network: OptimizedNetwork) -> list[str]:
    """Backend and name of each layer; copies by where they go."""
    return [f"{layer.backend}: {layer.layer}" for layer in network.placement.layers]


def test_nothing_is_copied_between_backends_that_share_host_memory() -> None:
    graph = chain()
    network = optimize_graph(graph, [CPU])
    assert network.graph is graph
    assert network.placement.num_copies == 0


def test_values_are_copied_into_a_backends_own_memory_and_back() -> None:
    network = optimize_graph(chain(2), [OwnMemoryBackend("Npu")])
    assert steps(network) == [
        "Npu: [ x host -> Npu ]",
        "Npu: add_0",
        "Npu: add_1",
        "host: [ add_1 Npu -> host ]",
    ]
    assert network.placement.num_copies == 2


def test_a_value_is_copied_once_however_many_read_it() -> None:
    npu = OwnMemoryBackend("Npu", {ElementwiseBinary})
    network = optimize_graph(diamond(), [npu, CPU])
    assert network.placement.num_copies == 2
    assert [layer.partition for layer in network.placement.layers] == [0, -1, 1, 1, 1, -1]


def test_values_move_between_two_memories_directly() -> None:
    npu = OwnMemoryBackend("Npu", {ElementwiseBinary})
    dsp = OwnMemoryBackend("Dsp")
    network = optimize_graph(diamond(), [npu, dsp])
    assert "Npu: [ top Dsp -> Npu ]" in steps(network)
    x = floats(-1, 0, 2, 5)
    model = Model(diamond(), runtime_of(npu, dsp))
    np.testing.assert_array_equal(model(x), [1, 1, 9, 21])


@pytest.mark.parametrize("operations", [None, {ElementwiseBinary}, {Activation}])
def test_a_network_across_memories_gives_the_same_results(
    operations: set[type] | None,
) -> None:
    model = Model(diamond(), runtime_of(OwnMemoryBackend("Npu", operations)))
    for x in (floats(-1, 0, 2, 5), floats(1, 2, 3, 4)):
        np.testing.assert_array_equal(model(x), Model(diamond(), runtime_of())(x))


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


def test_operands_that_are_left_out_stay_out() -> None:
    from armpy.ops import Convolution2d

    net = Network()
    x = net.input("x", f32(1, 2, 2, 1))
    w = net.constant(np.full((1, 1, 1, 1), 2, np.float32))
    net.output("y", net.add(Convolution2d(), x, w, None))
    model = Model(net, runtime_of(OwnMemoryBackend("Npu")))
    image = np.arange(4, dtype=np.float32).reshape(1, 2, 2, 1)
    np.testing.assert_array_equal(model(image), image * 2)


def test_values_that_decide_on_shapes_cross_memories() -> None:
    net = Network()
    x = net.input("x", f32(2, 3))
    shape = net.add(ADD, net.input("shape", i32(2)), net.constant(ints(1, 1)))
    net.output("y", net.add(RELU, net.add(Reshape(), x, shape)))
    model = Model(net, runtime_of(OwnMemoryBackend("Npu")))
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(model(data, ints(2, 1)), data.reshape(3, 2))
    np.testing.assert_array_equal(model(data, ints(0, 5)), data.reshape(1, 6))


# Networks whose shapes have to be known when they are loaded


VALIDATE = OptimizerOptions(shape_inference="validate_only")


def test_networks_of_known_shapes_run() -> None:
    got = run(chain(2), {"x": floats(1, 2, 3, 4)}, options=VALIDATE)
    np.testing.assert_array_equal(got["y"], floats(3, 4, 5, 6))


def test_open_dimensions_of_inputs_are_refused() -> None:
    with pytest.raises(LayerValidationError, match=r"input 'x'.*is not known.*got \(\?, 3\)"):
        run(chain(1, (None, 3)), {}, options=VALIDATE)


def test_shapes_that_depend_on_values_are_refused_with_their_layer() -> None:
    net = Network()
    shape = net.input("shape", i32(2))
    net.output("y", net.add(RELU, net.add(ops.Reshape(), net.input("x", f32(6)), shape, name="r")))
    with pytest.raises(LayerValidationError, match=r"Reshape .r.: the shape of .r. is not known"):
        run(net, {}, options=VALIDATE)


def test_there_are_two_ways() -> None:
    with pytest.raises(InvalidArgumentError, match=r"shape_inference.*'infer_and_validate' or"):
        OptimizerOptions(shape_inference="guess")


# Metadata as plain records


def test_metadata_of_tensors_are_read_as_they_were_written() -> None:
    tensor = TensorMetadata(description="scores", labels=("cat", "dog"))
    metadata = ModelMetadata(name="pets", outputs={"probability": tensor})
    text = json.dumps(plain(metadata))
    read = PlainReader().read(ModelMetadata, json.loads(text), "metadata")
    assert read == metadata
    assert read.outputs["probability"].labels == ("cat", "dog")


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


def test_each_part_is_written_down_with_inputs_and_answers(tmp_path: Path) -> None:
    run_dumped(OptimizerOptions(dump_graphs=str(tmp_path)))
    (part,) = tmp_path.glob("*-part_Adder.tflite")
    assert not [*tmp_path.glob("*CpuRef*")]
    answers = dict(np.load(part.with_suffix(".npz")))
    expected = answers.pop("output_0")
    np.testing.assert_array_equal(expected, 2 * answers["input_0"])  # x + x, without transposes
    with armpy.load(part) as model:
        np.testing.assert_array_equal(model.run(answers)["output_0"], expected)


def test_the_environment_says_where_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMPY_DUMP_GRAPHS", str(tmp_path))
    run_dumped()
    assert "bridged" in stages(tmp_path)
    other = tmp_path / "other"
    run_dumped(OptimizerOptions(dump_graphs=str(other)))
    assert "bridged" in stages(other)  # the option comes first


def test_what_is_optimised_apart_is_drawn(tmp_path: Path) -> None:
    armpy.optimize(network(), options=OptimizerOptions(dump_graphs=str(tmp_path)))
    assert "loaded" in stages(tmp_path)
    assert "bridged" in stages(tmp_path)


def test_nothing_is_written_unless_it_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ARMPY_DUMP_GRAPHS", raising=False)
    run_dumped()
    assert not [*tmp_path.iterdir()]


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
