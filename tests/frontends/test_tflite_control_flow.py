"""Subgraphs that operators run, and variables that have handles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from armpy.errors import ParserError, UnsupportedOperatorError
from armpy.model import Model
from armpy.ops import If
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.models.networks import floats, ints
from armpy_testing.models.tflite_control_flow import (
    add_subgraph,
    below,
    binary,
    counted,
    if_model,
    variable_model,
    while_model,
)
from armpy_testing.models.tflite_writer import Subgraph, Tensor, TfliteModel
from tests.support.tflite_files import network_of, parsed

YES, NO = np.array([True]), np.array([False])
DEEPEST = 32
COUNTER = [("INT32", (1,))]


def loaded(model: TfliteModel) -> Model:
    return Model(network_of(model), runtime_of())


def test_an_if_has_the_graphs_of_its_subgraphs() -> None:
    (layer,) = parsed(if_model(binary("ADD", [1]), binary("MUL", [3]))).layers
    assert isinstance(layer.operation, If)
    assert [v.info.shape for v in layer.outputs] == [(2,)]
    assert repr(layer.operation.then_graph) == "Graph(then_0 -> result, 1 layers)"
    model = loaded(if_model(binary("ADD", [1]), binary("MUL", [3])))
    np.testing.assert_array_equal(model(YES, floats(3, 4)), [4, 5])
    np.testing.assert_array_equal(model(NO, floats(3, 4)), [9, 12])


def test_control_flow_lies_in_control_flow() -> None:
    """``while i < 6: i = (i < 3 ? i + 2 : i * 2)``, of which the counting adds one more."""

    def body(graph: Subgraph, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        (small,) = below(3)(graph, inputs)
        chosen = graph.tensor("chosen", (1,), "INT32")
        options = {"then_subgraph_index": 3, "else_subgraph_index": 4}
        graph.operator("IF", [small, inputs[0]], [chosen], options)
        return [counted(graph, chosen)]

    model = while_model(below(6), body, COUNTER)
    add_subgraph(model, "then", COUNTER, binary("ADD", [2], "INT32"))
    add_subgraph(model, "else", COUNTER, binary("MUL", [2], "INT32"))
    # 0 -> 3 -> 7
    np.testing.assert_array_equal(loaded(model)(ints(0)), [7])


@pytest.mark.parametrize("index", [-1, 3, 1 << 30])
def test_a_subgraph_that_is_not_there_is_refused(index: int) -> None:
    model = if_model(binary("ADD", [1]), binary("MUL", [3]))
    main = model.subgraphs[0]
    y = main.tensor("z", (2,), "FLOAT32")
    options = {"then_subgraph_index": 1, "else_subgraph_index": index}
    main.operator("IF", [0, 1], [y], options)
    with pytest.raises(ParserError, match=f"there is no subgraph {index}. Expected an index below"):
        parsed(model)


@pytest.mark.parametrize("index", [0, 2])
def test_a_subgraph_that_runs_itself_is_refused(index: int) -> None:
    def body(graph: Subgraph, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        result = graph.tensor("again", (1,), "INT32")
        options = {"cond_subgraph_index": 1, "body_subgraph_index": index}
        graph.operator("WHILE", inputs, [result], options)
        return [result]

    with pytest.raises(ParserError, match=f"subgraph {index}.*the subgraph runs itself"):
        parsed(while_model(below(3), body, COUNTER))


def nested_model(depth: int, runs_per_level: int = 1) -> TfliteModel:
    """Subgraph number n runs number n + 1 as both graphs of an IF."""
    model = TfliteModel()
    for index in range(depth):
        graph = model.subgraph(f"level_{index}")
        x = graph.tensor("x", (2,), "FLOAT32")
        condition = graph.tensor("condition", (1,), "BOOL", data=[True])
        y = x
        for number in range(runs_per_level):
            result = graph.tensor(f"y{number}", (2,), "FLOAT32")
            options = {"then_subgraph_index": index + 1, "else_subgraph_index": index + 1}
            graph.operator("IF", [condition, y], [result], options)
            y = result
        graph.inputs(x)
        graph.outputs(y)
    add_subgraph(model, "last", [("FLOAT32", (2,))], binary("ADD", [1]))
    return model


def test_subgraphs_lie_in_each_other_to_a_limit() -> None:
    np.testing.assert_array_equal(loaded(nested_model(DEEPEST))(floats(1, 2)), [2, 3])
    with pytest.raises(ParserError, match=f"lie too deep.*at most {DEEPEST} levels"):
        parsed(nested_model(DEEPEST + 1))


def test_unsupported_operators_of_all_subgraphs_are_listed() -> None:
    model = if_model(binary("ADD", [1]), binary("BIDIRECTIONAL_SEQUENCE_RNN", [3]))
    main = model.subgraphs[0]
    main.operator("CALL_ONCE", [], [], {"init_subgraph_index": 3})
    setup = model.subgraph("setup")
    setup.operator("SKIP_GRAM", [], [], {})
    with pytest.raises(UnsupportedOperatorError, match=r"SKIP_GRAM x1") as caught:
        parsed(model)
    assert caught.value.operators["SKIP_GRAM"] == 1


def test_handles_in_control_flow_are_refused_as_such() -> None:
    def build(graph: Subgraph, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        handle = graph.tensor("handle", (), "RESOURCE")
        graph.operator("VAR_HANDLE", [], [handle], {"shared_name": "state"})
        return inputs

    with pytest.raises(UnsupportedOperatorError, match=r"VAR_HANDLE in control flow x1"):
        parsed(if_model(binary("ADD", [1]), build))


def test_state_in_control_flow_is_refused() -> None:
    def build(graph: Subgraph, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        return [graph.tensor("state", (2,), "FLOAT32", variable=True)]

    with pytest.raises(ParserError, match=r"'state'.*variables in subgraphs of control flow"):
        parsed(if_model(binary("ADD", [1]), build))


def test_errors_in_a_subgraph_name_the_operator_that_runs_it() -> None:
    def build(graph: Subgraph, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        return [graph.tensor("nothing", (2,), "FLOAT32")]

    with pytest.raises(ParserError, match=r"tensor 1 'nothing'.*nothing has written it"):
        parsed(if_model(binary("ADD", [1]), build))


@pytest.mark.parametrize(
    ("then_build", "text"),
    [
        (lambda g, xs: [], "no output"),
        (lambda g, xs: [*xs, *xs], "number of outputs is wrong"),
        (lambda g, xs: [counted(g, g.tensor("i", (1,), "INT32", data=[1]))], "different types"),
    ],
)
def test_subgraphs_that_do_not_go_together_are_refused(then_build: object, text: str) -> None:
    with pytest.raises(ParserError, match=text):
        parsed(if_model(then_build, binary("ADD", [1])))  # type: ignore[arg-type]


def test_a_wrong_number_of_inputs_is_refused() -> None:
    model = if_model(binary("ADD", [1]), binary("MUL", [3]))
    main = model.subgraphs[0]
    main.operator(
        "IF",
        [0, 1, 1],
        [main.tensor("z", (2,), "FLOAT32")],
        {"then_subgraph_index": 1, "else_subgraph_index": 2},
    )
    with pytest.raises(ParserError, match=r"wrong number of inputs. Expected 1; got 2"):
        parsed(model)


def test_a_variable_begins_with_what_is_assigned_once() -> None:
    model = loaded(variable_model())
    for before, after in (([1, 2], [11, 22]), ([11, 22], [21, 42])):
        found_after, found_before = model(floats(10, 20))
        np.testing.assert_array_equal(found_before, before)
        np.testing.assert_array_equal(found_after, after)
    model.reset_state()
    np.testing.assert_array_equal(model(floats(10, 20))[1], [1, 2])


def test_a_variable_that_nothing_has_assigned_cannot_be_read() -> None:
    with pytest.raises(ParserError, match=r"the variable 'state' is read before it is assigned"):
        parsed(variable_model(initial=None))


def variable_setup(build: object) -> TfliteModel:
    """A model whose initialisation subgraph a function writes."""
    model = TfliteModel()
    main, setup = model.subgraph("main"), model.subgraph("setup")
    x = main.tensor("x", (2,), "FLOAT32")
    main.operator("CALL_ONCE", [], [], {"init_subgraph_index": 1})
    main.inputs(x)
    main.outputs(x)
    build(setup, setup.tensor("handle", (), "RESOURCE"))  # type: ignore[operator]
    return model


def test_what_an_initialisation_may_not_do_is_refused() -> None:
    def add(graph: Subgraph, handle: Tensor) -> None:
        a = graph.tensor("a", (1,), data=[1.0])
        graph.operator("ADD", [a, a], [graph.tensor("b", (1,))], {})

    def no_constant(graph: Subgraph, handle: Tensor) -> None:
        graph.operator("VAR_HANDLE", [], [handle], {"shared_name": "v"})
        graph.operator("ASSIGN_VARIABLE", [handle, graph.tensor("a", (1,))], [], {})

    def no_handle(graph: Subgraph, handle: Tensor) -> None:
        graph.operator("ASSIGN_VARIABLE", [handle, graph.tensor("a", (1,), data=[1.0])], [], {})

    def one_input(graph: Subgraph, handle: Tensor) -> None:
        graph.operator("ASSIGN_VARIABLE", [handle], [], {})

    for build, text in (
        (add, "can only assign constants.*got ADD"),
        (no_constant, "not initialised with a constant"),
        (no_handle, "tensor 0 is not a handle"),
        (one_input, "number of inputs is wrong. Expected 2; got 1"),
    ):
        with pytest.raises(ParserError, match=text):
            parsed(variable_setup(build))


def test_variables_count_towards_the_memory_limit() -> None:
    model = variable_model()
    setup = model.subgraphs[1]
    other = setup.tensor("other", (), "RESOURCE")
    setup.operator("VAR_HANDLE", [], [other], {"shared_name": "other"})
    data = setup.tensor("data", (2,), "FLOAT32", data=floats(1, 2))
    setup.operator("ASSIGN_VARIABLE", [other, data], [], {})
    with pytest.raises(ParserError, match=r"variables are larger.*at most 8 bytes; got 16"):
        network_of(model, memory_limit_bytes=8)


def test_a_variable_assigned_another_shape_is_refused() -> None:
    model = variable_model()
    main = model.subgraphs[0]
    wrong = main.tensor("wrong", (3,), "FLOAT32", data=floats(1, 2, 3))
    handle = main.tensor("again", (), "RESOURCE")
    main.operator("VAR_HANDLE", [], [handle], {"shared_name": "state"})
    main.operator("ASSIGN_VARIABLE", [handle, wrong], [], {})
    with pytest.raises(ParserError, match=r"assigned a tensor of another shape or type"):
        parsed(model)
