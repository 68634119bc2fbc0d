"""Models in models: each keeps its own, however they are made and for how long they are held."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

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


class Step:
    """Adds a number: what a branch of no further branches does."""

    def __init__(self, random_: random.Random) -> None:
        self._number = random_.randrange(1, 1000)

    def model(self) -> Model:
        """The step as a model."""
        builder = ModelBuilder(DEVICES)
        builder.input(BOOL_1)
        x = builder.input(FLOAT_2)
        return builder.finish(builder.add(x, floats(self._number, self._number)))

    def expected(self, condition: bool, x: float) -> float:
        """Its result for a number."""
        return x + self._number


class Chain:
    """IFs one after the other, each with branches that are steps or chains again."""

    def __init__(self, random_: random.Random, depth: int) -> None:
        self._pairs = [
            [Chain(random_, depth - 1) if depth else Step(random_) for _ in range(2)]
            for _ in range(random_.randrange(1, 4))
        ]

    def model(self) -> Model:
        """The chain as a model, which has the only references to the models in it."""
        builder = ModelBuilder(DEVICES)
        condition, x = builder.input(BOOL_1), builder.input(FLOAT_2)
        for then, other in self._pairs:
            (x,) = builder.if_(condition, then.model(), other.model(), [condition, x], [FLOAT_2])
        return builder.finish(x)

    def expected(self, condition: bool, x: float) -> float:
        """Its result for a number."""
        for then, other in self._pairs:
            x = (then if condition else other).expected(condition, x)
        return x


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_models_without_other_references_stay_distinct(seed: int) -> None:
    chain = Chain(random.Random(seed), depth=1)
    compilation = compiled(chain.model())
    for truth in TRUTHS:
        expected = chain.expected(bool(truth[0]), 0.0)
        assert compilation(truth, floats(0, 0))[0].tolist() == [expected, expected]


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
    random_ = random.Random(1)
    first, other = Step(random_).model(), Step(random_).model()
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
