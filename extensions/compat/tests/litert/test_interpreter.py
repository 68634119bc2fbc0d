"""`Interpreter` answers as LiteRT's does, on models small enough to work out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from armpy_compat.litert.interpreter import (
    Interpreter,
)

from . import models

X = np.array([[3.0, -1.0]], np.float32)
TWICE_PLUS_ONE = np.array([[7.0, -1.0]], np.float32)


def allocated(content: bytes, **options: Any) -> Interpreter:
    """An interpreter that can run."""
    interpreter = Interpreter(model_content=content, **options)
    interpreter.allocate_tensors()
    return interpreter


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


def test_nothing_is_there_before_allocation() -> None:
    interpreter = Interpreter(model_content=models.doubling())
    with pytest.raises(RuntimeError, match="Invoke called on model that is not ready"):
        interpreter.invoke()
    with pytest.raises(ValueError, match=r"Tensor data is null. Run allocate_tensors\(\) first"):
        interpreter.get_tensor(0)
    with pytest.raises(ValueError, match="Cannot set tensor: Tensor is unallocated"):
        interpreter.set_tensor(0, X)
    np.testing.assert_array_equal(interpreter.get_tensor(3), [[1.0, 1.0]])  # a constant


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


def test_weights_have_a_scale_for_each_block_of_a_row() -> None:
    interpreter = allocated(models.product_of_blocks())
    interpreter.set_tensor(0, np.linspace(-1, 1, 64, dtype=np.float32).reshape(1, 64))
    interpreter.invoke()
    # Sums in float64 of the numbers of interpreter.get_tensor(1) times their scales.
    expected = [[0.75003, -0.31106, 0.02959, -0.82917]]
    np.testing.assert_allclose(interpreter.get_tensor(2), expected, atol=2e-5)
    parameters = interpreter.get_tensor_details()[1]["quantization_parameters"]
    assert parameters["block_size"] == 32
    np.testing.assert_array_equal(parameters["scales"], interpreter.get_tensor(3).reshape(-1))


def test_an_input_without_a_rank_is_resized_before_allocation() -> None:
    interpreter = Interpreter(model_content=models.softmax_of_any_shape())
    assert interpreter.get_input_details()[0]["shape"].tolist() == []
    interpreter.resize_tensor_input(0, (2, 4))
    interpreter.allocate_tensors()
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(1), np.full((2, 4), 0.25))


@pytest.mark.parametrize("has_output", [True, False])
def test_tensors_between_layers_are_there_if_preserved(*, has_output: bool) -> None:
    model = models.doubling(has_output=has_output)
    interpreter = allocated(model, experimental_preserve_all_tensors=True)
    assert len(interpreter.get_output_details()) == has_output
    interpreter.set_tensor(0, X)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(1), [[4.0, 0.0]])
    np.testing.assert_array_equal(interpreter.get_tensor(2), TWICE_PLUS_ONE)
    other = allocated(models.doubling())
    other.invoke()
    with pytest.raises(ValueError, match="set experimental_preserve_all_tensors"):
        other.get_tensor(1)


def test_strings_are_bytes() -> None:
    interpreter = allocated(models.gathered_strings())
    words, places = interpreter.get_input_details()
    assert words["dtype"] is np.bytes_
    interpreter.set_tensor(places["index"], np.array([2, 1]))
    for strings in (np.array(["a", "Ä", "c"]), np.array(["a", "Ä".encode(), b"c"], object)):
        interpreter.set_tensor(words["index"], strings)
        interpreter.invoke()
        chosen = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        assert chosen.tolist() == [b"c", "Ä".encode()]
    with pytest.raises(ValueError, match="Cannot use float for a string tensor"):
        interpreter.set_tensor(words["index"], np.array(["a", "b", 2.5], object))


def test_complex_tensors_have_the_file_s_shapes() -> None:
    interpreter = allocated(models.complex_squares(), experimental_preserve_all_tensors=True)
    x = np.arange(6).reshape(2, 3).astype(np.complex64) * (1 - 2j)
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(1), x * x, strict=True)
    np.testing.assert_array_equal(interpreter.tensor(0)(), x, strict=True)
    interpreter.resize_tensor_input(0, (1,))
    interpreter.allocate_tensors()
    assert interpreter.get_output_details()[0]["shape"].tolist() == [1]
