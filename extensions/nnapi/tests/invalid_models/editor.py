"""A model's main graph taken apart, to be changed and put together again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from armpy_nnapi.codes import OperandCode
from armpy_nnapi.description.model_description import Lifetime, ModelDescription, Operand, Subgraph


class Editor:
    """Changes the main graph of a model.

    `random`: decides the change.
    """

    def __init__(self, description: ModelDescription, random: np.random.Generator) -> None:
        self._description = description
        self.random = random
        self.operands = list(description.main.operands)
        self.nodes = list(description.main.operations)
        self.inputs = list(description.main.inputs)
        self.outputs = list(description.main.outputs)
        self.referenced = list(description.referenced)

    def finish(self) -> ModelDescription:
        """The model with the changes."""
        main = Subgraph(
            tuple(self.operands), tuple(self.nodes), tuple(self.inputs), tuple(self.outputs)
        )
        return replace(self._description, main=main, referenced=tuple(self.referenced))

    def pick(self, choices: Iterable[int]) -> int | None:
        """One of some numbers; None if there are none."""
        numbers = list(choices)
        return numbers[int(self.random.integers(len(numbers)))] if numbers else None

    def any_node(self) -> int:
        """The number of any operation."""
        return int(self.random.integers(len(self.nodes)))

    def operands_of(self, *lifetimes: Lifetime) -> list[int]:
        """Indexes of the operands of some lifetimes."""
        return [i for i, operand in enumerate(self.operands) if operand.lifetime in lifetimes]

    def add(self, operand: Operand) -> int:
        """Add an operand; a model input or output is listed as well."""
        self.operands.append(operand)
        index = len(self.operands) - 1
        if operand.lifetime is Lifetime.SUBGRAPH_INPUT:
            self.inputs.append(index)
        if operand.lifetime is Lifetime.SUBGRAPH_OUTPUT:
            self.outputs.append(index)
        return index

    def add_scalar(self, code: OperandCode, value: int = 0) -> int:
        """Add a constant scalar."""
        data = np.asarray(value, code.traits.dtype).tobytes()
        return self.add(Operand(code, lifetime=Lifetime.CONSTANT_COPY, data=data))

    def set_input(self, number: int, position: int, index: int) -> None:
        """Let an operation read another operand."""
        node = self.nodes[number]
        inputs = (*node.inputs[:position], index, *node.inputs[position + 1 :])
        self.nodes[number] = replace(node, inputs=inputs)

    def set_output(self, number: int, position: int, index: int) -> None:
        """Let an operation write another operand."""
        node = self.nodes[number]
        outputs = (*node.outputs[:position], index, *node.outputs[position + 1 :])
        self.nodes[number] = replace(node, outputs=outputs)

    def any_input(self) -> tuple[int, int]:
        """The number of an operation, and the position of one of its inputs."""
        number = self.any_node()
        return number, int(self.random.integers(len(self.nodes[number].inputs)))
