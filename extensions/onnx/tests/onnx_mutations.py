"""ONNX models that say odd things: their structure is changed, not their bytes."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

from armpy_testing.models.onnx_texts import MODELS

from .onnx_quantized_texts import QUANTIZED_MODELS

NUMBERS = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 7, 255, 2**31, 2**40, 2**63 - 1)
REALS = (float("nan"), float("inf"), 0.0, -1.5, 1e30)
WORDS = (b"", b"wrong", b"\xff", b"reflect", b"linear", b"add")
SIZES = (0, 1, 2, 3, 5, 17, 1 << 10, 1 << 20, 1 << 31, 1 << 40)
EXTERNAL_FILE = "elements.bin"
"""Beside models whose elements lie in another file."""


@cache
def node_models() -> list[bytes]:
    """ONNX's node tests that are small."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, while the tests are computed
        cases = [case for case in collect_testcases(None) if case.model is not None]
    written = (case.model.SerializeToString() for case in cases)
    return [data for data in written if len(data) < 20_000]


@cache
def nested_models() -> list[bytes]:
    """Models with graphs and functions inside, quantised ones, and such of ONNX Runtime."""
    texts = (*MODELS, *QUANTIZED_MODELS)
    return [onnx.parser.parse_model(text).SerializeToString() for text in texts]


def _graphs(model: Any) -> list[Any]:
    """A model's graphs and functions; those inside come last."""
    graphs = [model.graph, *model.functions]
    for graph in graphs:
        for node in graph.node:
            graphs.extend(attribute.g for attribute in node.attribute if attribute.HasField("g"))
    return graphs


def _change(model: Any, rng: random.Random) -> None:
    """Make one thing of a model odd."""
    graphs = _graphs(model)
    nodes = [node for graph in graphs for node in graph.node]
    node, other = rng.choice(nodes), rng.choice(nodes)
    names = [name for node in nodes for name in (*node.input, *node.output)] or [""]
    change = rng.randrange(10)
    if change == 0 and node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(names)
    elif change == 1 and node.output:
        node.output[rng.randrange(len(node.output))] = rng.choice(names)
    elif change == 2:
        node.op_type, node.domain = other.op_type, other.domain
    elif change == 3 and other.attribute:
        copy = onnx.AttributeProto()  # a node may lie inside an argument
        copy.CopyFrom(rng.choice(other.attribute))
        node.attribute.add().CopyFrom(copy)
    elif change == 4 and node.attribute:
        _change_attribute(rng.choice(node.attribute), rng)
    elif change == 5 and node.attribute:
        del node.attribute[rng.randrange(len(node.attribute))]
    elif change == 6:
        twin = onnx.NodeProto()
        twin.CopyFrom(node)
        rng.choice(graphs).node.add().CopyFrom(twin)
    elif change == 7 and len(node.input):
        del node.input[rng.randrange(len(node.input))]
    elif change == 8 and model.graph.input:
        kind = rng.choice(model.graph.input).type
        kind.tensor_type.elem_type = rng.randrange(28)
    elif model.opset_import:
        rng.choice(model.opset_import).version = rng.randrange(1, 29)


def _change_attribute(attribute: Any, rng: random.Random) -> None:
    """Give an attribute odd numbers or an odd word."""
    attribute.i = rng.choice(NUMBERS)
    if attribute.HasField("f"):
        attribute.f = rng.choice(REALS)
    if attribute.HasField("s"):
        attribute.s = rng.choice(WORDS)
    if attribute.ints:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(NUMBERS)
    if attribute.HasField("t") and attribute.t.dims:
        attribute.t.dims[0] = rng.choice(NUMBERS)


def _node(rng: random.Random) -> bytes:
    """A node test."""
    return rng.choice(node_models())


# Structure


def _value_named(rng: random.Random, graph: Any) -> str:
    """A tensor of a graph."""
    names = [value.name for value in graph.input]
    names += [tensor.name for tensor in graph.initializer]
    names += [name for node in graph.node for name in node.output if name]
    name: str = rng.choice(names or ["x"])
    return name


def _cut(rng: random.Random, graph: Any) -> tuple[list[Any], list[str]]:
    """Some neighbouring nodes of a graph taken out of it, and their outputs."""
    first = rng.randrange(len(graph.node))
    count = rng.choice((1, 1, 2, len(graph.node)))
    nodes = [_copy(node) for node in graph.node[first : first + count]]
    del graph.node[first : first + count]
    return nodes, [name for node in nodes for name in node.output if name]


