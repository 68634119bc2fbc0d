"""A compiled subgraph: steps over numbered slots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from armpy.backend import OptimizationViews, Substitution
from armpy.graph import SubgraphView, Value
from armpy.ops import PreCompiled

from .kernels import FUNCTIONS, Floats, Step, compute, step_of

FORMAT = "sample program 1"
"""Written at the beginning of a file; another number is another format."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One step, and the slots that it reads (None for an operand that is left out) and writes."""

    step: Step
    reads: tuple[int | None, ...]
    writes: int


@dataclass(frozen=True, eq=False, slots=True)
class Program:
    """A subgraph as the device runs it."""

    num_inputs: int
    """The first slots are the inputs, then come the constants, then the results."""
    constants: tuple[Floats, ...]  # tuple of ndarray, float32
    shapes: tuple[tuple[int, ...], ...]  # of the results
    instructions: tuple[Instruction, ...]
    outputs: tuple[int, ...]  # slots

    @classmethod
    def compile(cls, view: SubgraphView) -> Program:
        """Number the values of a subgraph and put its steps in order."""
        values = [value for layer in view.layers for value in layer.inputs if value is not None]
        constants = [v for v in dict.fromkeys(values) if v.data is not None]
        computed = [value for layer in view.layers for value in layer.outputs]
        slots: dict[Value, int] = {}
        for value in (*view.inputs, *constants, *computed):
            slots.setdefault(value, len(slots))
        return cls(
            len(view.inputs),
            tuple(np.asarray(v.data, np.float32) for v in constants),
            tuple(value.info.known_shape for value in computed),
            tuple(
                Instruction(
                    step_of(layer.operation),
                    tuple(None if v is None else slots[v] for v in layer.inputs),
                    slots[layer.outputs[0]],
                )
                for layer in view.layers
            ),
            tuple(slots[value] for value in view.outputs),
        )

    @property
    def working_bytes(self) -> int:
        """What one execution needs beside its inputs and outputs, in bytes."""
        first = self.num_inputs + len(self.constants)
        inner = [s for i, s in enumerate(self.shapes) if first + i not in self.outputs]
        return sum(4 * math.prod(shape) for shape in inner)

    def run(self, inputs: Sequence[Floats], outputs: Sequence[Floats]) -> None:
        """Compute the outputs; any number of threads may do so at once."""
        slots: dict[int, Floats] = dict(enumerate((*inputs, *self.constants)))
        slots.update(zip(self.outputs, outputs, strict=True))
        first = self.num_inputs + len(self.constants)
        for instruction in self.instructions:
            target = instruction.writes
            if target not in slots:
                slots[target] = np.empty(self.shapes[target - first], np.float32)
            reads = [None if slot is None else slots[slot] for slot in instruction.reads]
            compute(instruction.step, reads, slots[target])

    @property
    def structure(self) -> dict[str, object]:
        """All but the constants' elements, in the form of JSON."""
        return {
            "format": FORMAT,
            "num_inputs": self.num_inputs,
            "constants": [list(constant.shape) for constant in self.constants],
            "shapes": [list(shape) for shape in self.shapes],
            "instructions": [
                [i.step.function, list(i.step.bounds), list(i.reads), i.writes]
                for i in self.instructions
            ],
            "outputs": list(self.outputs),
        }

    @property
    def elements(self) -> bytes:
        """The constants' elements one after the other."""
        return b"".join(constant.astype("<f4").tobytes() for constant in self.constants)

    @classmethod
    def read(cls, structure: Mapping[str, Any], elements: bytes) -> Program:  # Any: as JSON has it
        """Make a program of `structure` and `elements`.

        Raises
        ------
        ValueError
            If it is no such program, or the two do not belong together.
        """
        try:
            program = _program(structure, elements)
        except (KeyError, TypeError) as error:
            raise ValueError(f"something is missing or odd: {error!r}") from error
        num_slots = program.num_inputs + len(program.constants) + len(program.shapes)
        used = [
            slot
            for instruction in program.instructions
            for slot in (*instruction.reads, instruction.writes)
            if slot is not None
        ]
        if not all(0 <= slot < num_slots for slot in (*used, *program.outputs)):
            raise ValueError(f"a slot is not between 0 and {num_slots}")
        unknown = {i.step.function for i in program.instructions} - set(FUNCTIONS)
        if unknown:
            raise ValueError(f"the device has no functions {unknown}")
        return program


def _program(structure: Mapping[str, Any], data: bytes) -> Program:  # Any: as JSON has it
    """The program of a structure; missing or odd parts raise."""
    shapes = [tuple(int(size) for size in shape) for shape in structure["constants"]]
    sizes = [math.prod(shape) for shape in shapes]
    if any(size < 0 for shape in shapes for size in shape) or 4 * sum(sizes) != len(data):
        raise ValueError(f"the constants {shapes} do not take {len(data)} bytes")
    ends = np.cumsum([0, *sizes])
    elements = np.frombuffer(data, "<f4").astype(np.float32)
    constants = tuple(
        elements[begin:end].reshape(shape)
        for begin, end, shape in zip(ends[:-1], ends[1:], shapes, strict=True)
    )
    return Program(
        int(structure["num_inputs"]),
        constants,
        tuple(tuple(int(size) for size in shape) for shape in structure["shapes"]),
        tuple(
            Instruction(Step(function, (low, high)), tuple(reads), int(writes))
            for function, (low, high), reads, writes in structure["instructions"]
        ),
        tuple(int(slot) for slot in structure["outputs"]),
    )


def views_of(
    view: SubgraphView, program: Program, shapes: Sequence[tuple[int, ...]] | None = None
) -> OptimizationViews:
    """One layer with a program in the place of a subgraph; of the subgraph's shapes if left out."""
    if shapes is None:
        shapes = [value.info.known_shape for value in view.outputs]
    operation = PreCompiled(program, tuple(shapes), program.working_bytes)
    return OptimizationViews(substitutions=[Substitution.by_operation(view, operation)])
