"""Models of very many layers, in shapes that are hard on what walks over graphs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armpy_testing.models.tflite_tables import OptionValue
from armpy_testing.models.tflite_writer import Subgraph, Tensor, TfliteModel

_WITH_OPTIONS = {"ADD", "CONCATENATION", "FULLY_CONNECTED", "MAXIMUM"}


class _Writer:
    """Adds layers on vectors of 16 floats."""

    def __init__(self, graph: Subgraph) -> None:
        self.graph = graph
        self.num_layers = 0
        self.one = graph.tensor("one", (1,), data=np.ones(1, np.float32))
        self.key = graph.tensor("key", (1,), "INT32", data=[0])
        self.x = self.tensor()

    def tensor(self, width: int = 16) -> Tensor:
        """A tensor that is written once."""
        return self.graph.tensor(f"t{self.num_layers}", (1, width))

    def layer(self, code: str, *inputs: Tensor, width: int = 16) -> Tensor:
        """The output of a layer."""
        self.num_layers += 1
        output = self.tensor(width)
        options: dict[str, OptionValue] | None = {} if code in _WITH_OPTIONS else None
        self.graph.operator(code, list(inputs), [output], options=options)
        return output

    def lookup(self, values: Tensor) -> Tensor:
        """The only row of some values, found by its key."""
        self.num_layers += 1
        row, hits = self.tensor(), self.graph.tensor("hits", (1,), "UINT8")
        self.graph.operator("HASHTABLE_LOOKUP", [self.key, self.key, values], [row, hits])
        return row


def _chain(w: _Writer, length: int) -> list[Tensor]:
    """One layer after the other."""
    value = w.x
    while w.num_layers < length:
        value = w.layer("TANH", w.layer("ADD", value, w.one))
    return [value]


def _matrices(w: _Writer, length: int) -> list[Tensor]:
    """Fully connected layers, which share their weights."""
    weights = w.graph.tensor("weights", (16, 16), data=np.eye(16, dtype=np.float32))
    value = w.x
    while w.num_layers < length:
        value = w.layer("RELU", w.layer("FULLY_CONNECTED", value, weights))
    return [value]


def _fan(w: _Writer, length: int) -> list[Tensor]:
    """Very many layers that read the input, all of which one layer joins."""
    parts = [w.layer("TANH", w.x) for _ in range(length - 1)]
    return [w.layer("CONCATENATION", *parts, width=16 * len(parts))]


def _towers(w: _Writer, length: int) -> list[Tensor]:
    """A hundred chains that have the input alone in common."""
    tops = [w.x] * min(100, length)
    while w.num_layers < length:
        tops = [w.layer("TANH", top) for top in tops]
    return tops


def _ladder(w: _Writer, length: int) -> list[Tensor]:
    """Residual blocks."""
    value = w.x
    while w.num_layers < length:
        value = w.layer("ADD", w.layer("TANH", value), value)
    return [value]


def _live(w: _Writer, length: int) -> list[Tensor]:
    """Half of the layers write the tensors that the other half reads, the latest first."""
    value, values = w.x, []
    for _ in range(length // 2):
        value = w.layer("TANH", value)
        values.append(value)
    for other in reversed(values):
        value = w.layer("MAXIMUM", value, other)
    return [value]


def _mixed(w: _Writer, length: int) -> list[Tensor]:
    """Layers that a compiling backend takes, and such that it refuses, in turn."""
    value = w.x
    while w.num_layers < length:
        value = w.lookup(w.layer("TANH", value))
    return [value]


SHAPES: dict[str, Callable[[_Writer, int], list[Tensor]]] = {
    "chain": _chain,
    "matrices": _matrices,
    "fan": _fan,
    "towers": _towers,
    "ladder": _ladder,
    "live": _live,
    "mixed": _mixed,
}


def long_network(shape: str, num_layers: int) -> bytes:
    """A .tflite file with about so many layers.

    `shape`: one of `SHAPES`.
    """
    model = TfliteModel()
    graph = model.subgraph()
    writer = _Writer(graph)
    outputs = SHAPES[shape](writer, num_layers)
    graph.inputs(writer.x)
    graph.outputs(*outputs)
    return model.to_bytes()
