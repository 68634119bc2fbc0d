"""Files that pages of documentation take for granted, made small: models, pictures, labels."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from armpy_testing.models.tflite_metadata import (
    AXIS_LABELS,
    IMAGE,
    RGB,
    Fields,
    metadata_bytes,
    packed,
)
from armpy_testing.models.tflite_writer import TfliteModel
from lab.float_digits import write_float_digits
from tests.support.pages import ROOT

DIGITS = ROOT / "examples" / "digits"
EXAMPLES = ROOT / "backends" / "dynamic_examples"


def copy(source: Path, path: Path) -> None:
    """Copy a file, or a folder without what Python has left in it."""
    if source.is_dir():
        left = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
        shutil.copytree(source, path, ignore=left, dirs_exist_ok=True)
    else:
        shutil.copy(source, path)


def put(text: str, folder: Path) -> None:
    """Put the files that a text names into a folder."""
    for name, make in FILES.items():
        if re.search(rf"(?<![\w/.-])(\.\./|examples/digits/)?{re.escape(name)}(?![\w-])", text):
            path = folder / name.removeprefix("../")
            path.parent.mkdir(parents=True, exist_ok=True)
            make(path)


def _copy(source: Path) -> Callable[[Path], object]:
    """Return a function that copies a file or folder to a target."""
    return lambda path: copy(source, path)


def _classifier(
    size: int, num_classes: int, inputs: str, outputs: str, with_metadata: bool = False
) -> Callable[[Path], object]:
    """What writes a float classifier of pictures: means of the channels, one dense layer."""

    def write(path: Path) -> None:
        model = TfliteModel(description="a small classifier")
        graph = model.subgraph()
        image = graph.tensor(inputs, (1, size, size, 3), "FLOAT32")
        axes = graph.tensor("axes", (2,), "INT32", data=[1, 2])
        means = graph.tensor("means", (1, 3), "FLOAT32")
        weights = np.random.default_rng(1).normal(size=(num_classes, 3)).astype(np.float32)
        dense = graph.tensor("weights", weights.shape, "FLOAT32", data=weights)
        sums = graph.tensor("sums", (1, num_classes), "FLOAT32")
        scores = graph.tensor(outputs, (1, num_classes), "FLOAT32")
        graph.operator("MEAN", [image, axes], [means], options={"keep_dims": False})
        graph.operator("FULLY_CONNECTED", [means, dense], [sums])
        graph.operator("SOFTMAX", [sums], [scores], options={"beta": 1.0})
        graph.inputs(image)
        graph.outputs(scores)
        names = [f"class {number}" for number in range(num_classes)]
        if with_metadata:
            model.metadata("TFLITE_METADATA", _metadata(inputs, outputs))
        archive = packed({"labels.txt": "\n".join(names)}) if with_metadata else b""
        path.write_bytes(model.to_bytes() + archive)

    return write


def _metadata(inputs: str, outputs: str) -> bytes:
    """Metadata with a normalisation and labels."""
    normalization: Fields = {0: np.uint8(1), 1: {0: [127.5], 1: [127.5]}}
    image: Fields = {0: inputs, 3: {0: IMAGE, 1: {0: RGB}}, 4: [normalization]}
    scores: Fields = {0: outputs, 6: [{0: "labels.txt", 2: AXIS_LABELS}]}
    graph: Fields = {2: [image], 3: [scores]}
    return metadata_bytes({0: "classifier", 3: [graph], 4: "its author", 5: "Apache-2.0"})


def _onnx(*shape: int | str) -> Callable[[Path], object]:
    """What writes an ONNX file of one convolution and what follows it."""

    def write(path: Path) -> None:
        import onnx
        from onnx import TensorProto, helper, numpy_helper

        weights = np.random.default_rng(2).normal(size=(4, 3, 3, 3)).astype(np.float32)
        nodes = [
            helper.make_node("Conv", ["x", "weights"], ["sums"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["sums"], ["features"]),
            helper.make_node("GlobalAveragePool", ["features"], ["y"]),
        ]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (shape[0], 4, 1, 1))
        constants = [numpy_helper.from_array(weights, "weights")]
        graph = helper.make_graph(nodes, "small", [x], [y], constants)
        sets = [helper.make_opsetid("", 17)]
        onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=8), path)

    return write


def _open(path: Path) -> None:
    """Write a model with an open number of pictures."""
    model = TfliteModel()
    graph = model.subgraph()
    open_shape = (-1, 224, 224, 3)
    x, y = (graph.tensor(name, (1, 224, 224, 3), shape_signature=open_shape) for name in "xy")
    graph.operator("RELU", [x], [y])
    graph.inputs(x)
    graph.outputs(y)
    path.write_bytes(model.to_bytes())


def _picture(path: Path) -> None:
    """Draw a picture with some colours."""
    from PIL import Image

    rows, columns = np.mgrid[0:96, 0:128].astype(np.uint8)
    Image.fromarray(np.stack([rows, columns, rows ^ columns], axis=-1)).save(path)


FILES: Mapping[str, Callable[[Path], object]] = {
    "model.tflite": _copy(DIGITS / "digits_int8.tflite"),
    "digits_int8.tflite": _copy(DIGITS / "digits_int8.tflite"),
    "digits_float.tflite": write_float_digits,
    "lab/float_digits.py": _copy(ROOT / "lab" / "float_digits.py"),
    "examples": _copy(DIGITS.parent),
    "backends/dynamic_examples/drivers": _copy(EXAMPLES / "drivers"),
    "backends/dynamic_examples/nnapi_extensions": _copy(EXAMPLES / "nnapi_extensions"),
    "mobilenet_v2.tflite": _classifier(224, 1001, "image", "scores"),
    "classifier.tflite": _classifier(32, 3, "input", "probability", with_metadata=True),
    "vww_96_float.tflite": _classifier(32, 2, "image", "scores"),
    "mobilenet.tflite": _classifier(32, 10, "image", "scores"),
    "float.tflite": _classifier(32, 10, "image", "scores"),
    "model.onnx": _onnx(1, 3, 32, 32),
    "open.tflite": _open,
    "pictures": _copy(DIGITS / "pictures"),
    "labels.txt": _copy(DIGITS / "labels.txt"),
    "picture.png": _picture,
    "photo.jpg": _picture,
}
"""What makes each file, by its name on pages."""
