"""`Interpreter` answers as LiteRT's does, on models small enough to work out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armpy_compat.litert.interpreter import (
    Interpreter,
    InterpreterWithCustomOps,
    OpResolverType,
)

from . import models

X = np.array([[3.0, -1.0]], np.float32)
TWICE_PLUS_ONE = np.array([[7.0, -1.0]], np.float32)


def allocated(content: bytes, **options: Any) -> Interpreter:
    """An interpreter that can run."""
    interpreter = Interpreter(model_content=content, **options)
    interpreter.allocate_tensors()
    return interpreter


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "`model_path` or `model_content` must be specified."),
        ({"model_path": "a", "model_content": b"b"}, "Can't both provide"),
        ({"model_path": "missing.tflite"}, "Could not open 'missing.tflite'"),
        ({"model_content": b"short"}, "The model is not a valid Flatbuffer buffer"),
        ({"model_content": b"\x08\x07\x12\x07pytorch"}, "not a valid Flatbuffer.*an ONNX file"),
        ({"model_path": "a", "num_threads": 0}, "num_threads should >= 1"),
        ({"model_path": "a", "num_threads": "2"}, "type of num_threads should be int"),
        ({"model_path": "a", "experimental_op_resolver_type": "x"}, "op resolver type: x"),
    ],
)
def test_unusable_arguments_are_value_errors(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Interpreter(**arguments)


def test_the_input_that_is_set_is_run() -> None:
    interpreter = allocated(models.doubling())
    interpreter.set_tensor(0, X)
    interpreter.invoke()
    result = interpreter.get_tensor(2)
    np.testing.assert_array_equal(result, TWICE_PLUS_ONE)
    interpreter.set_tensor(0, 2 * X)
    interpreter.invoke()
    np.testing.assert_array_equal(result, TWICE_PLUS_ONE)  # a copy
    np.testing.assert_array_equal(interpreter.get_tensor(2), [[13.0, -3.0]])


@pytest.mark.parametrize("kind", [*OpResolverType])
def test_every_kind_of_kernels_gives_the_same(kind: OpResolverType) -> None:
    interpreter = allocated(models.doubling(), experimental_op_resolver_type=kind, num_threads=1)
    interpreter.set_tensor(0, X)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), TWICE_PLUS_ONE)


def test_details_are_the_files() -> None:
    (details,) = Interpreter(model_content=models.doubling(is_open=True)).get_input_details()
    assert [*details] == [
        "name",
        "index",
        "shape",
        "shape_signature",
        "dtype",
        "quantization",
        "quantization_parameters",
        "sparsity_parameters",
    ]
    assert (details["name"], details["index"], details["dtype"]) == ("x", 0, np.float32)
    assert details["shape"].tolist() == [1, 2]
    assert details["shape_signature"].tolist() == [-1, 2]
    assert details["shape"].dtype == details["shape_signature"].dtype == np.int32
    assert details["quantization"] == (0.0, 0)
    assert details["sparsity_parameters"] == {}


def test_details_of_a_quantised_tensor_have_scale_and_zero_point() -> None:
    (details,) = Interpreter(model_content=models.quantized()).get_input_details()
    assert details["quantization"] == (0.5, 128)
    parameters = details["quantization_parameters"]
    assert parameters["scales"].dtype == np.float32
    assert parameters["scales"].tolist() == [0.5]
    assert parameters["zero_points"].dtype == np.int32
    assert parameters["zero_points"].tolist() == [128]
    assert (parameters["quantized_dimension"], parameters["block_size"]) == (0, 0)


def test_every_tensor_has_details() -> None:
    interpreter = Interpreter(model_content=models.doubling())
    names = [details["name"] for details in interpreter.get_tensor_details()]
    assert names == ["x", "sum", "y", "one"]
    with pytest.raises(ValueError, match="subgraph_index is out of range: 1 for the model"):
        interpreter.get_tensor_details(1)
    with pytest.raises(ValueError, match="Invalid tensor index 4 exceeds max tensor index 4"):
        interpreter._get_tensor_details(4, 0)


def test_operators_are_described() -> None:
    interpreter = Interpreter(model_content=models.doubling())
    first, _ = interpreter._get_ops_details()
    assert (first["index"], first["op_name"]) == (0, "ADD")
    assert (first["inputs"].tolist(), first["outputs"].tolist()) == ([0, 3], [1])
    assert (first["operand_types"], first["result_types"]) == ([np.float32] * 2, [np.float32])
    with pytest.raises(ValueError, match="Invalid node index"):
        interpreter._get_op_details(2)


def test_nothing_is_there_before_allocation() -> None:
    interpreter = Interpreter(model_content=models.doubling())
    with pytest.raises(RuntimeError, match="Invoke called on model that is not ready"):
        interpreter.invoke()
    with pytest.raises(ValueError, match=r"Tensor data is null. Run allocate_tensors\(\) first"):
        interpreter.get_tensor(0)
    with pytest.raises(ValueError, match="Cannot set tensor: Tensor is unallocated"):
        interpreter.set_tensor(0, X)
    np.testing.assert_array_equal(interpreter.get_tensor(3), [[1.0, 1.0]])  # a constant


@pytest.mark.parametrize(
    ("index", "value", "text"),
    [
        (
            0,
            X.astype(np.float64),
            "Got value of type FLOAT64 but expected type FLOAT32 for input 0",
        ),
        (0, [[1, 2]], "Got value of type INT64 but expected type FLOAT32 for input 0, name: x "),
        (0, "text", "Got value of type STRING"),
        (0, X[0], "Dimension mismatch. Got 1 but expected 2 for input 0."),
        (0, X[:, :1], "Dimension mismatch. Got 1 but expected 2 for dimension 1 of input 0."),
        (9, X, "Invalid tensor index 9 exceeds max tensor index 4"),
        (3, X, "tensor 3 is neither an input nor an output"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(index: int, value: object, text: str) -> None:
    interpreter = allocated(models.doubling())
    with pytest.raises(ValueError, match=text):
        interpreter.set_tensor(index, value)


def test_arrays_of_another_layout_are_copied_element_by_element() -> None:
    interpreter = allocated(models.doubling())
    interpreter.set_tensor(0, np.repeat(X, 2, 1).astype(">f4")[:, ::2])
    np.testing.assert_array_equal(interpreter.get_tensor(0), X)


def test_a_view_is_the_tensors_memory_and_holds_up_runs() -> None:
    interpreter = allocated(models.doubling())
    read_input, read_output = interpreter.tensor(0), interpreter.tensor(2)
    read_input()[...] = X
    interpreter.invoke()
    np.testing.assert_array_equal(read_output(), TWICE_PLUS_ONE)
    row = read_output()[0]
    for call in (interpreter.invoke, interpreter.allocate_tensors):
        with pytest.raises(RuntimeError, match="There is at least 1 reference to internal data"):
            call()
    assert not interpreter._safe_to_run()
    del row
    assert interpreter._safe_to_run()
    interpreter.invoke()


def test_views_outlive_the_interpreter() -> None:
    interpreter = allocated(models.doubling())
    interpreter.set_tensor(0, X)
    interpreter.invoke()
    constant, output = interpreter.tensor(3)(), interpreter.tensor(2)()
    del interpreter
    junk = [np.full((1, 2), 9.0, np.float32) for _ in range(1000)]  # in freed memory
    np.testing.assert_array_equal(constant, [[1.0, 1.0]])
    np.testing.assert_array_equal(output, TWICE_PLUS_ONE)
    assert len(junk) == 1000


def test_an_open_size_is_resized() -> None:
    interpreter = allocated(models.doubling(is_open=True))
    interpreter.resize_tensor_input(0, (3, 2), strict=True)
    assert interpreter.get_input_details()[0]["shape"].tolist() == [3, 2]
    with pytest.raises(RuntimeError, match="not ready"):
        interpreter.invoke()
    interpreter.allocate_tensors()
    assert interpreter.get_output_details()[0]["shape"].tolist() == [3, 2]
    interpreter.set_tensor(0, np.repeat(X, 3, 0))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), np.repeat(TWICE_PLUS_ONE, 3, 0))


def test_a_fixed_size_is_resized_unless_strictly() -> None:
    interpreter = allocated(models.doubling())
    with pytest.raises(RuntimeError, match=r"dimension 0 of tensor 0 with value 1 to 3\."):
        interpreter.resize_tensor_input(0, [3, 2], strict=True)
    interpreter.resize_tensor_input(0, [1, 2], strict=True)
    interpreter.invoke()  # as nothing has changed
    interpreter.resize_tensor_input(0, np.array([3, 2]))
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.repeat(X, 3, 0))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), np.repeat(TWICE_PLUS_ONE, 3, 0))


def test_shapes_that_cannot_be_used_are_refused() -> None:
    interpreter = Interpreter(model_content=models.doubling())
    with pytest.raises(ValueError, match="Shape should be 1D instead of 2"):
        interpreter.resize_tensor_input(0, [[1, 2]])
    with pytest.raises(RuntimeError, match="number of elements overflowed"):
        interpreter.resize_tensor_input(0, [-1, 2])
    with pytest.raises(RuntimeError, match=r"tensor->dims->size != dims.size\(\) \(2 != 1\)"):
        interpreter.resize_tensor_input(0, [2], strict=True)
    with pytest.raises(RuntimeError, match="tensor 3 is not an input"):
        interpreter.resize_tensor_input(3, [1, 2])
    interpreter.resize_tensor_input(0, [1, 5])
    with pytest.raises(RuntimeError, match="do not broadcast"):
        interpreter.allocate_tensors()


def test_tensors_between_layers_are_there_if_preserved() -> None:
    interpreter = allocated(models.doubling(), experimental_preserve_all_tensors=True)
    interpreter.set_tensor(0, X)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(1), [[4.0, 0.0]])
    other = allocated(models.doubling())
    other.invoke()
    with pytest.raises(ValueError, match="set experimental_preserve_all_tensors"):
        other.get_tensor(1)


def test_a_tensor_whose_name_another_has_is_not_preserved() -> None:
    content = models.doubling(middle="y")
    interpreter = allocated(content, experimental_preserve_all_tensors=True)
    interpreter.set_tensor(0, X)
    interpreter.invoke()
    names = [details["name"] for details in interpreter.get_tensor_details()]
    assert names == ["x", "y", "y", "one"]
    np.testing.assert_array_equal(interpreter.get_tensor(2), TWICE_PLUS_ONE)  # an output
    with pytest.raises(ValueError, match="Tensor data is null"):
        interpreter.get_tensor(1)


def test_the_file_may_be_removed_once_it_is_open(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(models.doubling())
    interpreter = Interpreter(path)
    path.unlink()
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, X)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), TWICE_PLUS_ONE)


def test_strings_are_bytes() -> None:
    interpreter = allocated(models.gathered_strings())
    words, places = interpreter.get_input_details()
    assert words["dtype"] is np.bytes_
    interpreter.set_tensor(words["index"], np.array(["a", "Ä", "c"]))
    interpreter.set_tensor(places["index"], np.array([2, 1]))
    interpreter.invoke()
    chosen = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert chosen.tolist() == [b"c", "Ä".encode()]


def test_an_operator_that_armpy_lacks_is_named_at_allocation() -> None:
    interpreter = Interpreter(model_content=models.of_custom_operator())
    with pytest.raises(RuntimeError, match="Encountered unresolved custom op: MyOperator"):
        interpreter.allocate_tensors()


def test_registerers_of_custom_operators_are_refused() -> None:
    content = models.doubling()
    InterpreterWithCustomOps(model_content=content).allocate_tensors()
    with pytest.raises(ValueError, match="Looking up symbol 'Register' failed: armpy takes"):
        InterpreterWithCustomOps(["Register"], model_content=content)
