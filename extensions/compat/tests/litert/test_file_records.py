"""Constants and descriptions come from the file's own tables."""

from __future__ import annotations

import numpy as np

from armpy_compat.litert.interpreter import Interpreter
from armpy_testing.models.tflite_writer import SparseDimension, Sparsity, TfliteModel


def described(**options: object) -> Interpreter:
    """An interpreter of a model with one constant, tensor 2."""
    model = TfliteModel()
    graph = model.subgraph()
    x, y = (graph.tensor(name, (1,), "FLOAT32") for name in "xy")
    graph.tensor("constant", **options)  # type: ignore[arg-type]
    graph.operator("NEG", [x], [y])
    graph.inputs(x)
    graph.outputs(y)
    return Interpreter(model_content=model.to_bytes())


def test_four_bits_are_unpacked() -> None:
    interpreter = described(shape=(3,), type="INT4", scale=0.5, data=bytes([0xF1, 0x08]))
    constant = interpreter.get_tensor(2)
    assert constant.dtype == np.int8
    assert constant.tolist() == [1, -1, -8]
    assert interpreter.get_tensor_details()[2]["dtype"] is np.int8


def test_a_sparse_constant_has_the_elements_that_are_stored() -> None:
    dense, compressed = SparseDimension(2), SparseDimension(segments=(0, 1, 2), indices=(2, 0))
    interpreter = described(
        shape=(2, 3),
        type="FLOAT32",
        data=np.array([5.0, 7.0], np.float32).tobytes(),
        sparsity=Sparsity((0, 1), (dense, compressed)),
    )
    assert interpreter.get_tensor(2).tolist() == [5.0, 7.0]
    sparsity = interpreter.get_tensor_details()[2]["sparsity_parameters"]
    assert sparsity["traversal_order"].tolist() == [0, 1]
    first, second = sparsity["dim_metadata"]
    assert first == {"format": 0, "dense_size": 2}
    assert second["format"] == 1
    assert second["array_segments"].tolist() == [0, 1, 2]
    assert second["array_indices"].tolist() == [2, 0]


def test_scales_along_an_axis_have_no_single_quantization() -> None:
    interpreter = described(
        shape=(2, 1), type="INT8", scale=[0.5, 0.25], axis=0, data=np.zeros((2, 1), np.int8)
    )
    details = interpreter.get_tensor_details()[2]
    assert details["quantization"] == (0.0, 0)
    parameters = details["quantization_parameters"]
    assert parameters["scales"].tolist() == [0.5, 0.25]
    assert parameters["zero_points"].tolist() == [0, 0]


def test_a_constant_cannot_be_set_and_is_copied() -> None:
    interpreter = described(shape=(1,), type="FLOAT32", data=np.array([4.0], np.float32))
    view = interpreter.tensor(2)()
    view[...] = 0.0
    assert interpreter.get_tensor(2).tolist() == [4.0]
