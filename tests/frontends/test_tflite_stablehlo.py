"""Refusals of StableHLO's operators in .tflite files, and forms that the samples lack."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

import armpy
from armpy.errors import ParserError
from armpy_testing.models.tflite_writer import OptionValue, TfliteModel
from tests.support.tflite_files import network_of, parsed


def vector(*numbers: int) -> npt.NDArray[np.int64]:
    return np.array(numbers, np.int64)


def model_of(
    operator: str,
    options: dict[str, OptionValue],
    shapes: Sequence[tuple[int, ...]],
    types: Sequence[str],
    body: Sequence[str] = (),
    table: str | None = None,
) -> bytes:
    """One operator, and a subgraph of operators of two numbers."""
    model = TfliteModel()
    graph, inner = model.subgraph(), model.subgraph("body")
    inputs = [
        graph.tensor(f"x{i}", shape, kind)
        for i, (shape, kind) in enumerate(zip(shapes, types, strict=True))
    ]
    output = graph.tensor("y", (1,))
    graph.operator(operator, inputs, [output], options, options_table=table)
    graph.inputs(*inputs)
    graph.outputs(output)
    a, b, c = (inner.tensor(name, ()) for name in "abc")
    for name in body:
        inner.operator(name, [a, b], [c], {} if name in ("ADD", "MUL") else None)
    inner.inputs(a, b)
    inner.outputs(c)
    return model.to_bytes()


def gather(**changes: OptionValue) -> dict[str, OptionValue]:
    return {
        "offset_dims": vector(0, 2),
        "collapsed_slice_dims": vector(),
        "start_index_map": vector(1),
        "index_vector_dim": 1,
        "slice_sizes": vector(2, 3),
        **changes,
    }


def test_indices_without_an_axis_for_vectors_are_vectors_of_one() -> None:
    file = model_of("STABLEHLO_GATHER", gather(), [(2, 6), (3,)], ["FLOAT32", "INT64"])
    values = np.arange(12, dtype=np.float32).reshape(2, 6)
    with armpy.load(file, backends=["CpuRef"]) as model:
        output = model(values, vector(1, -4, 5))
    # Windows that begin at 1, at 0 and at 3, along the second axis.
    expected = np.stack([values[:, 1:4], values[:, 0:3], values[:, 3:6]], axis=1)
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start_index_map": vector(2)}, "axes of the index vectors do not go with the shapes"),
        ({"start_index_map": vector(0, 1)}, "axes of the index vectors"),
        ({"offset_dims": vector(0, 0)}, "axes of the index vectors"),
        ({"index_vector_dim": 4}, "axes of the index vectors"),
        (
            {"slice_sizes": vector(2, 7)},
            r"windows are not within the tensor. Expected at most \(2, 6\)",
        ),
        ({"slice_sizes": vector(2)}, "windows are not within the tensor"),
        ({"slice_sizes": vector(2, -1)}, "windows are not within the tensor"),
    ],
)
def test_windows_that_do_not_go_with_the_tensor_are_refused(
    changes: dict[str, OptionValue], message: str
) -> None:
    shapes, types = [(2, 6), (3,)], ["FLOAT32", "INT64"]
    file = model_of("STABLEHLO_GATHER", gather(**changes), shapes, types)
    with pytest.raises(ParserError, match=message):
        network_of(file)


@pytest.mark.parametrize("body", [("ADD", "ADD"), ("MAXIMUM", "MUL"), ("POW",)])
def test_functions_of_windows_that_are_not_one_known_operator_are_refused(
    body: Sequence[str],
) -> None:
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    options: dict[str, OptionValue] = {name: vector(1) for name in names}
    options |= {"padding": vector(0, 0), "body_subgraph_index": 1}
    file = model_of("STABLEHLO_REDUCE_WINDOW", options, [(4,), ()], ["FLOAT32"] * 2, body)
    with pytest.raises(ParserError, match=rf"subgraph is not supported\. Got {', '.join(body)}"):
        network_of(file)


def test_windows_that_fit_nowhere_give_no_elements_however_large_they_are() -> None:
    names = ("window_strides", "base_dilations", "window_dilations")
    options: dict[str, OptionValue] = {name: vector(1) for name in names}
    options |= {"window_dimensions": vector(1 << 61), "padding": vector(0, 0)}
    options["body_subgraph_index"] = 1
    file = model_of("STABLEHLO_REDUCE_WINDOW", options, [(4,), ()], ["FLOAT32"] * 2, ("ADD",))
    model = armpy.load(file, backends=["CpuRef"])
    result = model(np.ones(4, np.float32), np.zeros((), np.float32))
    assert np.shape(result) == (0,)


@pytest.mark.parametrize("sizes", [vector(0), vector(2, 2), vector(-1)])
def test_windows_without_elements_or_of_another_rank_are_refused(
    sizes: npt.NDArray[np.int64],
) -> None:
    names = ("window_strides", "base_dilations", "window_dilations")
    options: dict[str, OptionValue] = {name: vector(1) for name in names}
    options |= {"window_dimensions": sizes, "padding": vector(0, 0), "body_subgraph_index": 1}
    file = model_of("STABLEHLO_REDUCE_WINDOW", options, [(4,), ()], ["FLOAT32"] * 2, ("ADD",))
    with pytest.raises(ParserError, match="not a size, a stride and a dilation per axis"):
        network_of(file)


def test_padding_that_takes_away_more_than_there_is_is_refused() -> None:
    options: dict[str, OptionValue] = {
        "edge_padding_low": vector(-3),
        "edge_padding_high": vector(-2),
        "interior_padding": vector(0),
    }
    file = model_of("STABLEHLO_PAD", options, [(4,), ()], ["FLOAT32"] * 2)
    with pytest.raises(ParserError, match=r"more is taken away than is there. Got \(-1,\)"):
        network_of(file)


def composite(index: int) -> dict[str, OptionValue]:
    return {"name": "two", "decomposition_subgraph_index": index}


def test_a_composite_is_its_subgraph() -> None:
    table = "StableHLOCompositeOptions"
    shapes, types = [(3,), (3,)], ["FLOAT32"] * 2
    file = model_of("STABLEHLO_COMPOSITE", composite(1), shapes, types, ("MUL",), table)
    network = parsed(file)
    assert [layer.operation.name for layer in network.layers] == ["ElementwiseBinary"]
    assert network.outputs[0].info.shape == (3,)


@pytest.mark.parametrize(
    ("index", "count", "message"),
    [
        (0, 2, "the subgraph runs itself"),
        (7, 2, "there is no subgraph 7"),
        (1, 1, "wrong number of inputs. Expected 2; got 1"),
    ],
)
def test_composites_of_subgraphs_that_do_not_fit_are_refused(
    index: int, count: int, message: str
) -> None:
    table = "StableHLOCompositeOptions"
    shapes, types = [(3,)] * count, ["FLOAT32"] * count
    file = model_of("STABLEHLO_COMPOSITE", composite(index), shapes, types, ("MUL",), table)
    with pytest.raises(ParserError, match=message):
        network_of(file)
