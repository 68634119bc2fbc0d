"""Recurrent .tflite models as converters write Keras' layers: loops over lists of time steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy_testing.models.tflite_writer import Subgraph, Tensor, TfliteModel

Array = npt.NDArray[Any]  # Any: float32 or int32
Shape = tuple[int, ...]

_WITHOUT_OPTIONS = ("LOGISTIC", "TANH")


@dataclass
class _Graph:
    """A subgraph whose tensors are named by themselves."""

    subgraph: Subgraph
    _numbers: count[int] = field(default_factory=count)

    def tensor(self, shape: Shape, kind: str = "FLOAT32", data: object = None) -> Tensor:
        """Add a tensor."""
        name = f"{self.subgraph.name}_{next(self._numbers)}"
        is_open = data is None and self.subgraph.index > 0  # as shapes change within a turn
        signature = [-1 for _ in shape] if is_open else None
        return self.subgraph.tensor(name, shape, kind, data=data, shape_signature=signature)  # type: ignore[arg-type]

    def floats(self, array: Array) -> Tensor:
        """Add a constant."""
        return self.tensor(array.shape, "FLOAT32", array.astype(np.float32))

    def ints(self, value: int | Sequence[int]) -> Tensor:
        """Add a constant of int32, a scalar or a vector."""
        return self.tensor(np.shape(value), "INT32", np.array(value, np.int32))

    def add(
        self,
        code: str,
        inputs: Sequence[Tensor],
        shape: Shape,
        kind: str = "FLOAT32",
        options: Mapping[str, Any] | None = None,  # Any: whatever the operator's table has
    ) -> Tensor:
        """Add an operator of one output."""
        output = self.tensor(shape, kind)
        table = None if code in _WITHOUT_OPTIONS else dict(options or {})
        self.subgraph.operator(code, list(inputs), [output], table)
        return output

    def reshaped(self, x: Tensor, shape: Shape, kind: str = "FLOAT32") -> Tensor:
        """Add a RESHAPE."""
        return self.add("RESHAPE", [x, self.ints(shape)], shape, kind, {"new_shape": list(shape)})


@dataclass(frozen=True)
class Lstm:
    """An LSTM over ``x (1, steps, features)``."""

    num_steps: int
    num_features: int
    num_units: int
    # Whether the output is every step's, which the body puts into a list, or the last one's
    gives_sequences: bool

    def model(self) -> bytes:
        """The file.

        Notes
        -----
        The loop carries a counter of turns, the time, the list or its only element, the hidden
        state, the cell state, and the inputs with the time in front.
        """
        model = TfliteModel()
        main = _Graph(model.subgraph("main"))
        specs = self._carried()
        x = main.tensor((1, self.num_steps, self.num_features))
        time_major = main.reshaped(x, specs[-1][1])
        zeros = [main.tensor(shape, kind, np.zeros(shape)) for kind, shape in specs[:-1]]
        outputs = [main.tensor(shape, kind) for kind, shape in specs]
        for name, build in (("condition", self._condition), ("body", self._body)):
            inner = _Graph(model.subgraph(name))
            inputs = [
                inner.subgraph.tensor(f"{name}_in{i}", s, k, shape_signature=[-1] * len(s))
                for i, (k, s) in enumerate(specs)
            ]
            inner.subgraph.outputs(*build(inner, inputs))
            inner.subgraph.inputs(*inputs)
        options = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
        main.subgraph.operator("WHILE", [*zeros, time_major], outputs, options)
        main.subgraph.inputs(x)
        main.subgraph.outputs(main.reshaped(outputs[2], (1, specs[2][1][0], self.num_units)))
        return model.to_bytes()

    def in_numpy(self, x: Array) -> Array:
        """The model's results, computed in float64."""
        kernel, recurrent, bias = (weights.astype(np.float64) for weights in self._weights())
        hidden, cell = np.zeros(self.num_units), np.zeros(self.num_units)
        outputs = []
        for step in x[0].astype(np.float64):
            gates = np.split(kernel @ step + recurrent @ hidden + bias, 4)
            i, f, o = (1 / (1 + np.exp(-gates[number])) for number in (0, 1, 3))
            cell = f * cell + i * np.tanh(gates[2])
            hidden = o * np.tanh(cell)
            outputs.append(hidden)
        return np.array(outputs if self.gives_sequences else outputs[-1:])[np.newaxis]

    def _carried(self) -> list[tuple[str, Shape]]:
        """Type and shape of the loop's carried values."""
        length = self.num_steps if self.gives_sequences else 1
        state = ("FLOAT32", (1, self.num_units))
        return [
            ("INT32", ()),
            ("INT32", ()),
            ("FLOAT32", (length, 1, self.num_units)),
            state,
            state,
            ("FLOAT32", (self.num_steps, 1, self.num_features)),
        ]

    def _weights(self) -> tuple[Array, Array, Array]:
        """Weights of all gates for the input and for the hidden state, and biases."""
        random, rows = np.random.default_rng(self.num_units), 4 * self.num_units
        shapes = ((rows, self.num_features), (rows, self.num_units), (rows,))
        kernel, recurrent, bias = (random.normal(0, 0.3, s).astype(np.float32) for s in shapes)
        return kernel, recurrent, bias

    def _condition(self, graph: _Graph, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        """Both counters are below the number of steps."""
        end = graph.ints(self.num_steps)
        terms = [graph.add("LESS", [counter, end], (), "BOOL") for counter in inputs[:2]]
        return [graph.add("LOGICAL_AND", terms, (), "BOOL")]

    def _body(self, graph: _Graph, inputs: Sequence[Tensor]) -> Sequence[Tensor]:
        """One step."""
        counter, time, outputs, hidden, cell, x = inputs
        state = (1, self.num_units)
        following = [graph.add("ADD", [i, graph.ints(1)], (), "INT32") for i in (counter, time)]
        step = graph.add("GATHER", [x, time], (1, self.num_features), options={"axis": 0})
        i, f, g, o = self._gates(graph, step, hidden)
        retained = graph.add("MUL", [graph.add("LOGISTIC", [f], state), cell], state)
        tanh = graph.add("TANH", [g], state)
        new = graph.add("MUL", [graph.add("LOGISTIC", [i], state), tanh], state)
        cell = graph.add("ADD", [retained, new], state)
        tanh = graph.add("TANH", [cell], state)
        hidden = graph.add("MUL", [graph.add("LOGISTIC", [o], state), tanh], state)
        element = graph.reshaped(hidden, (1, *state))
        if self.gives_sequences:
            element = self._exchanged(graph, outputs, element, time, following[1])
        return [*following, element, hidden, cell, x]

    def _gates(self, graph: _Graph, step: Tensor, hidden: Tensor) -> list[Tensor]:
        """All gates before their activations."""
        kernel, recurrent, bias = self._weights()
        rows = (1, 4 * self.num_units)
        products = [
            graph.add("FULLY_CONNECTED", [value, graph.floats(weights)], rows)
            for value, weights in ((step, kernel), (hidden, recurrent))
        ]
        total = graph.add("ADD", products, rows)
        total = graph.add("ADD", [total, graph.floats(bias)], rows)
        gates = [graph.tensor((1, self.num_units)) for _ in range(4)]
        graph.subgraph.operator("SPLIT", [graph.ints(1), total], gates, {"num_splits": 4})
        return gates

    def _exchanged(
        self, graph: _Graph, whole: Tensor, element: Tensor, index: Tensor, following: Tensor
    ) -> Tensor:
        """A list with another element: the ones before, the element, the ones after."""

        def vector(scalar: Tensor, others: int) -> Tensor:
            first = graph.reshaped(scalar, (1,), "INT32")
            rest = graph.ints([others, others])
            return graph.add("CONCATENATION", [first, rest], (3,), "INT32", {"axis": 0})

        shape, size = (self.num_steps, 1, self.num_units), (1, 1, self.num_units)
        front = graph.add("SLICE", [whole, graph.ints([0, 0, 0]), vector(index, -1)], size)
        back = graph.add("SLICE", [whole, vector(following, 0), graph.ints([-1, -1, -1])], size)
        return graph.add("CONCATENATION", [front, element, back], shape, options={"axis": 0})
