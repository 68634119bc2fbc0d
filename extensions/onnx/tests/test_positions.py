"""Positions that are counted from the length of a growing cache."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

import armpy
from armpy_testing.preparations import ORDINARY_PROGRAMS, watch_preparations

TABLE = np.random.default_rng(1).normal(size=(48, 4)).astype(np.float32)
TOKENS = 2


def growing() -> bytes:
    """Tokens with an embedding of their positions, after those of earlier calls."""
    nodes = [
        helper.make_node("Shape", ["past"], ["shape"]),
        helper.make_node("Gather", ["shape", "axis"], ["length"]),
        helper.make_node("Add", ["length", "tokens"], ["total"]),
        helper.make_node("Range", ["length", "total", "axis"], ["positions"]),
        helper.make_node("Gather", ["table", "positions"], ["embedded"]),
        helper.make_node("Add", ["x", "embedded"], ["placed"]),
        helper.make_node("Concat", ["past", "placed"], ["present"], axis=1),
    ]
    shapes = {"x": (1, TOKENS, 4), "past": (1, "length", 4), "present": (1, "total", 4)}
    x, past, present = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    )
    constants = {"axis": np.array(1), "tokens": np.array(TOKENS), "table": TABLE}
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "network", [x, past], [present], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return bytes(model.SerializeToString())


def test_positions_of_new_tokens_fix_no_length(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[int] = []
    length = 0  # while it is loaded
    watch_preparations(monkeypatch, lambda _: prepared.append(length))
    model = armpy.load(growing(), num_threads=1)
    numbers = np.random.default_rng(2)
    for length in range(2, len(TABLE) - TOKENS + 1):
        x = numbers.normal(size=(1, TOKENS, 4)).astype(np.float32)
        past = numbers.normal(size=(1, length, 4)).astype(np.float32)
        expected = np.concatenate([past, x + TABLE[length : length + TOKENS]], axis=1)
        np.testing.assert_array_equal(model.run({"x": x, "past": past})["present"], expected)
    assert max(prepared) <= 2 + ORDINARY_PROGRAMS


def counted_rows() -> bytes:
    """Rows with an embedding of their positions, which are counted up to an input."""
    nodes = [
        helper.make_node("Range", ["zero", "limit", "one"], ["positions"]),
        helper.make_node("Gather", ["table", "positions"], ["embedded"]),
        helper.make_node("Add", ["x", "embedded"], ["y"]),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ("rows", 4)),
        helper.make_tensor_value_info("limit", TensorProto.INT64, ()),
    ]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ("rows", 4))
    constants = {"zero": np.array(0), "one": np.array(1), "table": TABLE}
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "network", inputs, [y], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return bytes(model.SerializeToString())


def test_positions_up_to_a_new_number_are_not_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[int] = []
    rows = 0  # while it is loaded
    watch_preparations(monkeypatch, lambda _: prepared.append(rows))
    model = armpy.load(counted_rows(), num_threads=1)
    for rows in range(2, len(TABLE) + 1):
        x = np.random.default_rng(rows).normal(size=(rows, 4)).astype(np.float32)
        y = model.run({"x": x, "limit": np.array(rows)})["y"]
        np.testing.assert_array_equal(y, x + TABLE[:rows])
    assert max(prepared) <= 2 + ORDINARY_PROGRAMS


def test_many_counted_numbers_are_not_kept() -> None:
    node = helper.make_node("Range", ["zero", "limit", "one"], ["y"])
    limit, y = (
        helper.make_tensor_value_info(name, TensorProto.INT64, shape)
        for name, shape in (("limit", ()), ("y", ("count",)))
    )
    constants = {"zero": np.array(0), "one": np.array(1)}
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph([node], "network", [limit], [y], weights)
    onnx_model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    model = armpy.load(onnx_model.SerializeToString(), num_threads=1)
    many = 1 << 21
    tracemalloc.start()
    try:
        for count in (3, 4, many, 5):
            numbers = model.run({"limit": np.array(count)})["y"]
            assert np.array_equal(numbers, np.arange(count))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 4 * 8 * many


def test_images_are_resized_to_sizes_from_an_input() -> None:
    """At ratios that are no integers, by positions that arrays of numbers are computed with."""
    nodes = [
        helper.make_node("Concat", ["images", "height", "width"], ["sizes"], axis=0),
        helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="cubic"),
    ]
    x, y, height = (
        helper.make_tensor_value_info(name, kind, shape)
        for name, kind, shape in (
            ("x", TensorProto.FLOAT, (1, 1, 4, 4)),
            ("y", TensorProto.FLOAT, (1, 1, "rows", 4)),
            ("height", TensorProto.INT64, (1,)),
        )
    )
    constants = {"images": np.array([1, 1]), "width": np.array([4])}
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "network", [x, height], [y], weights)
    onnx_model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    data = onnx_model.SerializeToString()
    model = armpy.load(data, num_threads=1)
    image = np.random.default_rng(3).normal(size=(1, 1, 4, 4)).astype(np.float32)
    for rows in (8, 4, 5, 7, 6, 10, 3):
        inputs = {"x": image, "height": np.array([rows])}
        expected = armpy.load(data, num_threads=1).run(inputs)["y"]
        np.testing.assert_array_equal(model.run(inputs)["y"], expected)
