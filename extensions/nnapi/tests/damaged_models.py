"""Damages valid models in ways that may or may not make them invalid."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from armpy.ops.operation import Array
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.conformance.random_graphs.control_flow import control_flow_model
from armpy_nnapi.conformance.random_graphs.generator import RandomModel, random_model
from armpy_nnapi.description.model_description import Lifetime, ModelDescription, Operand, Subgraph

_ODD_INTEGERS = (0, -1, 1, 2, 3, 4, 7, 100, -128, 1000, 2**31 - 1, -(2**31))
_ODD_FLOATS = (0.0, -1.0, 1e-30, 1e30, float("inf"), float("-inf"), float("nan"), 0.5)
_ODD_SCALES = (0.0, 1e-20, 0.001, 1.0, 1000.0, 1e20)
_ODD_ZERO_POINTS = (0, -128, 127, 255)
_LARGEST_DIMENSION = 9
_MOST_CHANGES = 3


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

    def set_input(self, number: int, position: int, index: int) -> None:
        """Let an operation read another operand."""
        node = self.nodes[number]
        inputs = (*node.inputs[:position], index, *node.inputs[position + 1 :])
        self.nodes[number] = replace(node, inputs=inputs)

    def any_input(self) -> tuple[int, int]:
        """The number of an operation, and the position of one of its inputs."""
        number = self.any_node()
        return number, int(self.random.integers(len(self.nodes[number].inputs)))


def _other_type(editor: Editor) -> None:
    """Give an operand another type."""
    index = int(editor.random.integers(len(editor.operands)))
    code = int(editor.random.choice(list(OperandCode)))
    editor.operands[index] = replace(editor.operands[index], type=code)


def _other_operation(editor: Editor) -> None:
    """Turn an operation into another one."""
    number = editor.any_node()
    code = int(editor.random.choice(list(OperationCode)))
    editor.nodes[number] = replace(editor.nodes[number], type=code)


def _other_operand(editor: Editor) -> None:
    """Let an operation read something else."""
    number, position = editor.any_input()
    editor.set_input(number, position, int(editor.random.integers(len(editor.operands))))


def _other_dimensions(editor: Editor) -> None:
    """Change a dimension of a tensor, add or remove one, or forget them all."""
    index = int(editor.random.integers(len(editor.operands)))
    dimensions = list(editor.operands[index].dimensions)
    size = int(editor.random.integers(_LARGEST_DIMENSION + 1))
    match int(editor.random.integers(4)):
        case 0 if dimensions:
            dimensions[int(editor.random.integers(len(dimensions)))] = size
        case 1 if dimensions:
            dimensions.pop()
        case 2:
            dimensions.append(size)
        case _:
            dimensions.clear()
    editor.operands[index] = replace(editor.operands[index], dimensions=tuple(dimensions))


def _other_quantisation(editor: Editor) -> None:
    """Change a scale or zero point."""
    index = int(editor.random.integers(len(editor.operands)))
    operand = editor.operands[index]
    if editor.random.random() < 0.5:
        scale = float(editor.random.choice(_ODD_SCALES))
        editor.operands[index] = replace(operand, scale=scale)
    else:
        zero_point = int(editor.random.choice(_ODD_ZERO_POINTS))
        editor.operands[index] = replace(operand, zero_point=zero_point)


def _other_elements(editor: Editor) -> None:
    """Change an element of a constant: most of all scalars and parameters."""
    index = editor.pick(editor.operands_of(Lifetime.CONSTANT_COPY))
    if index is None:
        return
    operand = editor.operands[index]
    dtype, data = operand.data_type.dtype, bytes(operand.data or b"")
    array = np.frombuffer(data, dtype, len(data) // dtype.itemsize).copy()
    if not array.size:
        return
    position = int(editor.random.integers(array.size))
    array[position : position + 1] = _odd_elements(dtype, editor.random)
    editor.operands[index] = replace(operand, data=array.tobytes())


def _odd_elements(dtype: np.dtype[np.generic], random: np.random.Generator) -> Array:
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.asarray([random.choice(_ODD_FLOATS)]).astype(dtype)
    return np.asarray([random.choice(_ODD_INTEGERS)]).astype(dtype)


def _other_value(editor: Editor) -> None:
    """Leave an operand without a value, or make a constant of it or an input."""
    index = int(editor.random.integers(len(editor.operands)))
    operand = editor.operands[index]
    old = operand.lifetime
    new = Lifetime(int(editor.random.choice([1, 5])))
    if old in (Lifetime.CONSTANT_COPY, Lifetime.NO_VALUE, Lifetime.SUBGRAPH_INPUT):
        editor.operands[index] = replace(operand, lifetime=new, data=None)
        if old is Lifetime.SUBGRAPH_INPUT:
            editor.inputs.remove(index)
        if new is Lifetime.SUBGRAPH_INPUT:
            editor.inputs.append(index)


def _other_count(editor: Editor) -> None:
    """Take an input or output from an operation, or give it one more."""
    number = editor.any_node()
    node = editor.nodes[number]
    extra = int(editor.random.integers(len(editor.operands)))
    changed = (
        replace(node, inputs=node.inputs[:-1] or node.inputs),
        replace(node, inputs=(*node.inputs, extra)),
        replace(node, outputs=node.outputs[:-1]),
        replace(node, outputs=(*node.outputs, editor.add(_OUTPUT))),
    )
    editor.nodes[number] = changed[int(editor.random.integers(len(changed)))]


_OUTPUT = Operand(OperandCode.TENSOR_FLOAT32, (), lifetime=Lifetime.SUBGRAPH_OUTPUT)

_DAMAGES: tuple[Callable[[Editor], None], ...] = (
    _other_type,
    _other_operation,
    _other_operand,
    _other_dimensions,
    _other_dimensions,
    _other_quantisation,
    _other_elements,
    _other_elements,
    _other_elements,
    _other_value,
    _other_count,
)
"""Some twice, as they are less likely to make a model invalid at once."""


def damaged_model(seed: int) -> RandomModel:
    """Make up a model and damage it.

    `seed`: 0 or more.
    Returns with inputs as it declares them, as far as it does: with odd elements at times.
    """
    random = np.random.default_rng((seed, 2))
    if random.random() < 0.1:
        description, _ = control_flow_model(random)
    else:
        description = random_model(
            int(random.integers(1 << 40)), int(random.integers(1, 4))
        ).description
    editor = Editor(description, random)
    for _ in range(int(random.integers(1, _MOST_CHANGES + 1))):
        _DAMAGES[int(random.integers(len(_DAMAGES)))](editor)
    description = editor.finish()
    operands = description.main.operands
    inputs = tuple(_elements(operands[index], random) for index in description.main.inputs)
    return RandomModel(seed, description, inputs)


def _elements(operand: Operand, random: np.random.Generator) -> Array:
    shape = tuple(dim or int(random.integers(1, 4)) for dim in operand.dimensions)
    try:
        dtype = operand.data_type.dtype
    except (KeyError, ValueError):  # of a type that is none
        dtype = np.dtype(np.uint8)
    array = np.asarray(random.uniform(-2, 2, shape) * 50).astype(dtype)
    if array.size and random.random() < 0.3:
        array.reshape(-1)[:1] = _odd_elements(array.dtype, random)
    return array
