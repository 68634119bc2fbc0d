"""Cases of If and While: branches, loops, both in each other, and captured tensors.

Most second executions take the other branch or another number of turns, so that neither a decision
nor what a loop carries can be left over from the first one; some take the same branch with other
values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np

from armpy.graph import Graph, Value
from armpy.graph.network import Network
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    FullyConnected,
    If,
    Operation,
    Transpose,
    While,
)
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance.case import Case, CaseInput

FLAG = TensorInfo((1,), DataType.BOOLEAN)
COUNT = TensorInfo((1,), DataType.SIGNED32)

_SHAPE = (2, 3)
_FLOATS = TensorInfo(_SHAPE, DataType.FLOAT32)
_BYTES = TensorInfo(_SHAPE, DataType.QASYMM_S8, Quantization.per_tensor(1 / 8, 3))
_LABELS = {"float32": _FLOATS, "qasymm_s8": _BYTES}

Build = Callable[..., tuple[Value, ...]]
"""Adds layers to a network, of which it is given the inputs, and returns the outputs."""

_MINUS = BinaryOperation.SUB
_TURNS = 3
_MANY_TURNS = 1_100
"""More turns than a byte can count, and than usual limits that are round numbers."""


def graph_of(infos: Sequence[TensorInfo], build: Build) -> Graph:
    """A graph with inputs of these infos."""
    net = Network("inner")
    values = [net.input(f"in_{number}", info) for number, info in enumerate(infos)]
    for number, value in enumerate(build(net, *values)):
        net.output(f"out_{number}", value)
    return net.build()


def binary(net: Network, x: Value, y: Value, kind: BinaryOperation = BinaryOperation.ADD) -> Value:
    """Add a sum or the like, stored as its first operand is."""
    return net.add(ElementwiseBinary(kind), x, y, output=x.info.with_shape(None))


def constant(net: Network, like: TensorInfo, numbers: object) -> Value:
    """Add a constant of stored elements."""
    elements = np.broadcast_to(np.asarray(numbers, like.data_type.dtype), like.known_shape).copy()
    return net.constant(elements, data_type=like.data_type, quantization=like.quantization)


def choice(infos: Sequence[TensorInfo], then: Build, other: Build) -> If:
    """An If between two graphs, which read the same values."""
    return If(graph_of(infos, then), graph_of(infos, other))


def loop(infos: Sequence[TensorInfo], body: Build, limit: int | None = None) -> While:
    """A While that counts in its first value up to a limit, or up to its last value.

    Parameters
    ----------
    infos : sequence of TensorInfo
        Of all values, the counter in front.
    body : callable
        The outputs are the carried values without the counter.
    limit : int, optional
        The last value is the limit if left out.
    """

    def condition(net: Network, *values: Value) -> tuple[Value, ...]:
        end = values[-1] if limit is None else constant(net, COUNT, limit)
        return (net.add(Comparison(ComparisonOperation.LESS), values[0], end),)

    def turn(net: Network, *values: Value) -> tuple[Value, ...]:
        counted = binary(net, values[0], constant(net, COUNT, 1))
        return (counted, *body(net, *values))

    return While(graph_of(infos, condition), graph_of(infos, turn))


def add_all(net: Network, operation: Operation, *values: Value) -> tuple[Value, ...]:
    """Add a layer; all of its outputs."""
    return net.add_layer(operation, values).outputs


def _elements(info: TensorInfo, seed: int) -> Array:
    """Multiples of 1/4, or stored elements."""
    rng = np.random.default_rng(seed)
    if info.data_type.is_float:
        return (rng.integers(-8, 9, info.known_shape) / 4).astype(np.float32)
    return rng.integers(-60, 60, info.known_shape).astype(info.data_type.dtype)


def _case(name: str, operation: Operation, *operands: tuple[TensorInfo, object, object]) -> Case:
    """A case of values for two executions; None stands for elements made of chance."""
    first, second = (
        tuple(
            _elements(info, 2 * number + turn)
            if item[1 + turn] is None
            else np.asarray(item[1 + turn], info.data_type.dtype).reshape(info.known_shape)
            for number, item in enumerate(operands)
            for info in item[:1]
        )
        for turn in (0, 1)
    )
    inputs = tuple(CaseInput(item[0], data) for item, data in zip(operands, first, strict=True))
    outputs = operation.infer([item.info for item in inputs])
    return Case(f"{operation.name}/{name}", operation, inputs, outputs, again=second)


@cache
def control_flow_cases() -> tuple[Case, ...]:
    """Every case of If and While."""
    return (*_choices(), *_loops())


def _choices() -> Iterator[Case]:
    yes_no = (FLAG, True, False)
    for label, info in _LABELS.items():
        yield from _choices_in(label, info)
    computed = choice((FLAG, _FLOATS), _by_value, lambda net, c, x: _by_value(net, c, x, False))
    yield _case("computed-conditions/float32", computed, yes_no, yes_no, (_FLOATS, None, None))


def _choices_in(label: str, info: TensorInfo) -> Iterator[Case]:
    """Cases of If on elements of a type."""
    yes_no = (FLAG, True, False)
    any_two = ((info, None, None), (info, None, None))
    both = choice(
        (info, info),
        lambda net, x, y: (binary(net, x, y),),
        lambda net, x, y: (binary(net, x, y, BinaryOperation.MAXIMUM),),
    )
    yield _case(f"basic/{label}", both, yes_no, *any_two)
    yield _case(f"basic-no-yes/{label}", both, (FLAG, False, True), *any_two)
    yield _case(f"twice-yes/{label}", both, (FLAG, True, True), *any_two)
    yield _case(f"twice-no/{label}", both, (FLAG, False, False), *any_two)
    scalar = TensorInfo((), DataType.BOOLEAN)
    yield _case(f"scalar-condition/{label}", both, (scalar, False, True), *any_two)
    yield _case(f"nested/{label}", _nested(info), yes_no, (FLAG, False, True), *any_two)
    through = choice((info, info), lambda _, x, y: (x, y), lambda _, x, y: (y, x))
    yield _case(f"through/{label}", through, yes_no, *any_two)
    selection = choice(
        (info, info),
        lambda net, x, _: (binary(net, x, x),),
        lambda net, _, y: (binary(net, y, y),),
    )
    yield _case(f"unused-inputs/{label}", selection, yes_no, *any_two)
    captured = choice(
        (info,),
        lambda net, _: (constant(net, info, np.arange(6).reshape(2, 3)),),
        lambda net, x: (binary(net, x, constant(net, info, 17)),),
    )
    yield _case(f"constants/{label}", captured, (FLAG, False, True), (info, None, None))
    twice = choice((info,), _two_times, lambda _, x: (x, x))
    yield _case(f"one-value-twice/{label}", twice, yes_no, (info, None, None))
    longer = choice((info, info), _several, lambda net, x, y: (binary(net, y, x),))
    yield _case(f"several-layers/{label}", longer, yes_no, *any_two)
    turns = loop((COUNT, info), lambda net, _, x: (binary(net, x, x),), _TURNS)
    looped = choice(
        (COUNT, info),
        lambda net, i, x: add_all(net, turns, i, x),
        lambda net, i, x: (i, binary(net, x, constant(net, info, 5))),
    )
    yield _case(f"with-a-loop/{label}", looped, yes_no, (COUNT, 1, 0), (info, None, None))


def _two_times(net: Network, x: Value) -> tuple[Value, ...]:
    value = binary(net, x, x)
    return value, value


def _several(net: Network, x: Value, y: Value) -> tuple[Value, ...]:
    """Layers that read each other."""
    value = binary(net, net.add(Activation(ActivationFunction.RELU), x, output=x.info), y)
    turned = net.add(Transpose((1, 0)), value, output=value.info.with_shape(None))
    back = net.add(Transpose((1, 0)), turned, output=value.info.with_shape(None))
    return (binary(net, back, x, BinaryOperation.MINIMUM),)


def _by_value(net: Network, c: Value, x: Value, is_first: bool = True) -> tuple[Value, ...]:
    """A choice by a comparison inside a branch."""
    other = net.add(Comparison(ComparisonOperation.EQUAL), c, c)
    inner = choice(
        (_FLOATS,),
        lambda net, x: (binary(net, x, constant(net, _FLOATS, 2 if is_first else 3)),),
        lambda net, x: (binary(net, x, x),),
    )
    return add_all(net, inner, other, x)


def _nested(info: TensorInfo) -> If:
    """Choices in both branches, by the same condition."""
    inner = choice(
        (info, info),
        lambda net, x, y: (binary(net, x, y, BinaryOperation.MAXIMUM),),
        lambda net, x, y: (binary(net, x, y, BinaryOperation.MINIMUM),),
    )
    return choice(
        (FLAG, info, info),
        lambda net, c, x, y: add_all(net, inner, c, x, y),
        lambda net, c, x, y: (binary(net, add_all(net, inner, c, x, y)[0], x),),
    )


def _loops() -> Iterator[Case]:
    yield _case("counter/signed32", loop((COUNT,), lambda *_: (), _TURNS), (COUNT, 0, 2))
    yield _case("no-turn-first/signed32", loop((COUNT,), lambda *_: (), 4), (COUNT, 9, 1))
    many = loop((COUNT, COUNT), lambda net, i, x: (binary(net, x, i),), _MANY_TURNS)
    yield _case("many-turns/signed32", many, (COUNT, 0, 1_090), (COUNT, 0, 7))
    for label, info in _LABELS.items():
        yield from _loops_in(label, info)
    yield _case(
        "by-value/float32",
        _until_large(),
        *((TensorInfo((1,), DataType.FLOAT32), *pair) for pair in ((0.5, 3.0), (20.0, 5.0))),
    )


def _loops_in(label: str, info: TensorInfo) -> Iterator[Case]:
    """Cases of While on elements of a type."""
    pair = (COUNT, info, info)
    any_two = ((info, None, None), (info, None, None))
    start = (COUNT, 0, 2)
    total = loop(pair, lambda net, _, x, y: (binary(net, x, y), y), _TURNS)
    yield _case(f"sum/{label}", total, start, *any_two)
    yield _case(f"no-turn/{label}", total, (COUNT, 7, 7), *any_two)
    swap = loop(pair, lambda _, __, x, y: (y, x), _TURNS)
    yield _case(f"swap/{label}", swap, start, *any_two)
    yield _case(f"swap-even/{label}", swap, (COUNT, 1, 0), *any_two)
    fibonacci = loop(pair, lambda net, _, x, y: (y, binary(net, x, y)), _TURNS)
    yield _case(f"each-reads-the-other/{label}", fibonacci, start, *any_two)
    captured = loop(
        (COUNT, info, info, COUNT), lambda net, _, x, y, __: (binary(net, x, y, _MINUS),)
    )
    yield _case(f"captured/{label}", captured, start, *any_two, (COUNT, 2, 5))
    fixed = loop(
        pair,
        lambda net, _, x, __: (x, constant(net, info, np.arange(6).reshape(2, 3))),
        _TURNS,
    )
    yield _case(f"constants/{label}", fixed, (COUNT, 1, 3), *any_two)
    stepped = loop(
        (COUNT, info),
        lambda net, _, x: (binary(net, x, constant(net, info, 5)),),
        _TURNS,
    )
    yield _case(f"captured-constant/{label}", stepped, start, (info, None, None))
    chosen = _alternating(info)
    yield _case(f"with-a-choice/{label}", chosen, start, *any_two)
    for name, nested in _nested_loops(info).items():
        yield _case(f"{name}/{label}", nested, start, *any_two)
    yield _case(f"dense/{label}", _dense(info), start, (info, None, None))


def _alternating(info: TensorInfo) -> While:
    """A loop whose turns take the one branch or the other."""
    inner = choice(
        (info, info),
        lambda net, x, y: (binary(net, x, y, BinaryOperation.SUB),),
        lambda net, x, y: (binary(net, x, y, BinaryOperation.MAXIMUM),),
    )

    def body(net: Network, i: Value, x: Value, y: Value) -> tuple[Value, ...]:
        is_second = net.add(Comparison(ComparisonOperation.EQUAL), i, constant(net, COUNT, 1))
        return (*add_all(net, inner, is_second, x, y), y)

    return loop((COUNT, info, info), body, _TURNS)


def _nested_loops(info: TensorInfo) -> dict[str, While]:
    """Loops in loops: from a constant, up to the outer counter, and two in one turn."""
    inner = loop((COUNT, info, info), lambda net, _, x, y: (binary(net, x, y), y), 2)
    bounded = loop(
        (COUNT, info, info, COUNT), lambda net, _, x, y, __: (binary(net, x, y, _MINUS), y)
    )

    def from_constant(net: Network, _: Value, x: Value, y: Value) -> tuple[Value, ...]:
        return add_all(net, inner, constant(net, COUNT, 0), x, y)[1:]

    def up_to_outer(net: Network, i: Value, x: Value, y: Value) -> tuple[Value, ...]:
        return add_all(net, bounded, constant(net, COUNT, 0), x, y, i)[1:]

    def two(net: Network, i: Value, x: Value, y: Value) -> tuple[Value, ...]:
        _, x, y = add_all(net, inner, constant(net, COUNT, 1), x, y)
        return add_all(net, bounded, constant(net, COUNT, 0), y, x, i)[1:]

    builds = {"nested": from_constant, "nested-triangle": up_to_outer, "two-in-one": two}
    return {name: loop((COUNT, info, info), build, _TURNS) for name, build in builds.items()}


def _dense(info: TensorInfo) -> While:
    """A loop that multiplies with weights which no turn changes."""

    def body(net: Network, _: Value, x: Value) -> tuple[Value, ...]:
        square = np.array([[0, 1, 0], [1, 0, 1], [0, -1, 1]])
        if info.data_type.is_float:
            weights = net.constant(square.astype(np.float32))
        else:
            weights = net.constant(
                square.astype(np.int8),
                data_type=DataType.QSYMM_S8,
                quantization=Quantization.per_tensor(1.0),
            )
        return (net.add(FullyConnected(), x, weights, output=info),)

    return loop((COUNT, info), body, _TURNS)


def _until_large() -> While:
    """A loop whose number of turns is in the floats that it carries."""
    number = TensorInfo((1,), DataType.FLOAT32)
    infos = (number, number)
    return While(
        graph_of(
            infos, lambda net, x, end: (net.add(Comparison(ComparisonOperation.LESS), x, end),)
        ),
        graph_of(infos, lambda net, x, _: (binary(net, x, x),)),
    )
