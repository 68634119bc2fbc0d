"""What surrounds a model: files beside it, names of dimensions, complaints that do not matter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
import onnx.parser

import armpy
from armpy.errors import InvalidArgumentError, LayerValidationError, ParserError
from armpy.plugins.hooks.model_file import ModelFile
from armpy_onnx.external_data import with_data_names
from armpy_onnx.metadata import read_metadata
from armpy_onnx.structures.functions import bound_attributes

HEAD = '<ir_version: 9, opset_import: ["" : 18]>\n'
W = np.random.default_rng(3).standard_normal((5, 3)).astype(np.float32)
X = np.random.default_rng(4).standard_normal((2, 5)).astype(np.float32)


def _product(array: Any = W, **entries: str) -> onnx.ModelProto:
    """A product with weights that lie in another file."""
    text = "graph (float[2, 5] x) => (float[2, 3] y) { y = MatMul (x, w) }"
    model = onnx.parser.parse_model(HEAD + text)
    tensor = onnx.numpy_helper.from_array(array, "w")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": "w.bin", **entries}.items():
        tensor.external_data.add(key=key, value=value)
    model.graph.initializer.add().CopyFrom(tensor)
    return model


def _saved(folder: Path, model: onnx.ModelProto, data: bytes = W.tobytes()) -> Path:
    """A model in a folder, with data beside it."""
    folder.mkdir(exist_ok=True)
    (folder / "w.bin").write_bytes(data)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("offset", [0, 4, 7, 4096])
def test_elements_beside_the_model_are_read_at_their_offset(tmp_path: Path, offset: int) -> None:
    """Whatever it is a multiple of."""
    model = _product(offset=str(offset), length=str(W.nbytes))
    path = _saved(tmp_path / "m", model, bytes(offset) + W.tobytes() + b"more")
    (y,) = armpy.load(path, backends=["CpuRef"]).run({"x": X}).values()
    np.testing.assert_allclose(y, X @ W, rtol=1e-5)


def test_elements_beside_the_model_are_mapped(tmp_path: Path) -> None:
    """The network's constant is a view of the file, not a copy."""
    from armpy.plugins.hooks import ModelFile
    from armpy_onnx.external_data import ExternalData

    path = _saved(tmp_path / "m", _product())
    array, _ = ExternalData(ModelFile(memoryview(b""), str(path), path)).read(
        _product().graph.initializer[0], "w"
    )
    assert not array.flags.owndata
    np.testing.assert_array_equal(array, W)


@pytest.mark.parametrize(
    "location",
    ["../secret.bin", "/etc/passwd", "sub/../../secret.bin", "", ".", "link.bin", "a\0b"],
)
def test_no_path_leaves_the_folder(tmp_path: Path, location: str) -> None:
    """Also not through links, and nothing but regular files is opened."""
    (tmp_path / "secret.bin").write_bytes(W.tobytes())
    path = _saved(tmp_path / "m", _product(location=location))
    (path.parent / "link.bin").symlink_to(tmp_path / "secret.bin")
    with pytest.raises(ParserError, match=r"'w'.*(outside|cannot be read)"):
        armpy.load(path)


