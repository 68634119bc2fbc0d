"""From a .tflite file to a network: edges, order, signatures, errors."""

from __future__ import annotations

import struct
import time
from typing import Any

import flatbuffers
import pytest
import tflite

from armpy.errors import ParserError, UnsupportedOperatorError
from armpy_testing.models.tflite_writer import Subgraph, Tensor, TfliteModel, model_with_input
from tests.support.tflite_files import network_of, parsed, signatures_of


def add(graph: Subgraph, x: Tensor, y: Tensor, out: Tensor) -> None:
    """Add an ADD operator."""
    graph.operator("ADD", [x, y], [out], {})


def test_inputs_and_outputs_keep_their_order_and_names() -> None:
    model = TfliteModel()
    graph = model.subgraph()
    a, b, c, d = (graph.tensor(name, (2,)) for name in "abcd")
    add(graph, a, b, c)
    add(graph, b, c, d)
    graph.inputs(b, a)
    graph.outputs(d, c)
    built = parsed(model)
    assert [value.name for value in built.inputs] == ["b", "a"]
    assert built.output_names == ("d", "c")


def two_subgraphs() -> TfliteModel:
    """A model with a signature for each of its two subgraphs."""
    model = TfliteModel()
    for name in ("first", "second"):
        graph = model.subgraph(name)
        a, b, c, d = (graph.tensor(f"{name}_{letter}", (2,)) for letter in "abcd")
        add(graph, a, b, c)
        add(graph, b, c, d)
        graph.inputs(a, b)
        graph.outputs(c, d)
        model.signature(name, {"lhs": b, "rhs": a}, {"sum": d, "same": d, "part": c})
    return model


def test_signature_chooses_the_subgraph_and_gives_the_names() -> None:
    network = network_of(two_subgraphs().to_bytes(), signature="second")
    built = network.build()
    assert [value.name for value in built.inputs] == ["rhs", "lhs"]
    assert built.output_names == ("part", "sum", "same")
    assert built.outputs[0].name == "second_c"


def test_unknown_signature_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ParserError, match=r"no signature 'third'. Expected 'first', 'second'"):
        network_of(two_subgraphs().to_bytes(), signature="third")


def test_signature_must_name_every_input() -> None:
    model = TfliteModel()
    graph = model.subgraph()
    a, b = graph.tensor("a", (2,)), graph.tensor("b", (2,))
    graph.inputs(a, b)
    graph.outputs(a)
    model.signature("s", {"a": a}, {"out": a})
    with pytest.raises(ParserError, match=r"signature 's': inputs.*no name. Got tensors \[1\]"):
        network_of(model, signature="s")


def test_signature_must_keep_to_the_edge_of_the_subgraph() -> None:
    model, graph, a = model_with_input(name="a")
    b = graph.tensor("b", (2,))
    graph.outputs(a)
    model.signature("s", {"a": a}, {"out": b})
    with pytest.raises(ParserError, match=r"'out' is not one of the subgraph's outputs"):
        network_of(model, signature="s")


def test_two_signatures_of_one_name_are_refused() -> None:
    model = TfliteModel()
    graph = model.subgraph()
    a = graph.tensor("a", (2,))
    for _ in range(2):
        model.signature("s", {"a": a}, {"a": a})
    with pytest.raises(ParserError, match=r"two signatures have this name"):
        signatures_of(model)


def test_two_inputs_of_one_name_are_refused() -> None:
    model = TfliteModel()
    graph = model.subgraph()
    a, b = graph.tensor("a", (2,)), graph.tensor("b", (2,))
    graph.inputs(a, b)
    graph.outputs(a)
    model.signature("s", {"lhs": a, "rhs": b}, {"out": a})
    file = model.to_bytes().replace(b"rhs", b"lhs")
    with pytest.raises(ParserError, match=r"signature 's': two inputs have the name 'lhs'"):
        signatures_of(file)


def test_unsupported_operators_are_listed_with_their_numbers() -> None:
    model = TfliteModel()
    graph = model.subgraph()
    x = graph.tensor("x", (2,))
    for _ in range(2):
        graph.operator("SKIP_GRAM", [x], [x])
    add(graph, x, x, x)
    graph.operator("CUSTOM", [x], [x], custom_code="VendorSum")
    graph.operator(9999, [x], [x])
    with pytest.raises(
        UnsupportedOperatorError,
        match=r"SKIP_GRAM x2, custom 'VendorSum' x1, operator code 9999 x1",
    ) as caught:
        network_of(model)
    assert caught.value.operators == {
        "SKIP_GRAM": 2,
        "custom 'VendorSum'": 1,
        "operator code 9999": 1,
    }


@pytest.mark.parametrize("index", [-2, 7, 2**31 - 1])
def test_tensor_index_out_of_range_is_refused(index: int) -> None:
    model, graph, x = model_with_input()
    y = graph.tensor("y", (2,))
    graph.operator("ADD", [x, index], [y], {})
    graph.outputs(y)
    with pytest.raises(
        ParserError, match=rf"there is no tensor {index}. Expected an index below 2"
    ):
        network_of(model)


def test_tensor_that_nothing_writes_is_refused() -> None:
    model = TfliteModel()
    graph = model.subgraph()
    x, y = graph.tensor("x", (2,)), graph.tensor("y", (2,))
    add(graph, x, x, y)
    graph.outputs(y)
    with pytest.raises(ParserError, match=r"tensor 0 'x': the tensor is read, but nothing has"):
        network_of(model)


def test_operator_that_writes_a_variable_of_another_shape_is_refused() -> None:
    model, graph, x = model_with_input()
    y = graph.tensor("y", (), variable=True)
    add(graph, x, x, y)
    graph.outputs(y)
    with pytest.raises(ParserError, match=r"operator 0 ADD 'y': .*of another shape"):
        network_of(model)


