"""Reference workloads of control flow."""

from __future__ import annotations

import numpy as np

from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.ops import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    If,
    While,
)
from armpy.tensor import TensorInfo
from armpy.types import DataType

_COUNT = TensorInfo((1,), DataType.SIGNED32)
_VECTOR = TensorInfo((1, 16), DataType.FLOAT32)
NUM_TURNS = 4
"""Of the loop."""


def if_network() -> Graph:
    """An If whose branches are an addition and a multiplication."""
    net = Network("If")
    condition = net.input("condition", TensorInfo((1,), DataType.BOOLEAN))
    choice = If(_branch(BinaryOperation.ADD), _branch(BinaryOperation.MUL))
    net.output("y", net.add(choice, condition, net.input("x", _VECTOR)))
    return net.build()


def while_network() -> Graph:
    """A While that counts up from an input of 0 to 2, for at most four turns."""
    net = Network("While")
    net.output("y", net.add(While(_condition(), _body()), net.input("count", _COUNT)))
    return net.build()


def _branch(operation: BinaryOperation) -> Graph:
    """One of an If's graphs."""
    net = Network(operation.name)
    x = net.input("x", _VECTOR)
    net.output("y", net.add(ElementwiseBinary(operation), x, x))
    return net.build()


def _condition() -> Graph:
    """``count < NUM_TURNS``."""
    net = Network("condition")
    limit = net.constant(np.array([NUM_TURNS], np.int32))
    less = Comparison(ComparisonOperation.LESS)
    net.output("more", net.add(less, net.input("count", _COUNT), limit))
    return net.build()


def _body() -> Graph:
    """``count + 1``."""
    net = Network("body")
    unit = net.constant(np.array([1], np.int32))
    add = ElementwiseBinary(BinaryOperation.ADD)
    net.output("count", net.add(add, net.input("count", _COUNT), unit))
    return net.build()