def _copy(node: Any) -> Any:
    """A node of its own."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy


def _rest_of(graph: Any, node: Any, first: int) -> None:
    """Put a node where nodes were taken out."""
    following = [_copy(other) for other in graph.node[first:]]
    del graph.node[first:]
    graph.node.extend([node, *following])


def _named(rng: random.Random, name: str) -> Any:
    """What a graph says of a tensor: a type, and perhaps dimensions."""
    kind = rng.choice((TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL))
    shape = rng.choice((None, None, [2], [rng.choice(SIZES)], ["n", 3]))
    return helper.make_tensor_value_info(name, kind, shape)


def _condition(rng: random.Random, model: Any) -> str:
    """The name of a condition: given, constant, or anything."""
    how = rng.randrange(4)
    if how == 0:
        return _value_named(rng, model.graph)
    name = "odd_condition" if how == 1 else f"odd_constant_{how}"
    if how == 1 and all(value.name != name for value in model.graph.input):
        model.graph.input.append(helper.make_tensor_value_info(name, TensorProto.BOOL, []))
    if how > 1 and all(tensor.name != name for tensor in model.graph.initializer):
        model.graph.initializer.append(numpy_helper.from_array(np.array(how == 2), name))
    return name


def _trips(rng: random.Random, model: Any) -> str:
    """The name of a number of turns."""
    count = rng.choice((0, 1, 3, 10, 1000, 2**40, -1))
    name = f"odd_trips_{count}"
    if all(tensor.name != name for tensor in model.graph.initializer):
        model.graph.initializer.append(numpy_helper.from_array(np.array(count), name))
    return rng.choice((name, name, ""))


def _branch(rng: random.Random, model: Any) -> None:
    """Put nodes into branches, several times perhaps."""
    graph = model.graph
    nodes, written = _cut(rng, graph)
    first = len(graph.node)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        outputs = [_named(rng, name) for name in written]
        then = helper.make_graph(nodes, "then", [], outputs)
        other = helper.make_graph(rng.choice((nodes, [])), "else", [], outputs)
        attributes = {"then_branch": then, "else_branch": rng.choice((then, other))}
        nodes = [helper.make_node("If", [_condition(rng, model)], written, **attributes)]
        if nodes[0].ByteSize() > _LARGEST_BYTES:
            break
    _rest_of(graph, nodes[0], rng.randrange(first + 1))


_LARGEST_BYTES = 60_000


def _loop(rng: random.Random, model: Any) -> None:
    """Put nodes into the body of a loop, several times perhaps."""
    graph = model.graph
    nodes, written = _cut(rng, graph)
    first = len(graph.node)
    carried = _value_named(rng, graph)
    for level in range(rng.choice((1, 1, 1, 2, 4))):
        keeps = helper.make_node("Identity", [f"go{level}"], [f"on{level}"])
        inputs = [
            helper.make_tensor_value_info(f"turn{level}", TensorProto.INT64, []),
            helper.make_tensor_value_info(f"go{level}", TensorProto.BOOL, []),
            _named(rng, f"state{level}"),
        ]
        state = rng.choice((f"state{level}", written[0] if written else f"state{level}"))
        outputs = [helper.make_tensor_value_info(f"on{level}", TensorProto.BOOL, [])]
        outputs += [_named(rng, name) for name in (state, *written)]
        body = helper.make_graph([keeps, *nodes], "body", inputs, outputs)
        loop_inputs = [_trips(rng, model), _condition(rng, model), carried]
        loop_outputs = [f"last{level}", *written]
        nodes = [helper.make_node("Loop", loop_inputs, loop_outputs, body=body)]
    _rest_of(graph, nodes[0], rng.randrange(first + 1))


def _scan(rng: random.Random, model: Any) -> None:
    """Put nodes into the body of a scan."""
    graph = model.graph
    nodes, written = _cut(rng, graph)
    first = len(graph.node)
    body = helper.make_graph(
        nodes, "body", [_named(rng, "part")], [_named(rng, name) for name in written]
    )
    node = helper.make_node(
        "Scan",
        [_value_named(rng, graph)],
        written,
        body=body,
        num_scan_inputs=rng.choice((1, 1, 2)),
    )
    _rest_of(graph, node, rng.randrange(first + 1))


def _function(rng: random.Random, model: Any) -> None:
    """Put nodes into functions, each of which calls the one before once or twice."""
    graph = model.graph
    nodes, written = _cut(rng, graph)
    first = len(graph.node)
    read = list(dict.fromkeys(name for node in nodes for name in node.input if name))
    domain = "odd"
    opsets = [*model.opset_import, helper.make_opsetid(domain, 1)]
    if all(opset.domain != domain for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid(domain, 1))
    name = ""
    for _ in range(rng.choice((1, 1, 2, 6, 20, 40))):
        name = f"F{len(model.functions)}"
        function = helper.make_function(domain, name, read, written, nodes, opsets)
        model.functions.append(function)
        call = helper.make_node(rng.choice((name, name, "F0")), read, written, domain=domain)
        again = helper.make_node(name, read, [f"{output}_" for output in written], domain=domain)
        nodes = [call, again] if rng.randrange(2) else [call]
    _rest_of(graph, helper.make_node(name, read, written, domain=domain), rng.randrange(first + 1))


def _elements(rng: random.Random, model: Any) -> None:
    """Let elements lie in another file."""
    tensors = [tensor for graph in _graphs(model) for tensor in getattr(graph, "initializer", ())]
    tensors += [
        attribute.t
        for graph in _graphs(model)
        for node in graph.node
        for attribute in node.attribute
        if attribute.HasField("t")
    ]
    if not tensors:
        tensors = [model.graph.initializer.add(name="odd", data_type=1, dims=[2, 2])]
    tensor = rng.choice(tensors)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.ClearField("raw_data")
    entries = {
        "location": rng.choice((EXTERNAL_FILE, EXTERNAL_FILE, "../odd", "/etc/passwd", "", "a\0b")),
        "offset": rng.choice(("0", "4", "4095", "-1", str(2**63), "x")),
        "length": rng.choice(("16", "0", str(2**40), "9" * 30)),
    }
    for key in rng.sample(sorted(entries), rng.randrange(1, 4)):
        tensor.external_data.add(key=key, value=entries[key])


def _dimensions(rng: random.Random, model: Any) -> None:
    """Give an input or a constant other dimensions."""
    graph = rng.choice([graph for graph in _graphs(model) if hasattr(graph, "initializer")])
    if graph.initializer and rng.randrange(2):
        dims = rng.choice(graph.initializer).dims
        if dims and rng.randrange(2):
            dims[rng.randrange(len(dims))] = rng.choice(SIZES)
        else:
            dims.append(rng.choice(SIZES))
        return
    values = [*graph.input, *graph.output, *graph.value_info]
    if values:
        dims = rng.choice(values).type.tensor_type.shape.dim
        if dims and rng.randrange(3):
            dims[rng.randrange(len(dims))].dim_value = rng.choice(SIZES)
        elif rng.randrange(2):
            dims.add().dim_param = rng.choice(("n", "", "odd"))
        else:
            dims.add().dim_value = rng.choice(SIZES)


def _types(rng: random.Random, model: Any) -> None:
    """Give a tensor another type."""
    graph = rng.choice([graph for graph in _graphs(model) if hasattr(graph, "initializer")])
    kind = rng.randrange(30)
    if graph.initializer and rng.randrange(2):
        rng.choice(graph.initializer).data_type = kind
        return
    values = [*graph.input, *graph.output, *graph.value_info]
    if values:
        value = rng.choice(values)
        if rng.randrange(6):
            value.type.tensor_type.elem_type = kind
        else:
            value.type.sequence_type.elem_type.tensor_type.elem_type = kind


def _many(rng: random.Random, model: Any) -> None:
    """Repeat a node, an operand or a number of an attribute very often."""
    node = rng.choice([node for graph in _graphs(model) for node in graph.node])
    count, change = rng.choice((10, 100, 300)), rng.randrange(4)
    if change == 0 and node.input:
        node.input.extend([rng.choice(node.input)] * count)
    elif change == 1:
        node.output.extend(f"odd_{number}" for number in range(count))
    elif change == 2 and node.attribute:
        attribute = rng.choice(node.attribute)
        attribute.ints.extend([rng.choice(NUMBERS)] * count)
    elif node.input and node.output:
        name, chain = node.output[0], []
        for number in range(count):
            chain.append(helper.make_node(node.op_type, [name], [f"chain_{number}"]))
            name = f"chain_{number}"
        model.graph.node.extend(chain)
        model.graph.output.append(_named(rng, name))


_CHANGES: tuple[Callable[[random.Random, Any], None], ...] = (
    lambda rng, model: _change(model, rng),
    _branch,
    _loop,
    _scan,
    _function,
    _elements,
    _dimensions,
    _types,
    _many,
)


def structured_model(number: int) -> bytes:
    """A model of which nodes lie in graphs and functions, with other sizes, types and elements."""
    rng = random.Random(number)
    model = onnx.load_model_from_string(rng.choice((rng.choice(nested_models()), _node(rng))))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if model.graph.node:
            rng.choice(_CHANGES)(rng, model)
    return bytes(model.SerializeToString())
