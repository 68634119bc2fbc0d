"""Small graphs for control flow to run."""

from __future__ import annotations

from collections.abc import Callable

from armpy.execution import LoadedNetwork
from armpy.graph import Graph, Value
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Comparison, ComparisonOperation, Concat, If, While
from armpy.ops.operation import Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.models.networks import ADD, f32, floats, i32, ints

LESS = Comparison(ComparisonOperation.LESS)
BOOL = TensorInfo((1,), DataType.BOOLEAN)


def graph_of(
    infos: list[TensorInfo], build: Callable[..., Value | tuple[Value, ...]], name: str = "graph"
) -> Graph:
    """A graph whose inputs ``in0``, ``in1``, ... a function takes and whose outputs it returns."""
    net = Network(name)
    inputs = [net.input(f"in{i}", info) for i, info in enumerate(infos)]
    outputs = build(net, *inputs)
    for index, value in enumerate(outputs if isinstance(outputs, tuple) else (outputs,)):
        net.output(f"out{index}", value)
    return net.build()


def applied(operation: Operation, constant: object, info: TensorInfo) -> Graph:
    """A graph of one layer with a constant: ``operation(in0, constant)``."""
    return graph_of(
        [info], lambda net, x: net.add(operation, x, net.constant(constant), name="inner")
    )


def below(limit: int, *more: TensorInfo) -> Graph:
    """The condition ``in0 < limit`` of a loop that also carries values of other infos."""
    return graph_of([i32(1), *more], lambda net, i, *_: net.add(LESS, i, net.constant(ints(limit))))


def counting(*more: TensorInfo, body: Callable[..., tuple[Value, ...]] | None = None) -> Graph:
    """A body that counts in ``in0`` and does with the other values what a function says."""

    def build(net: Network, i: Value, *values: Value) -> tuple[Value, ...]:
        counted = net.add(ADD, i, net.constant(ints(1)), name="count")
        return (counted, *(body(net, i, *values) if body else ()))

    return graph_of([i32(1), *more], build)


def loop(limit: int) -> Graph:
    """``while in0 < limit: in0 += 1`` as a layer named ``loop``."""
    return graph_of([i32(1)], lambda net, i: net.add(counter(limit), i, name="loop"))


def counter(limit: int) -> While:
    """``while in0 < limit: in0 += 1``."""
    return While(below(limit), counting())


def chosen(then_graph: Graph, else_graph: Graph, *infos: TensorInfo) -> Graph:
    """An If layer named ``choice`` and nothing else; its condition is the first input."""
    return graph_of(
        [BOOL, *infos],
        lambda net, *inputs: (
            net.add_layer(If(then_graph, else_graph), inputs, name="choice").outputs
        ),
    )


def doubling(num_levels: int) -> Graph:
    """Choices in each other: each runs the next level twice, and the innermost adds 1."""
    inner = graph_of([BOOL, i32(1)], lambda net, _, i: net.add(ADD, i, net.constant(ints(1))))
    for _ in range(num_levels):
        choice = If(inner, inner)

        def twice(net: Network, c: Value, i: Value, choice: If = choice) -> Value:
            return net.add(choice, c, c, net.add(choice, c, c, i, name="one"), name="other")

        inner = graph_of([BOOL, i32(1)], twice)
    return inner


def growing(limit: int, info: TensorInfo | None = None, *, is_read: bool = False) -> Graph:
    """A loop that appends 1 to a vector of float32 in each turn, which also adds 0 if it reads."""
    vector = info or f32(None)

    def append(net: Network, _: Value, values: Value) -> tuple[Value, ...]:
        if is_read:
            values = net.add(ADD, values, net.constant(floats(0)))
        return (net.add(Concat(0), values, net.constant(floats(1)), name="append"),)

    operation = While(below(limit, vector), counting(vector, body=append))
    return graph_of(
        [i32(1), vector],
        lambda net, *inputs: net.add_layer(operation, inputs, name="grow").outputs,
    )


def loaded(model: Model) -> LoadedNetwork:
    """The network of a model."""
    return model.runtime.get_network(model.network_id)
