"""Small .tflite models with several subgraphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from armpy_testing.models.networks import floats, ints
from armpy_testing.models.tflite_writer import Subgraph, Tensor, TfliteModel

Build = Callable[[Subgraph, Sequence[Tensor]], Sequence[Tensor]]
"""Adds a subgraph's operators; its outputs."""

Spec = tuple[str, tuple[int, ...]]
"""Element type and shape."""


def add_subgraph(model: TfliteModel, name: str, inputs: Sequence[Spec], build: Build) -> int:
    """Add a subgraph whose inputs are named ``<name>_0``, ...; its index."""
    graph = model.subgraph(name)
    tensors = [
        graph.tensor(f"{name}_{i}", shape, kind, shape_signature=[-1] * len(shape))
        for i, (kind, shape) in enumerate(inputs)
    ]
    outputs = build(graph, tensors)
    graph.inputs(*tensors)
    graph.outputs(*outputs)
    return graph.index


def binary(code: str, constant: object, kind: str = "FLOAT32") -> Build:
    """``code(input 0, constant)``."""

    def build(graph: Subgraph, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        dtype = np.float32 if kind == "FLOAT32" else np.int32
        array = np.asarray(constant, dtype)
        other = graph.tensor("constant", array.shape, kind, data=array)
        result = graph.tensor("result", (), kind)
        graph.operator(code, [inputs[0], other], [result], {})
        return [result]

    return build


def below(limit: int) -> Build:
    """``input 0 < limit``."""

    def build(graph: Subgraph, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        end = graph.tensor("end", (1,), "INT32", data=ints(limit))
        result = graph.tensor("more", (1,), "BOOL")
        graph.operator("LESS", [inputs[0], end], [result], {})
        return [result]

    return build


def counted(graph: Subgraph, counter: Tensor) -> Tensor:
    """``counter + 1``."""
    unit = graph.tensor("one", (1,), "INT32", data=ints(1))
    result = graph.tensor("counted", (1,), "INT32")
    graph.operator("ADD", [counter, unit], [result], {})
    return result


def appending(graph: Subgraph, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
    """A body that counts in input 0 and appends a 7 to input 1."""
    seven = graph.tensor("seven", (1,), "FLOAT32", data=floats(7))
    longer = graph.tensor("longer", (3,), "FLOAT32")
    graph.operator("CONCATENATION", [inputs[1], seven], [longer], {"axis": 0})
    return [counted(graph, inputs[0]), longer]


def doubling(graph: Subgraph, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
    """A body that counts in input 0, doubles input 1 and hands input 2 on."""
    total = graph.tensor("total", (2,), "FLOAT32")
    graph.operator("ADD", [inputs[1], inputs[1]], [total], {})
    return [counted(graph, inputs[0]), total, inputs[2]]


def if_model(then_build: Build, else_build: Build, shape: tuple[int, ...] = (2,)) -> TfliteModel:
    """An IF of a condition and one FLOAT32 tensor."""
    model = TfliteModel()
    main = model.subgraph("main")
    condition = main.tensor("condition", (1,), "BOOL")
    x = main.tensor("x", shape, "FLOAT32")
    y = main.tensor("y", shape, "FLOAT32")
    add_subgraph(model, "then", [("FLOAT32", shape)], then_build)
    add_subgraph(model, "else", [("FLOAT32", shape)], else_build)
    main.operator("IF", [condition, x], [y], {"then_subgraph_index": 1, "else_subgraph_index": 2})
    main.inputs(condition, x)
    main.outputs(y)
    return model


def while_model(condition: Build, body: Build, specs: Sequence[Spec]) -> TfliteModel:
    """A WHILE that carries all its inputs."""
    model = TfliteModel()
    main = model.subgraph("main")
    inputs = [main.tensor(f"in{i}", shape, kind) for i, (kind, shape) in enumerate(specs)]
    outputs = [main.tensor(f"out{i}", shape, kind) for i, (kind, shape) in enumerate(specs)]
    add_subgraph(model, "condition", specs, condition)
    add_subgraph(model, "body", specs, body)
    main.operator("WHILE", inputs, outputs, {"cond_subgraph_index": 1, "body_subgraph_index": 2})
    main.inputs(*inputs)
    main.outputs(*outputs)
    return model


def variable_model(*, initial: Sequence[float] | None = (1, 2)) -> TfliteModel:
    """Adds its input to a variable: the sum, and the variable's previous value."""
    model = TfliteModel()
    main = model.subgraph("main")
    x = main.tensor("x", (2,), "FLOAT32")
    if initial is not None:
        setup = model.subgraph("setup")
        handle = setup.tensor("handle", (), "RESOURCE")
        setup.operator("VAR_HANDLE", [], [handle], {"shared_name": "state"})
        first = setup.tensor("first", (2,), "FLOAT32", data=floats(*initial))
        setup.operator("ASSIGN_VARIABLE", [handle, first], [], {})
        main.operator("CALL_ONCE", [], [], {"init_subgraph_index": setup.index})
    handle = main.tensor("handle", (), "RESOURCE")
    before, total, after = (main.tensor(n, (2,), "FLOAT32") for n in ("before", "total", "after"))
    main.operator("VAR_HANDLE", [], [handle], {"shared_name": "state"})
    main.operator("READ_VARIABLE", [handle], [before], {})
    main.operator("ADD", [before, x], [total], {})
    main.operator("ASSIGN_VARIABLE", [handle, total], [], {})
    main.operator("READ_VARIABLE", [handle], [after], {})
    main.inputs(x)
    main.outputs(after, before)
    return model


def small_models() -> tuple[TfliteModel, ...]:
    """One model per kind of control flow."""
    counter = ("INT32", (1,))
    vectors = [counter, ("FLOAT32", (2,)), ("FLOAT32", (3,))]
    return (
        if_model(binary("ADD", [1]), binary("MUL", [[1], [2]])),
        while_model(below(5), doubling, vectors),
        while_model(below(5), appending, vectors[:2]),
        variable_model(),
    )