def _linked(tmp_path: Path, data: str) -> Path:
    """A link to a model beside a link to data, as in the Hugging Face hub's cache."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "1a"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    (blobs / "11aa").write_bytes(_product().SerializeToString())
    (tmp_path / data).write_bytes(W.tobytes())
    (snapshot / "model.onnx").symlink_to("../../blobs/11aa")
    (snapshot / "w.bin").symlink_to(f"../../{data}")
    return snapshot / "model.onnx"


def test_data_may_lie_beside_the_file_that_the_model_links_to(tmp_path: Path) -> None:
    path = _linked(tmp_path, "blobs/22bb")
    with armpy.load(path, backends=["CpuRef"]) as model:
        np.testing.assert_allclose(model.run({"x": X})["y"], X @ W, rtol=1e-5)


def test_links_of_model_and_data_to_two_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParserError, match=r"'w'.*outside of the model's folder"):
        armpy.load(_linked(tmp_path, "22bb"), backends=["CpuRef"])


@pytest.mark.parametrize("is_path", [False, True])
def test_the_folder_of_external_data_is_an_option(tmp_path: Path, *, is_path: bool) -> None:
    path = _saved(tmp_path / "data", _product())
    moved = path.rename(tmp_path / "model.onnx")
    source = moved if is_path else moved.read_bytes()
    options = {"external_data": str(tmp_path / "data")}
    with armpy.load(source, backends=["CpuRef"], front_end_options=options) as model:
        np.testing.assert_allclose(model.run({"x": X})["y"], X @ W, rtol=1e-5)
        # A reshaped model is read from the file once more.
        with model.reshape({"x": (2, 5)}) as again:
            np.testing.assert_allclose(again.run({"x": X})["y"], X @ W, rtol=1e-5)


def test_the_option_takes_the_place_of_the_models_folder(tmp_path: Path) -> None:
    path = _saved(tmp_path / "m", _product())
    (tmp_path / "empty").mkdir()
    with pytest.raises(ParserError, match=r"'w'.*cannot be read.*'w.bin' in '.*empty'"):
        armpy.load(path, front_end_options={"external_data": str(tmp_path / "empty")})


@pytest.mark.parametrize(
    "location", ["../secret.bin", "/etc/passwd", "sub/../../secret.bin", "", ".", "link.bin"]
)
@pytest.mark.parametrize("is_path", [False, True])
def test_no_path_leaves_the_folder_of_the_option(
    tmp_path: Path, location: str, *, is_path: bool
) -> None:
    (tmp_path / "secret.bin").write_bytes(W.tobytes())
    path = _saved(tmp_path / "m", _product(location=location))
    data = tmp_path / "data"
    data.mkdir()
    (data / "link.bin").symlink_to(tmp_path / "secret.bin")
    source = path if is_path else path.read_bytes()
    with pytest.raises(ParserError, match=r"'w'.*(outside of the folder of|cannot be read)"):
        armpy.load(source, front_end_options={"external_data": str(data)})


def test_a_folder_that_there_is_not_is_named_with_the_option(tmp_path: Path) -> None:
    content = _product().SerializeToString()
    with pytest.raises(
        InvalidArgumentError, match=r"'external_data'.*the folder does not exist.*got '.*gone"
    ):
        armpy.load(content, front_end_options={"external_data": str(tmp_path / "gone")})


def test_data_in_another_folder_cannot_be_renamed_with_the_model(tmp_path: Path) -> None:
    path = _saved(tmp_path / "m", _product())
    file = ModelFile(memoryview(path.read_bytes()), str(path), path)
    data = tmp_path / "data" / "w.bin"
    with pytest.raises(ParserError, match=r"in another folder than the model. Got .*data"):
        with_data_names(file, {data: "model.data.0"})


def test_bytes_without_a_folder_name_the_option() -> None:
    with pytest.raises(ParserError, match=r"not from a file.*option external_data"):
        armpy.load(_product().SerializeToString())


@pytest.mark.parametrize(
    "entries",
    [
        {"offset": "1"},
        {"length": "8"},
        {"length": str(W.nbytes + 1)},
        {"offset": "-4"},
        {"offset": "1e3"},
        {"offset": str(2**62), "length": str(W.nbytes)},
        {"length": "9" * 5000},
    ],
)
def test_sizes_are_checked(tmp_path: Path, entries: dict[str, str]) -> None:
    """Nothing after the end of the file is read."""
    path = _saved(tmp_path / "m", _product(**entries))
    with pytest.raises(ParserError, match="'w'"):
        armpy.load(path)


def _in_places(place: str) -> onnx.ModelProto:
    """A product with weights of another file: of a Constant node, in a branch, in a function."""
    texts = {
        "node": "graph (float[2, 5] x) => (float[2, 3] y) { w = Constant () y = MatMul (x, w) }",
        "branch": """graph (float[2, 5] x, bool k) => (float[2, 3] y) {
          y = If (k) <
            then_branch = then () => (float[2, 3] a) { a = MatMul (x, w) },
            else_branch = else () => (float[2, 3] b) { w = Constant () b = MatMul (x, w) }
          >
        }""",
        "function": """graph (float[2, 5] x) => (float[2, 3] y) { y = own.F (x) }
        <domain: "own", opset_import: ["" : 18]> F (x) => (y) { w = Constant () y = MatMul (x, w) }
        """,
    }
    head = HEAD.replace('"" : 18', '"" : 18, "own" : 1')
    model = onnx.parser.parse_model(head + texts[place])
    weights = _product().graph.initializer[0]
    nodes = [*model.graph.node, *(node for f in model.functions for node in f.node)]
    nodes += [node for outer in nodes for a in outer.attribute for node in a.g.node]
    for node in nodes:
        if node.op_type == "Constant":
            held = node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
            held.t.CopyFrom(weights)
        for attribute in node.attribute:
            if attribute.name == "then_branch":
                attribute.g.initializer.add().CopyFrom(weights)
    return model


@pytest.mark.parametrize("place", ["node", "branch", "function"])
def test_elements_beside_the_model_are_found_wherever_they_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Whatever the process's folder is, and not in that folder."""
    path = _saved(tmp_path / "m", _in_places(place))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "w.bin").write_bytes(bytes(W.nbytes))
    monkeypatch.chdir(tmp_path / "elsewhere")
    model = armpy.load(path, backends=["CpuRef"])
    for condition in (True, False):
        feeds = {"x": X, "k": np.array(condition)}
        y = model.run({spec.name: feeds[spec.name] for spec in model.inputs})["y"]
        np.testing.assert_allclose(y, X @ W, rtol=1e-5)
    with pytest.raises(ParserError, match="Load the model by its path"):
        armpy.load(path.read_bytes(), backends=["CpuRef"])


