"""Small networks that several tests use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.compiler import OptimizedNetwork, Placement
from armpy.execution import LoadedNetwork
from armpy.graph import Graph, Value
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    ElementwiseBinary,
)
from armpy.ops.operation import Array
from armpy.tensor import Shape as TensorShape
from armpy.tensor import TensorInfo
from armpy.types import DataType

ADD = ElementwiseBinary(BinaryOperation.ADD)
MUL = ElementwiseBinary(BinaryOperation.MUL)
RELU = Activation(ActivationFunction.RELU)


def f32(*shape: int | None) -> TensorInfo:
    """Info of a float32 tensor."""
    return TensorInfo(shape, DataType.FLOAT32)


def i32(*shape: int | None) -> TensorInfo:
    """Info of an int32 tensor."""
    return TensorInfo(shape, DataType.SIGNED32)


def floats(*values: float) -> Array:
    """A float32 vector."""
    return np.array(values, np.float32)


def ints(*values: int) -> Array:
    """An int32 vector."""
    return np.array(values, np.int32)


def chain(length: int = 3, shape: TensorShape = (4,)) -> Graph:
    """``x -> +1 -> +1 -> ... -> y``, its layers named add_0, add_1, ..."""
    net = Network("chain")
    value = net.input("x", TensorInfo(shape, DataType.FLOAT32))
    unit = net.constant(np.float32(1))
    for index in range(length):
        value = net.add(ADD, value, unit, name=f"add_{index}")
    net.output("y", value)
    return net.build()


def diamond() -> Graph:
    """``x -> top -> (left, right) -> bottom -> y`` on vectors of 4."""
    net = Network("diamond")
    top = net.add(RELU, net.input("x", f32(4)), name="top")
    left = net.add(ADD, top, net.constant(np.float32(1)), name="left")
    right = net.add(MUL, top, net.constant(np.float32(3)), name="right")
    net.output("y", net.add(ADD, left, right, name="bottom"))
    return net.build()


def graph_of_edges(parents: Sequence[Sequence[int]]) -> Graph:
    """A graph of additions: layer ``i`` reads the one or two layers in ``parents[i]``, or ``x``.

    Every layer's output is an output of the graph, so that none is dead.
    """
    net = Network("random")
    x = net.input("x", f32(4))
    values_made: list[Value] = []
    for index, reads in enumerate(parents):
        values = [values_made[parent] for parent in reads] or [x]
        value = net.add(ADD, values[0], values[-1], name=f"n{index}")
        net.output(f"y{index}", value)
        values_made.append(value)
    return net.build()


def doublings(count: int, refused: int | None = None) -> Graph:
    """Layers that double the input `x`, one of which may be another operation."""
    net = Network()
    x = net.input("x", f32(2))
    for position in range(count):
        x = net.add(RELU, x) if position == refused else net.add(ADD, x, x)
    net.output("y", x)
    return net.build()


def placement_of(model: Model | LoadedNetwork | OptimizedNetwork) -> Placement:
    """Where the layers of a model or network run."""
    assert model.placement is not None
    return model.placement


def copies(model: Model) -> list[str]:
    """Names of the copies, in order."""
    placement = placement_of(model)
    copied = [layer.layer for layer in placement.layers if layer.operation == "MemCopy"]
    assert placement.num_copies == len(copied)
    return copied