def test_too_many_inputs_are_refused() -> None:
    model = TfliteModel()
    graph = model.subgraph()
    graph.inputs(*[0] * 2000)
    with pytest.raises(ParserError, match=r"too many inputs. Expected at most 1024; got 2000"):
        network_of(model)


def test_results_that_no_operator_reads_are_the_outputs_of_a_model_that_lists_none() -> None:
    model = TfliteModel()
    graph = model.subgraph()
    x, y, z = (graph.tensor(name, (2,)) for name in "xyz")
    graph.inputs(x)
    with pytest.raises(ParserError, match=r"the model has no output"):
        network_of(model)
    graph.operator("ABS", [x], [y], None)
    graph.operator("NEG", [y], [z], None)
    assert [value.name for value in parsed(model).outputs] == ["z"]


def test_model_without_subgraphs_is_refused() -> None:
    with pytest.raises(ParserError, match=r"there is no subgraph 0"):
        network_of(TfliteModel().to_bytes())


def test_output_above_the_memory_limit_is_refused() -> None:
    model = TfliteModel()
    graph = model.subgraph()
    x, y = graph.tensor("x", (1000, 1)), graph.tensor("y", (1, 1000))
    z = graph.tensor("z", (1,))
    add(graph, x, y, z)
    graph.inputs(x, y)
    graph.outputs(z)
    with pytest.raises(ParserError, match=r"operator 0 ADD 'z': the tensor is larger"):
        network_of(model, memory_limit_bytes=1_000_000)


def repeated_tables(field: str, count: int, payload: int) -> bytes:
    """A file whose tables of one kind are all the same one, which holds a long vector."""
    schema: Any = tflite  # Any: neither package has types
    builder: Any = getattr(flatbuffers, "Builder")(1024)  # noqa: B009  # not exported by name
    name = builder.CreateString("x" * payload)
    builder.StartVector(4, payload, 4)
    for _ in range(payload):
        builder.PrependInt32(-1)
    indexes = builder.EndVector()
    if field == "operators":
        schema.OperatorStart(builder)
        schema.OperatorAddInputs(builder, indexes)
        table = schema.OperatorEnd(builder)
    else:
        schema.TensorStart(builder)
        schema.TensorAddName(builder, name)
        table = schema.TensorEnd(builder)
    builder.StartVector(4, count, 4)
    for _ in range(count):
        builder.PrependUOffsetTRelative(table)
    tables = builder.EndVector()
    builder.StartVector(4, count, 4)
    for index in reversed(range(count)):
        builder.PrependInt32(index)
    outputs = builder.EndVector()
    schema.SubGraphStart(builder)
    if field == "operators":
        schema.SubGraphAddOperators(builder, tables)
    else:
        schema.SubGraphAddTensors(builder, tables)
        schema.SubGraphAddOutputs(builder, outputs)
    subgraph = schema.SubGraphEnd(builder)
    builder.StartVector(4, 1, 4)
    builder.PrependUOffsetTRelative(subgraph)
    subgraphs = builder.EndVector()
    schema.OperatorCodeStart(builder)
    code = schema.OperatorCodeEnd(builder)
    builder.StartVector(4, 1, 4)
    builder.PrependUOffsetTRelative(code)
    codes = builder.EndVector()
    schema.ModelStart(builder)
    schema.ModelAddVersion(builder, 3)
    schema.ModelAddSubgraphs(builder, subgraphs)
    schema.ModelAddOperatorCodes(builder, codes)
    builder.Finish(schema.ModelEnd(builder), b"TFL3")
    return bytes(builder.Output())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "count", "payload"), [("operators", 20_000, 20_000), ("tensors", 1000, 60_000)]
)
def test_tables_that_lie_over_each_other_cost_little(field: str, count: int, payload: int) -> None:
    data = repeated_tables(field, count, payload)
    started = time.process_time()  # of the processor: a machine may have other things to do
    with pytest.raises(ParserError):
        network_of(data)
    assert time.process_time() - started < 2.0


def test_vector_longer_than_the_file_is_refused_before_it_is_read() -> None:
    model, graph, x = model_with_input((77, 78, 79))
    graph.outputs(x)
    length_and_shape = struct.pack("<4i", 3, 77, 78, 79)
    file = model.to_bytes()
    assert file.count(length_and_shape) == 1
    damaged = file.replace(length_and_shape, struct.pack("<I3i", 0xFFFFFFF0, 77, 78, 79))
    with pytest.raises(ParserError, match=r"tensor 0 'x': .*Shape is longer than the file"):
        network_of(damaged)


def test_very_long_names_are_refused() -> None:
    model, graph, x = model_with_input(name="x" * 70_000)
    graph.outputs(x)
    with pytest.raises(ParserError, match=r"Name is too long. Expected at most 65536 bytes"):
        network_of(model)


def test_names_that_are_no_utf8_are_made_readable() -> None:
    model, graph, x = model_with_input(name="abcd")
    graph.outputs(x)
    file = model.to_bytes().replace(b"abcd", b"a\xff\xfed")
    assert parsed(file).output_names == ("a\ufffd\ufffdd",)


def test_every_prefix_of_a_file_is_damage() -> None:
    model, graph, x = model_with_input()
    y = graph.tensor("y", (2,), data=[1.0, 2.0])
    z = graph.tensor("z", (2,))
    add(graph, x, y, z)
    graph.outputs(z)
    file = model.to_bytes()
    for size in range(len(file) - 16):
        with pytest.raises(ParserError):
            network_of(file[:size])
