"""Makes up models with IF and WHILE around chains of simple operations."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Array
from armpy_nnapi.codes import OPERAND_TRAITS, OperandCode, OperationCode
from armpy_nnapi.description.model_description import (
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)

CONTROL_FLOW = 0.05
"""Part of the models that have control flow."""

_TYPES = (
    OperandCode.TENSOR_FLOAT32,
    OperandCode.TENSOR_FLOAT16,
    OperandCode.TENSOR_INT32,
    OperandCode.TENSOR_QUANT8_ASYMM,
    OperandCode.TENSOR_QUANT8_ASYMM_SIGNED,
)
_MOST_TURNS = 5
_GROWING = 0.2
"""Part of the loops whose tensor grows with every turn, so that its size is not known."""


@dataclass(eq=False, slots=True)
class _GraphMaker:
    """A graph under construction."""

    operands: list[Operand] = field(default_factory=list)
    nodes: list[OperationNode] = field(default_factory=list)

    def add(self, operand: Operand) -> int:
        self.operands.append(operand)
        return len(self.operands) - 1

    def constant(self, kind: Operand, data: Array) -> int:
        """Add a constant with the type and quantisation of another operand."""
        return self.add(
            Operand(
                kind.type,
                data.shape,
                kind.scale,
                kind.zero_point,
                Lifetime.CONSTANT_COPY,
                data.tobytes(),
            )
        )

    def number(self, value: int) -> int:
        """Add an INT32 scalar."""
        return self.constant(Operand(OperandCode.INT32), np.asarray(value, np.int32))

    def model(self, index: int) -> int:
        """Add an operand that stands for a referenced graph."""
        return self.add(Operand(OperandCode.MODEL, lifetime=Lifetime.SUBGRAPH, subgraph=index))

    def operation(self, code: OperationCode, inputs: list[int], kinds: list[Operand]) -> list[int]:
        """Add an operation with outputs of some kinds."""
        outputs = [self.add(kind) for kind in kinds]
        self.nodes.append(OperationNode(code, tuple(inputs), tuple(outputs)))
        return outputs

    def finish(self, outputs: list[int]) -> Subgraph:
        """The graph; every operand of lifetime SUBGRAPH_INPUT is an input."""
        for index in outputs:
            self.operands[index] = _as(self.operands[index], Lifetime.SUBGRAPH_OUTPUT)
        inputs = [
            index
            for index, operand in enumerate(self.operands)
            if operand.lifetime is Lifetime.SUBGRAPH_INPUT
        ]
        return Subgraph(tuple(self.operands), tuple(self.nodes), tuple(inputs), tuple(outputs))


def _as(kind: Operand, lifetime: Lifetime) -> Operand:
    """An operand of the same type, dimensions and quantisation."""
    return Operand(kind.type, kind.dimensions, kind.scale, kind.zero_point, lifetime)


def control_flow_model(random: np.random.Generator) -> tuple[ModelDescription, tuple[Array, ...]]:
    """Make up a model with one IF or one WHILE, whose body may hold another IF.

    Returns
    -------
    description : ModelDescription
    inputs : tuple of ndarray
    """
    code = OperandCode(int(random.choice(_TYPES)))
    shape = tuple(int(dim) for dim in random.integers(1, 5, int(random.integers(1, 4))))
    traits = OPERAND_TRAITS[code]
    scale, zero_point = (
        (0.5, int(random.integers(*traits.zero_points))) if traits.needs_scale else (0.0, 0)
    )
    kind = Operand(code, shape, scale, zero_point)
    maker = _ControlFlow(random, kind)
    return maker.loop() if random.random() < 0.6 else maker.branch()


class _ControlFlow:
    """Makes up the graphs of one model."""

    def __init__(self, random: np.random.Generator, kind: Operand) -> None:
        self._random = random
        self._kind = kind
        self._referenced: list[Subgraph] = []

    def branch(self) -> tuple[ModelDescription, tuple[Array, ...]]:
        """IF on an input, with two chains."""
        main = _GraphMaker()
        condition = Operand(OperandCode.TENSOR_BOOL8, (1,), lifetime=Lifetime.SUBGRAPH_INPUT)
        flag = main.add(condition)
        tensor = main.add(_as(self._kind, Lifetime.SUBGRAPH_INPUT))
        (result,) = self._if(main, flag, tensor)
        description = ModelDescription(main.finish([result]), tuple(self._referenced))
        return description, (self._random.random(1) < 0.5, self._elements())

    def _if(self, graph: _GraphMaker, flag: int, tensor: int) -> list[int]:
        """Add an IF with two chains to a graph."""
        branches = [graph.model(self._refer(self._chain_graph())) for _ in range(2)]
        return graph.operation(OperationCode.IF, [flag, *branches, tensor], [self._kind])

    def loop(self) -> tuple[ModelDescription, tuple[Array, ...]]:
        """WHILE with a counter and a tensor that a chain works on, or that grows."""
        can_grow = self._kind.type != OperandCode.TENSOR_INT32  # CONCATENATION does not take it
        grows = can_grow and bool(self._random.random() < _GROWING)
        carried = self._kind
        if grows:
            carried = Operand(
                carried.type, (0, *carried.dimensions[1:]), carried.scale, carried.zero_point
            )
        counter = Operand(OperandCode.TENSOR_INT32, (1,))
        condition = self._refer(self._condition(counter, carried))
        body = self._refer(self._body(counter, carried, grows))
        main = _GraphMaker()
        models = [main.model(condition), main.model(body)]
        start = main.add(_as(counter, Lifetime.SUBGRAPH_INPUT))
        tensor = main.add(_as(self._kind, Lifetime.SUBGRAPH_INPUT))
        outputs = main.operation(OperationCode.WHILE, [*models, start, tensor], [counter, carried])
        description = ModelDescription(main.finish(outputs), tuple(self._referenced))
        return description, (np.zeros(1, np.int32), self._elements())

    def _condition(self, counter: Operand, carried: Operand) -> Subgraph:
        """Return whether the counter is below a limit."""
        graph = _GraphMaker()
        count = graph.add(_as(counter, Lifetime.SUBGRAPH_INPUT))
        graph.add(_as(carried, Lifetime.SUBGRAPH_INPUT))
        turns = np.asarray([self._random.integers(0, _MOST_TURNS + 1)], np.int32)
        limit = graph.constant(counter, turns)
        kind = Operand(OperandCode.TENSOR_BOOL8, (1,))
        return graph.finish(graph.operation(OperationCode.LESS, [count, limit], [kind]))

    def _body(self, counter: Operand, carried: Operand, grows: bool) -> Subgraph:
        """One more turn."""
        graph = _GraphMaker()
        count = graph.add(_as(counter, Lifetime.SUBGRAPH_INPUT))
        tensor = graph.add(_as(carried, Lifetime.SUBGRAPH_INPUT))
        unit = graph.constant(counter, np.ones(1, np.int32))
        none = graph.number(0)
        (following,) = graph.operation(OperationCode.ADD, [count, unit, none], [counter])
        if grows:
            addition = graph.constant(carried, self._elements())
            axis = graph.number(0)
            (result,) = graph.operation(
                OperationCode.CONCATENATION, [tensor, addition, axis], [carried]
            )
        elif self._random.random() < 0.3:
            kind = Operand(OperandCode.TENSOR_BOOL8, (1,))
            (flag,) = graph.operation(OperationCode.EQUAL, [count, unit], [kind])
            (result,) = self._if(graph, flag, tensor)
        else:
            result = self._chain(graph, tensor)
        return graph.finish([following, result])

    def _chain_graph(self) -> Subgraph:
        graph = _GraphMaker()
        tensor = graph.add(_as(self._kind, Lifetime.SUBGRAPH_INPUT))
        return graph.finish([self._chain(graph, tensor)])

    def _chain(self, graph: _GraphMaker, tensor: int) -> int:
        """One to three operations that keep type, dimensions and quantisation."""
        for _ in range(int(self._random.integers(1, 4))):
            code = OperationCode(int(self._random.choice([_ADD, _SUB, _MAXIMUM, _MINIMUM])))
            other = graph.constant(self._kind, self._elements())
            inputs = [tensor, other]
            if code in (_ADD, _SUB):
                inputs.append(graph.number(0))
            (tensor,) = graph.operation(code, inputs, [self._kind])
        return tensor

    def _refer(self, graph: Subgraph) -> int:
        """Keep a graph that operands refer to; its index."""
        self._referenced.append(graph)
        return len(self._referenced) - 1

    def _elements(self) -> Array:
        """Elements of the tensor that everything is about."""
        dtype = self._kind.data_type.dtype
        if dtype.kind == "f":
            return np.asarray(self._random.uniform(-2, 2, self._kind.dimensions), dtype)
        low, high = (-100, 100) if dtype == np.int32 else self._kind.data_type.integer_range
        return self._random.integers(low, high + 1, self._kind.dimensions).astype(dtype)


_ADD, _SUB = OperationCode.ADD, OperationCode.SUB
_MAXIMUM, _MINIMUM = OperationCode.MAXIMUM, OperationCode.MINIMUM
