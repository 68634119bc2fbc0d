"""Where two files of one network part."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("armpy_onnx")
pytest.importorskip("onnx")

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper

from armpy_testing.command_line import armpy_command
from armpy_testing.models.tflite_writer import OptionValue, TfliteModel, model_with_input
from armpy_tools.comparison.file_difference import first_file_difference

TEXT = """<ir_version: 9, opset_import: ["" : 18]>
graph (float[1, 3, 5, 4] x) => (float[1, 2, 5, 4] y)
<float[2, 3, 1, 1] w = {1.0, -2.0, 0.5, 0.25, 3.0, 1.5}> {
  [first] a = Conv (x, w)
  [second] b = Relu (a)
  [third] y = Add (b, b)
}"""
LAST = """<ir_version: 9, opset_import: ["" : 18]>
graph (float[1, 5, 4, 3] x) => (float[1, 5, 4, 2] y)
<float[3, 2] w = {1.0, 0.25, -2.0, 3.0, 0.5, 1.5}> {
  [product] a = MatMul (x, w)
  [relu] b = Relu (a)
  [sum] y = Add (b, b)
}"""

DRAW = np.random.default_rng(1)
WEIGHTS = [DRAW.normal(size=(4, 3, 3, channels)).astype(np.float32) for channels in (3, 4, 4)]
"""Of three convolutions of 3 by 3, output channel first, input channel last."""


def _saved(path: Path, text: str) -> str:
    """A file of a model."""
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    return str(path)


def test_files_with_other_layouts_and_layers_are_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        armpy_command(
            ["diff", _saved(tmp_path / "a.onnx", TEXT), _saved(tmp_path / "b.onnx", LAST)]
        )
        == 0
    )
    assert "no difference" in capsys.readouterr().out


def test_the_first_layer_that_differs_between_files_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = LAST.replace("Relu (a)", "Neg (a)")
    assert (
        armpy_command(
            ["diff", _saved(tmp_path / "a.onnx", TEXT), _saved(tmp_path / "b.onnx", other)]
        )
        == 1
    )
    output = capsys.readouterr().out
    assert "difference: layer 'second" in output
    assert "the same: layer 'first" in output
    assert "'product" in output


def test_the_size_of_the_difference_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The largest element of `last` is 1; the other file adds 0.25 to each."""
    text = """<ir_version: 9, opset_import: ["" : 18]>
    graph (float[1, 4] x) => (float[1, 4] y) <float[1] c = {0.25}> { [last] y = Add (x, c) }"""
    paths = (
        _saved(tmp_path / "a.onnx", text.replace("0.25", "0")),
        _saved(tmp_path / "b.onnx", text),
    )
    np.save(tmp_path / "x.npy", np.array([[0.5, -1, 0.25, 0]], np.float32))
    options = ("diff", *paths, f"--input=x={tmp_path / 'x.npy'}")
    assert armpy_command([*options]) == 1
    assert (
        f"difference: layer 'last/ElementwiseBinary', the nearest tensor of '{paths[1]}' "
        "differs by 0.25 of the largest element (allowed: 0.0001)"
    ) in " ".join(capsys.readouterr().out.split())
    assert armpy_command([*options, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["error"], document["tolerance"]) == (0.25, 0.0001)
    assert document["quantized"] is None


def test_a_tensor_that_the_other_file_lacks_has_no_size_of_difference(tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["" : 18]>
    graph (float[1, 4] x) => (float[1, 8] y) { [last] y = Concat <axis = 1> (x, x) }"""
    other = text.replace("float[1, 8] y", "float[1, 4] y").replace(
        "Concat <axis = 1> (x, x)", "Neg (x)"
    )
    paths = _saved(tmp_path / "a.onnx", text), _saved(tmp_path / "b.onnx", other)
    assert first_file_difference(*paths).error is None


def test_a_quantised_file_beside_a_float_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = []
    for name in ("float", "int8"):
        model, graph, x = model_with_input((1, 4))
        y = graph.tensor("y", (1, 4))
        if name == "int8":
            inner = [graph.tensor(n, (1, 4), "INT8", scale=0.1) for n in ("q", "r")]
            graph.operator("QUANTIZE", [x], [inner[0]], {})
            graph.operator("ABS", [inner[0]], [inner[1]], {})
            graph.operator("DEQUANTIZE", [inner[1]], [y], {})
        else:
            graph.operator("ABS", [x], [y], {})
        graph.outputs(y)
        paths.append(str(tmp_path / f"{name}.tflite"))
        Path(paths[-1]).write_bytes(model.to_bytes())
    assert armpy_command(["diff", *paths]) == 1
    output = " ".join(capsys.readouterr().out.split())
    assert f"'{paths[1]}' is quantised, and the other file is not, or less" in output
    assert f": armpy report {paths[1]} --float-model {paths[0]}" in output
    assert first_file_difference(*reversed(paths)).quantized == paths[1]


SUBTRACTION = """<ir_version: 9, opset_import: ["" : 18]>
graph (float[n, 3] a, float[n, 3] b) => (float[n, 3] y) { [less] y = Sub (a, b) }"""


@pytest.mark.parametrize(
    ("inputs", "is_same"),
    [
        ("float[n, 3] b, float[n, 3] a", True),
        ("float[n, 3] a, float[n, 3] c", False),  # other names: the same by order, a - b is not 0
    ],
)
def test_inputs_of_the_same_names_are_the_same_in_any_order(
    tmp_path: Path, inputs: str, is_same: bool
) -> None:
    other = SUBTRACTION.replace("float[n, 3] a, float[n, 3] b", inputs)
    if not is_same:
        other = other.replace("(a, b)", "(c, a)")
    paths = _saved(tmp_path / "a.onnx", SUBTRACTION), _saved(tmp_path / "b.onnx", other)
    assert first_file_difference(*paths).is_same is is_same


def test_files_are_compared_on_arrays_that_are_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a is b, a - b is b - a; the shape is that of the arrays."""
    other = SUBTRACTION.replace("Sub (a, b)", "Sub (b, a)")
    paths = _saved(tmp_path / "a.onnx", SUBTRACTION), _saved(tmp_path / "b.onnx", other)
    np.save(tmp_path / "x.npy", np.ones((4, 3), np.float32))
    options = [f"--input={name}={tmp_path / 'x.npy'}" for name in "ab"]
    assert armpy_command(["diff", *paths, *options]) == 0
    assert armpy_command(["diff", *paths, options[0]]) != 0
    assert armpy_command(["diff", *paths, options[0], f"--input=c={tmp_path / 'x.npy'}"]) == 2
    assert "no such input" in capsys.readouterr().err


def _onnx_pair(path: Path, layer: int | None = None) -> str:
    """Three convolutions with a sum after them as PyTorch writes them; one weight may be wrong."""
    nodes, constants, name = [], [], "x"
    for number, weights in enumerate(WEIGHTS):
        kernel = weights.transpose(0, 3, 1, 2).copy()
        if number == layer:
            kernel[1, 2, 1, 1] += 1
        constants.append(numpy_helper.from_array(kernel, f"w{number}"))
        conv = {"pads": [1, 1, 1, 1], "name": f"conv{number}"}
        nodes.append(helper.make_node("Conv", [name, f"w{number}"], [f"c{number}"], **conv))
        name = f"r{number}"
        nodes.append(helper.make_node("Relu", [f"c{number}"], [name], name=f"relu{number}"))
    nodes.append(helper.make_node("Add", ["r0", "r2"], ["y"], name="sum"))
    edges = [
        helper.make_tensor_value_info(edge, TensorProto.FLOAT, [1, channels, 6, 5])
        for edge, channels in (("x", 3), ("y", 4))
    ]
    graph = helper.make_graph(nodes, "pair", edges[:1], edges[1:], constants)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return str(path)


def _tflite_pair(path: Path, order: tuple[int, ...] = (0, 1, 2, 3)) -> str:
    """The same as TensorFlow Lite writes it: fused, channels last; outputs in an order."""
    model = TfliteModel()
    graph = model.subgraph()
    inputs = value = graph.tensor("x", (1, 6, 5, 3))
    tensors = []
    for number, weights in enumerate(WEIGHTS):
        kernel = graph.tensor(f"w{number}", weights.shape, data=weights)
        bias = graph.tensor(f"b{number}", (4,), data=np.zeros(4, np.float32))
        tensors.append(graph.tensor(f"fused{number}", (1, 6, 5, 4)))
        options: Mapping[str, OptionValue] = {
            "stride_w": 1,
            "stride_h": 1,
            "fused_activation_function": "RELU",
        }
        graph.operator("CONV_2D", [value, kernel, bias], [tensors[-1]], options)
        value = tensors[-1]
    total, last = graph.tensor("total", (1, 6, 5, 4)), graph.tensor("y", (1, 6, 5, 4))
    graph.operator("ADD", [tensors[0], tensors[2]], [total], {})
    axis = graph.tensor("order", (4,), "INT32", data=order)
    graph.operator("GATHER", [total, axis], [last], {"axis": 3})
    graph.inputs(inputs)
    graph.outputs(last)
    path.write_bytes(model.to_bytes())
    return str(path)


def test_a_wrong_weight_is_named_between_files_of_two_formats(tmp_path: Path) -> None:
    right, lite = _onnx_pair(tmp_path / "a.onnx"), _tflite_pair(tmp_path / "a.tflite")
    assert first_file_difference(right, lite).is_same
    assert first_file_difference(lite, right).is_same
    wrong = _onnx_pair(tmp_path / "b.onnx", layer=1)
    difference = first_file_difference(wrong, lite)
    assert difference.first == "conv1/Convolution2d"
    assert difference.last_same is not None
    assert difference.last_same[1] == "fused0"
    difference = first_file_difference(lite, wrong)
    assert (difference.first, difference.last_same) == ("fused1", ("fused0", "relu0/Activation"))


def test_outputs_in_another_order_of_channels_differ(tmp_path: Path) -> None:
    files = _onnx_pair(tmp_path / "a.onnx"), _tflite_pair(tmp_path / "a.tflite", (1, 0, 2, 3))
    assert not first_file_difference(*files).is_same
    assert first_file_difference(*reversed(files)).first == "y"
