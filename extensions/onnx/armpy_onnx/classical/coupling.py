"""Probabilities of classes from those of their pairs, as a loop of layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np

from armpy.graph import Graph, Value
from armpy.graph.network import Network, OperatorBuilder
from armpy.ops.control_flow import While
from armpy.ops.elementwise import (
    BinaryOperation,
    ComparisonOperation,
    UnaryOperation,
)
from armpy.ops.reduction import ReduceOperation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_onnx.blocks import (
    binary,
    both,
    compared,
    filled,
    gathered,
    joined,
    reduced,
    reshaped,
    selected,
    taken,
    transposed,
    unary,
)
from armpy_onnx.node import Node

_LEAST_SHARE = 1e-7
_MOST_TURNS = 100
_TOLERANCE = 0.005

_Build: TypeAlias = "Callable[[Node, Sequence[Value]], Sequence[Value]]"
"""Adds the layers of a graph: a node to add them by, the graph's inputs; gives its outputs."""


def coupled_probabilities(node: Node, shares: Value, num_classes: int) -> Value:
    """The probability of each class, (n, classes), from those of the first class of each pair.

    Notes
    -----
    float32, like ONNX Runtime. Each row has turns of its own: at most 100, and none after the one
    in which it satisfies the equations up to 0.005 divided by the number of classes.

    References
    ----------
    Wu, Lin, Weng, "Probability estimates for multi-class classification by pairwise coupling",
    2004, algorithm 2; libsvm, ``multiclass_probability``.
    """
    num_rows = shares.info.known_shape[0]
    matrix = _quadratic_form(node, shares, num_classes)
    ones = filled(node, shares, (num_rows, num_classes), 1)
    start = binary(node, BinaryOperation.DIV, ones, num_classes)
    values = [
        node.constant(np.zeros(1, np.int32), DataType.SIGNED32),
        node.constant(np.ones(1, np.bool_), DataType.BOOLEAN),
        start,
        matrix,
    ]
    loop = While(_graph_of(node, values, _condition), _graph_of(node, values, _turn))
    return node.layers(loop, values)[2]


def _graph_of(node: Node, values: Sequence[Value], build: _Build) -> Graph:
    """A graph that takes such values."""
    network = Network(node.data.name)
    infos = [TensorInfo(value.info.known_shape, value.info.data_type) for value in values]
    inputs = [network.input(f"input_{number}", info) for number, info in enumerate(infos)]
    inner = Node(OperatorBuilder.of(network), node.data, ())
    for number, value in enumerate(build(inner, inputs)):
        network.output(f"output_{number}", value)
    return network.build()


def _quadratic_form(node: Node, shares: Value, num_classes: int) -> Value:
    """The matrices whose form is least for the probabilities, (n, classes, classes)."""
    low = binary(node, BinaryOperation.MAXIMUM, shares, _LEAST_SHARE)
    first = binary(node, BinaryOperation.MINIMUM, low, 1 - _LEAST_SHARE)
    second = binary(node, BinaryOperation.SUB, 1, first)
    num_rows, num_pairs = shares.info.known_shape
    nothing = filled(node, shares, (num_rows, 1), 0)
    places = np.full((num_classes, num_classes), 2 * num_pairs, np.int32)
    for number, (i, j) in enumerate(combinations(range(num_classes), 2)):
        places[i, j], places[j, i] = number, num_pairs + number
    columns = joined(node, (first, second, nothing), 1)
    flat = gathered(node, columns, node.constant(places.reshape(-1), DataType.SIGNED32), 1)
    ratios = reshaped(node, flat, (num_rows, num_classes, num_classes))
    products = binary(node, BinaryOperation.MUL, ratios, transposed(node, ratios, (0, 2, 1)))
    squares = unary(node, UnaryOperation.SQUARE, ratios)
    totals = reduced(node, ReduceOperation.SUM, squares, (1,), True)
    identity = node.like(totals, np.eye(num_classes)[np.newaxis])
    diagonal = binary(node, BinaryOperation.MUL, totals, identity)
    return binary(node, BinaryOperation.SUB, diagonal, products)


def _condition(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    number, is_open = values[:2]
    is_early = compared(node, ComparisonOperation.LESS, number, _MOST_TURNS)
    return (both(node, is_early, is_open),)


def _turn(node: Node, values: Sequence[Value]) -> Sequence[Value]:
    """One turn for each row that is not done."""
    number, _, shares, matrix = values
    num_rows, num_classes = shares.info.known_shape
    spread = reshaped(node, shares, (num_rows, 1, num_classes))
    slopes = reduced(
        node,
        ReduceOperation.SUM,
        binary(node, BinaryOperation.MUL, matrix, spread),
        (2,),
        False,
    )
    height = reduced(
        node, ReduceOperation.SUM, binary(node, BinaryOperation.MUL, shares, slopes), (1,), True
    )
    errors = unary(node, UnaryOperation.ABS, binary(node, BinaryOperation.SUB, slopes, height))
    error = reduced(node, ReduceOperation.MAX, errors, (1,), True)
    limit = node.like(error, np.float32(_TOLERANCE) / np.float32(num_classes))
    is_open = compared(node, ComparisonOperation.GREATER_OR_EQUAL, error, limit)
    swept = _sweep(node, shares, slopes, height, matrix)
    return (
        binary(node, BinaryOperation.ADD, number, 1),
        reshaped(node, reduced(node, ReduceOperation.ANY, is_open, (0, 1), False), (1,)),
        selected(node, is_open, swept, shares),
    )


def _sweep(node: Node, shares: Value, slopes: Value, height: Value, matrix: Value) -> Value:
    """The probabilities after a step for each class, one after the other."""
    num_rows, num_classes = shares.info.known_shape
    state = joined(node, (shares, slopes), 1)
    for index in range(num_classes):
        row = reshaped(node, taken(node, matrix, 1, index, index + 1), (num_rows, num_classes))
        slope = taken(node, state, 1, num_classes + index, num_classes + index + 1)
        own = taken(node, row, 1, index, index + 1)
        step = binary(
            node, BinaryOperation.DIV, binary(node, BinaryOperation.SUB, height, slope), own
        )
        unit = np.zeros((1, num_classes), np.float32)
        unit[0, index] = 1
        total = binary(node, BinaryOperation.ADD, step, 1)
        moves = joined(
            node,
            (
                binary(node, BinaryOperation.MUL, step, unit),
                binary(node, BinaryOperation.MUL, step, row),
            ),
            1,
        )
        moved = binary(node, BinaryOperation.ADD, state, moves)
        state = binary(node, BinaryOperation.DIV, moved, total)
        bent = binary(node, BinaryOperation.MUL, step, own)
        twice = binary(node, BinaryOperation.MUL, slope, 2)
        change = binary(
            node, BinaryOperation.MUL, step, binary(node, BinaryOperation.ADD, bent, twice)
        )
        raised = binary(node, BinaryOperation.ADD, height, change)
        once = binary(node, BinaryOperation.DIV, raised, total)
        height = binary(node, BinaryOperation.DIV, once, total)
    return taken(node, state, 1, 0, num_classes)
