"""Models with several subgraphs on CpuRef and on LiteRT."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from armpy.model import Model
from armpy.ops.operation import Array
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.compared_arrays import check_arrays
from armpy_testing.litert_oracle import litert_or_skip, run_litert
from armpy_testing.models.networks import floats, ints
from armpy_testing.models.tflite_control_flow import (
    add_subgraph,
    appending,
    below,
    binary,
    doubling,
    if_model,
    variable_model,
    while_model,
)
from armpy_testing.models.tflite_writer import Subgraph, Tensor, TfliteModel
from tests.support.tflite_files import network_of

YES, NO = np.array([True]), np.array([False])


def compare(model: TfliteModel, *inputs: Array, invocations: int = 1) -> None:
    """Run both with the same inputs and compare every output."""
    litert_or_skip()
    data = model.to_bytes()
    loaded = Model(network_of(data), runtime_of())
    for _ in range(invocations):
        answer = loaded(*inputs)
    actual: Sequence[Array] = answer if isinstance(answer, tuple) else (answer,)
    expected: list[npt.NDArray[np.generic]] = run_litert(data, inputs, invocations=invocations)
    for a, e in zip(actual, expected, strict=True):
        check_arrays(e, a)


@pytest.mark.parametrize("condition", [YES, NO], ids=str)
def test_an_if_chooses_the_subgraph_that_litert_does(condition: Array) -> None:
    model = if_model(binary("ADD", [1]), binary("MUL", [3]))
    compare(model, condition, floats(3, 4))


@pytest.mark.parametrize("condition", [YES, NO], ids=str)
def test_subgraphs_may_give_different_shapes(condition: Array) -> None:
    model = if_model(binary("ADD", [[1], [2], [3]]), binary("MUL", [3]))
    compare(model, condition, floats(3, 4))


@pytest.mark.parametrize("first", [0, 3, 9])
def test_a_while_gives_what_litert_gives(first: int) -> None:
    specs = [("INT32", (1,)), ("FLOAT32", (2,)), ("FLOAT32", (3,))]
    model = while_model(below(5), doubling, specs)
    compare(model, ints(first), floats(1, -2), floats(7, 8, 9))


@pytest.mark.parametrize("first", [0, 4, 5])
def test_a_tensor_may_grow_from_turn_to_turn(first: int) -> None:
    model = while_model(below(5), appending, [("INT32", (1,)), ("FLOAT32", (2,))])
    compare(model, ints(first), floats(1, 2))


@pytest.mark.parametrize("first", [0, 2, 7])
def test_a_choice_in_a_loop_gives_what_litert_gives(first: int) -> None:
    def body(graph: Subgraph, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        (small,) = below(3)(graph, inputs)
        chosen = graph.tensor("chosen", (1,), "INT32")
        options = {"then_subgraph_index": 3, "else_subgraph_index": 4}
        graph.operator("IF", [small, inputs[0]], [chosen], options)
        return [chosen]

    counter = [("INT32", (1,))]
    model = while_model(below(50), body, counter)
    add_subgraph(model, "then", counter, binary("ADD", [2], "INT32"))
    add_subgraph(model, "else", counter, binary("MUL", [3], "INT32"))
    compare(model, ints(first))


def test_a_body_is_resized_to_what_it_is_handed() -> None:
    model = while_model(below(5), appending, [("INT32", (1,)), ("FLOAT32", (2,))])
    data = floats(1, 2, 3, 4, 5)
    loaded = Model(network_of(model), runtime_of())
    assert loaded.inputs[1].shape == (2,)
    # Inputs that the file fixes are fixed; LiteRT's caller may resize them all the same.
    expected = run_litert(model.to_bytes(), [ints(4), data])
    np.testing.assert_array_equal(expected[1], [1, 2, 3, 4, 5, 7])


@pytest.mark.parametrize("invocations", [1, 3])
def test_variables_with_handles_keep_their_elements(invocations: int) -> None:
    compare(variable_model(), floats(10, 20), invocations=invocations)
