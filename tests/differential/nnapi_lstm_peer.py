"""A long short-term memory in real arithmetic, gate by gate as its definition is written."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from armpy_nnapi import OperandCode
from tests.differential.nnapi_peers import Draw, Input, Omitted, Reals, Tensor

GATES = ("input", "forget", "cell", "output")

ACTIVATIONS: dict[int, Callable[[float], float]] = {
    0: lambda x: x,
    1: lambda x: max(x, 0.0),
    3: lambda x: min(max(x, 0.0), 6.0),
    4: math.tanh,
    6: lambda x: 1 / (1 + math.exp(-x)),
}
"""By code, those of every recurrent operation."""

PARTS = (
    *(f"input_to_{gate}" for gate in GATES),
    *(f"recurrent_to_{gate}" for gate in GATES),
    *(f"cell_to_{gate}" for gate in ("input", "forget", "output")),
    *(f"{gate}_bias" for gate in GATES),
    "projection",
    "projection_bias",
)
"""Weights as NNAPI orders them."""
STATES = ("output_state", "cell_state")
NORMS = tuple(f"{gate}_norm" for gate in GATES)
AUX = tuple(f"aux_to_{gate}" for gate in GATES)


@dataclass(frozen=True, slots=True)
class Kind:
    """What an LSTM has."""

    has_input_gate: bool
    has_peephole: bool
    has_projection: bool
    has_projection_bias: bool
    has_norm: bool
    activation: int
    cell_clip: float
    projection_clip: float

    @classmethod
    def drawn(cls, draw: Draw) -> Kind:
        """A random one."""
        projects = draw.chance()
        return cls(
            draw.chance(),
            draw.chance(),
            projects,
            projects and draw.chance(),
            draw.chance(),
            draw.pick((4, 4, 1, 6)),
            draw.pick((0.0, 0.5)),
            draw.pick((0.0, 0.5)),
        )


@dataclass(frozen=True, slots=True)
class Memory:
    """One LSTM with its weights and first states."""

    kind: Kind
    tensors: dict[str, Tensor]
    real: dict[str, Reals] = field(default_factory=dict)

    @classmethod
    def drawn(
        cls, draw: Draw, code: OperandCode, kind: Kind, num_inputs: int, batches: int, *, aux: bool
    ) -> Memory:
        """One with random weights of a random number of units."""
        units = draw.size(5, 3)
        outputs = draw.size(3) if kind.has_projection else units
        shapes: dict[str, tuple[int, ...]] = {}
        for gate in GATES:
            if gate == "input" and not kind.has_input_gate:
                continue
            shapes[f"input_to_{gate}"] = (units, num_inputs)
            shapes[f"recurrent_to_{gate}"] = (units, outputs)
            shapes[f"{gate}_bias"] = (units,)
            if kind.has_peephole and gate != "cell":
                shapes[f"cell_to_{gate}"] = (units,)
            if kind.has_norm:
                shapes[f"{gate}_norm"] = (units,)
            if aux:
                shapes[f"aux_to_{gate}"] = (units, num_inputs)
        if kind.has_projection:
            shapes["projection"] = (outputs, units)
        if kind.has_projection_bias:
            shapes["projection_bias"] = (outputs,)
        shapes |= {"output_state": (batches, outputs), "cell_state": (batches, units)}
        tensors = {name: draw.tensor(code, shape, -1, 1) for name, shape in shapes.items()}
        return cls(kind, tensors, {name: tensor.real for name, tensor in tensors.items()})

    def inputs(self, names: Sequence[str], code: OperandCode) -> list[Input]:
        """Some of the tensors; what there is not has no value."""
        return [self.tensors.get(name, Omitted(code)) for name in names]

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of units, and of outputs."""
        return self.real["cell_state"].shape[1], self.real["output_state"].shape[1]

    def sequence(
        self, steps: Sequence[Reals], aux: Sequence[Reals] | None = None
    ) -> tuple[list[Reals], Reals, Reals]:
        """Outputs of each time step (batches, outputs), and the states after the last one."""
        outputs, cells = self.real["output_state"], self.real["cell_state"]
        sequence = []
        for i, step in enumerate(steps):
            beside = None if aux is None else aux[i]
            rows = [
                self.step(step[b], outputs[b], cells[b], None if beside is None else beside[b])
                for b in range(len(step))
            ]
            outputs = np.array([row[0] for row in rows])
            cells = np.array([row[1] for row in rows])
            sequence.append(outputs)
        return sequence, outputs, cells

    def step(self, x: Reals, output: Reals, cell: Reals, aux: Reals | None) -> tuple[Reals, Reals]:
        """The new output and cell state of one batch item."""
        kind, act, sigmoid = self.kind, ACTIVATIONS[self.kind.activation], ACTIVATIONS[6]
        forget = _each(sigmoid, self._gate("forget", x, output, aux, cell))
        keep = 1 - forget
        if kind.has_input_gate:
            keep = _each(sigmoid, self._gate("input", x, output, aux, cell))
        candidate = _each(act, self._gate("cell", x, output, aux, None))
        cell = forget * cell + keep * candidate
        if kind.cell_clip > 0:
            cell = np.clip(cell, -kind.cell_clip, kind.cell_clip)
        out = _each(sigmoid, self._gate("output", x, output, aux, cell)) * _each(act, cell)
        if kind.has_projection:
            out = self.real["projection"] @ out
            if kind.has_projection_bias:
                out = out + self.real["projection_bias"]
            if kind.projection_clip > 0:
                out = np.clip(out, -kind.projection_clip, kind.projection_clip)
        return out, cell

    def _gate(
        self, gate: str, x: Reals, output: Reals, aux: Reals | None, cell: Reals | None
    ) -> Reals:
        """What goes into the function of a gate."""
        real = self.real
        total = real[f"input_to_{gate}"] @ x + real[f"recurrent_to_{gate}"] @ output
        if aux is not None:
            total = total + real[f"aux_to_{gate}"] @ aux
        if cell is not None and f"cell_to_{gate}" in real:
            total = total + real[f"cell_to_{gate}"] * cell
        if self.kind.has_norm:
            spread = math.sqrt(sum((total - total.mean()) ** 2) / len(total))
            total = (total - total.mean()) / spread * real[f"{gate}_norm"]
        return np.asarray(total + real[f"{gate}_bias"])


def _each(function: Callable[[float], float], values: Reals) -> Reals:
    """A function of each element."""
    return np.array([function(float(x)) for x in values])