def test_a_signature_is_refused_as_the_format_has_none() -> None:
    text = "graph (float[2] x) => (float[2] y) { y = Neg (x) }"
    with pytest.raises(ParserError, match=r"no signature 'infer'\. Expected none, as it has no"):
        armpy.load(onnx.parser.parse_model(HEAD + text).SerializeToString(), signature="infer")


def test_inputs_that_share_a_dimension_must_agree() -> None:
    """The error names the dimension, both inputs and both sizes."""
    text = """graph (float[batch, 3] a, float[batch, n] b) => (float[batch, m] y) {
      y = Concat <axis = 1> (a, b)
    }"""
    model = armpy.load(onnx.parser.parse_model(HEAD + text).SerializeToString())
    for size in (1, 4):
        outputs = model.run({"a": np.ones((size, 3), "f4"), "b": np.ones((size, 2), "f4")})
        assert outputs["y"].shape == (size, 5)
    text = r"the dimension 'batch' has two sizes. Expected 2 as of input 'a'; got 3. Give"
    with pytest.raises(LayerValidationError, match=text):
        model.run({"a": np.ones((2, 3), "f4"), "b": np.ones((3, 2), "f4")})


def test_inputs_that_share_a_dimension_need_not_agree_on_demand() -> None:
    text = "graph (float[n] a, float[n] b) => (float[p] c, float[q] d) { c = Neg (a) d = Neg (b) }"
    options = {"tie_dimensions": False}
    content = onnx.parser.parse_model(HEAD + text).SerializeToString()
    model = armpy.load(content, front_end_options=options, backends=["CpuRef"])
    outputs = model.run({"a": np.ones(2, "f4"), "b": np.ones(3, "f4")})
    assert [outputs[name].shape for name in "cd"] == [(2,), (3,)]


