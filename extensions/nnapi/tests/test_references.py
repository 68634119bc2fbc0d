"""Models in models: each keeps its own, however they are made and for how long they are held."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armpy_nnapi import Model, ModelBuilder, OperandCode, OperationCode
from armpy_nnapi.description.model_description import (
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)
from armpy_nnapi.model.references import References

from .nnapi_models import BOOL_1, FLOAT_2, compiled, devices_of, floats

C = OperandCode
DEVICES = devices_of()
TRUTHS = (np.array([False]), np.array([True]))


def step(number: float) -> Model:
    """A model of a truth value and two numbers, to which it adds another one."""
    builder = ModelBuilder(DEVICES)
    builder.input(BOOL_1)
    x = builder.input(FLOAT_2)
    return builder.finish(builder.add(x, floats(number, number)))


def test_models_without_other_references_stay_distinct() -> None:
    builder = ModelBuilder(DEVICES)
    condition, x = builder.input(BOOL_1), builder.input(FLOAT_2)
    for number in range(20):  # each is gone before the next is made
        (x,) = builder.if_(condition, step(number), step(-number), [condition, x], [FLOAT_2])
    compilation = compiled(builder.finish(x))
    answers = [compilation(truth, floats(0, 1))[0].tolist() for truth in TRUTHS]
    assert answers == [[-190, -189], [190, 191]]


IN, OUT = Lifetime.SUBGRAPH_INPUT, Lifetime.SUBGRAPH_OUTPUT
TRUTH, X = Operand(C.TENSOR_BOOL8, (1,), lifetime=IN), Operand(C.TENSOR_FLOAT32, (2,), lifetime=IN)
Y = replace(X, lifetime=OUT)


def leaf(operation: OperationCode) -> Subgraph:
    """A graph of one operation."""
    return Subgraph((TRUTH, X, Y), (OperationNode(operation, (1,), (2,)),), (0, 1), (2,))


def test_one_graph_means_another_in_another_description() -> None:
    branch = Operand(C.MODEL, lifetime=Lifetime.SUBGRAPH, subgraph=0)
    node = OperationNode(OperationCode.IF, (0, 3, 3, 0, 1), (2,))
    shared = Subgraph((TRUTH, X, Y, branch), (node,), (0, 1), (2,))
    builder = ModelBuilder(DEVICES)
    condition, x = builder.input(BOOL_1), builder.input(FLOAT_2)
    floor, positive = (
        Model.from_description(ModelDescription(shared, (leaf(operation),)), DEVICES)
        for operation in (OperationCode.FLOOR, OperationCode.ABS)
    )
    (chosen,) = builder.if_(condition, floor, positive, [condition, x], [FLOAT_2])
    compilation = compiled(builder.finish(chosen))
    answers = [compilation(truth, floats(-1.5, 2.5))[0].tolist() for truth in TRUTHS]
    assert answers == [[1.5, 2.5], [-2, 2]]


def choice(then: Model, other: Model) -> Model:
    """An IF between two models of a truth value and two numbers."""
    builder = ModelBuilder(DEVICES)
    condition, x = builder.input(BOOL_1), builder.input(FLOAT_2)
    (chosen,) = builder.if_(condition, then, other, [condition, x], [FLOAT_2])
    return builder.finish(chosen)


def test_models_reached_on_many_paths_are_there_once() -> None:
    first, other = step(1), step(2)
    for _ in range(8):
        first, other = choice(first, other), choice(other, first)
    assert len(first.description.referenced) == 2 * 8


def test_graphs_that_differ_in_a_buffer_alone_are_two() -> None:
    def description(number: float) -> ModelDescription:
        constant = replace(X, lifetime=Lifetime.CONSTANT_COPY, data=floats(number, 0).tobytes())
        node = OperationNode(OperationCode.MAXIMUM, (1, 3), (2,))
        return ModelDescription(Subgraph((TRUTH, X, Y, constant), (node,), (0, 1), (2,)))

    first, other = description(1), description(2)
    references = References()
    assert [
        references.add(each_description) for each_description in (first, other, first, other)
    ] == [0, 1, 0, 1]
    assert references.graphs == (first.main, other.main)