def _relu(shape: list[Any], output_shape: list[Any] | None = None) -> bytes:
    """A model of one Relu whose input and output have a declared shape."""
    kinds = zip("xy", (shape, output_shape or shape), strict=True)
    values = [onnx.helper.make_tensor_value_info(name, 1, dims) for name, dims in kinds]
    for value in values:
        for dim, size in zip(value.type.tensor_type.shape.dim, shape, strict=True):
            if isinstance(size, int):
                dim.dim_value = size
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "g", values[:1], values[1:])
    opsets = [onnx.helper.make_opsetid("", 13)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    data: bytes = model.SerializeToString()
    return data


@pytest.mark.parametrize("size", [-1, -7])
def test_a_negative_dimension_is_open(size: int) -> None:
    """PaddlePaddle's exporter writes -1."""
    model = armpy.load(_relu([size, 3]), backends=["CpuRef"])
    assert model.inputs[0].shape == model.outputs[0].shape == (None, 3)
    np.testing.assert_array_equal(model(X[:, :3]), np.maximum(X[:, :3], 0))


@pytest.mark.parametrize("name", ["?", "", "-1", "None"])
def test_placeholders_do_not_name_a_dimension(name: str) -> None:
    model = armpy.load(_relu([name, name]), backends=["CpuRef"])
    assert model.run({"x": X})["y"].shape == (2, 5)
    with pytest.raises(InvalidArgumentError, match="Expected no names"):
        armpy.load(_relu([name, name]), front_end_options={"dimensions": json.dumps({name: 2})})


def test_the_declared_shape_of_an_output_is_known_before_the_first_call() -> None:
    """Programs read the number of classes before they call a model."""
    text = "graph (float[n, 5] x) => (float[n, 3] y) { y = MatMul (x, w) }"
    model = onnx.parser.parse_model(HEAD + text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(W, "w"))
    with armpy.load(model.SerializeToString(), backends=["CpuRef"]) as loaded:
        assert loaded.outputs[0].shape == (None, 3)
        assert loaded.run({"x": X})["y"].shape == (2, 3)


def _with_weights(elements: bytes) -> onnx.ModelProto:
    """A product with many weights."""
    text = "graph (float[2, 512] x) => (float[2, 64] y) { y = Gemm <transA = 0> (x, w) }"
    model = onnx.parser.parse_model(HEAD + text)
    weights = model.graph.initializer.add()
    weights.name, weights.data_type, weights.raw_data = "w", onnx.TensorProto.FLOAT, elements
    weights.dims[:] = [512, 64]
    return model


def test_large_weights_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the package's checker is not asked, which would make a copy of them."""
    monkeypatch.delattr(onnx.checker, "check_model")
    weights = np.random.default_rng(1).normal(size=(512, 64)).astype(np.float32)
    x = np.ones((2, 512), np.float32)
    data = _with_weights(weights.tobytes()).SerializeToString()
    with armpy.load(data, backends=["CpuRef"]) as model:
        np.testing.assert_allclose(model(x), x @ weights, rtol=1e-4)


def test_large_weights_of_another_size_than_their_shape_are_an_error_of_the_file() -> None:
    data = _with_weights(bytes(4 * 512 * 63)).SerializeToString()
    with pytest.raises(ParserError, match="initializer 'w': the tensor cannot be read"):
        armpy.load(data, backends=["CpuRef"])


def test_numbers_without_an_end_are_an_error_of_the_file() -> None:
    # To add it up byte by byte would take hours.
    with pytest.raises(ParserError, match="a number has no end"):
        read_metadata(ModelFile(memoryview(b"\x80" * (1 << 22)), "model"), None)


def test_a_node_s_attributes_keep_none_of_the_file_s_weights() -> None:
    """A part of a message keeps all of it alive."""
    (node,) = _with_weights(b"").graph.node
    attribute = bound_attributes(node, {})["transA"]
    node.attribute[0].i = 5
    assert attribute.i == 0
