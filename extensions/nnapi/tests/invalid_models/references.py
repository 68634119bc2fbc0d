"""Ways to make a model invalid by the models that its IF or WHILE refers to."""

from __future__ import annotations

from dataclasses import replace

from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.description.model_description import Lifetime, Operand

from .editor import Editor


def _model_inputs(editor: Editor) -> list[tuple[int, int]]:
    """Where operations take models: operation and position."""
    return [
        (number, position)
        for number, node in enumerate(editor.nodes)
        for position, index in enumerate(node.inputs)
        if editor.operands[index].type == OperandCode.MODEL
    ]


def _any_model(editor: Editor) -> tuple[int, int]:
    """One of these places."""
    places = _model_inputs(editor)
    return places[int(editor.random.integers(len(places)))]


def _first_value(editor: Editor) -> int:
    """Position of the first input that is handed on."""
    return 3 if editor.nodes[0].type == OperationCode.IF else 2


def tensor_for_a_model(editor: Editor) -> bool:
    """A tensor in the place of a model."""
    tensor = Operand(OperandCode.TENSOR_FLOAT32, (1,), lifetime=Lifetime.SUBGRAPH_INPUT)
    editor.set_input(*_any_model(editor), editor.add(tensor))
    return True


def model_for_a_tensor(editor: Editor) -> bool:
    """A model in the place of a value."""
    (_, position), value = _model_inputs(editor)[0], _first_value(editor)
    editor.set_input(0, value, editor.nodes[0].inputs[position])
    return True


def bad_condition(editor: Editor) -> bool:
    """An IF whose condition is not one truth value."""
    if editor.nodes[0].type != OperationCode.IF:
        return False
    code, dimensions = (
        (OperandCode.TENSOR_BOOL8, (2,)),
        (OperandCode.TENSOR_BOOL8, (1, 1)),
        (OperandCode.TENSOR_BOOL8, ()),
        (OperandCode.TENSOR_INT32, (1,)),
        (OperandCode.BOOL, ()),
    )[int(editor.random.integers(5))]
    operand = Operand(code, dimensions, lifetime=Lifetime.SUBGRAPH_INPUT)
    editor.set_input(0, 0, editor.add(operand))
    return True


def exchanged_models(editor: Editor) -> bool:
    """A WHILE whose condition and body are exchanged: neither has the right outputs."""
    node = editor.nodes[0]
    if node.type != OperationCode.WHILE:
        return False
    condition, body, *values = node.inputs
    editor.nodes[0] = replace(node, inputs=(body, condition, *values))
    return True


def missing_value(editor: Editor) -> bool:
    """One value less than the models take."""
    node = editor.nodes[0]
    editor.nodes[0] = replace(node, inputs=node.inputs[:-1])
    return True


def surplus_value(editor: Editor) -> bool:
    """One value more than the models take."""
    node = editor.nodes[0]
    editor.nodes[0] = replace(node, inputs=(*node.inputs, node.inputs[-1]))
    return True


def surplus_output(editor: Editor) -> bool:
    """One output more than the models give."""
    node = editor.nodes[0]
    kind = editor.operands[node.outputs[-1]]
    editor.nodes[0] = replace(node, outputs=(*node.outputs, editor.add(kind)))
    return True


def value_of_another_type(editor: Editor) -> bool:
    """A value of a type that the models do not take."""
    position = _first_value(editor)
    code = OperandCode.TENSOR_QUANT16_ASYMM
    operand = Operand(code, (1,), 0.5, 3, Lifetime.SUBGRAPH_INPUT)
    editor.set_input(0, position, editor.add(operand))
    return True


def value_of_other_dimensions(editor: Editor) -> bool:
    """A value with more dimensions than the models take."""
    position = len(editor.nodes[0].inputs) - 1
    operand = editor.operands[editor.nodes[0].inputs[position]]
    changed = replace(operand, dimensions=(*operand.dimensions, 1))
    editor.set_input(0, position, editor.add(changed))
    return True


def output_of_another_type(editor: Editor) -> bool:
    """An output of a type that the models do not give."""
    operand = Operand(OperandCode.TENSOR_QUANT16_ASYMM, (1,), 0.5, 3, Lifetime.SUBGRAPH_OUTPUT)
    editor.set_output(0, len(editor.nodes[0].outputs) - 1, editor.add(operand))
    return True


def model_that_is_not_there(editor: Editor) -> bool:
    """A MODEL operand that stands for nothing."""
    number, position = _any_model(editor)
    index = editor.nodes[number].inputs[position]
    wrong = (None, -1, len(editor.referenced), 1000)[int(editor.random.integers(4))]
    editor.operands[index] = replace(editor.operands[index], subgraph=wrong)
    return True


def model_that_is_a_constant(editor: Editor) -> bool:
    """A MODEL operand with elements, or a tensor that stands for a model."""
    number, position = _any_model(editor)
    index = editor.nodes[number].inputs[position]
    changes = ({"lifetime": Lifetime.CONSTANT_COPY, "data": b""}, {"type": 3, "dimensions": (1,)})
    editor.operands[index] = replace(
        editor.operands[index],
        **changes[int(editor.random.integers(2))],  # type: ignore[arg-type]  # names above
    )
    return True


def model_that_refers_to_itself(editor: Editor) -> bool:
    """Referenced models with an operand that stands for themselves, or for each other."""
    count = len(editor.referenced)
    first, second = editor.random.integers(count, size=2)
    for index, other in ((first, second), (second, first)):
        graph = editor.referenced[index]
        operand = Operand(OperandCode.MODEL, lifetime=Lifetime.SUBGRAPH, subgraph=int(other))
        editor.referenced[index] = replace(graph, operands=(*graph.operands, operand))
    return True


def model_that_is_invalid(editor: Editor) -> bool:
    """A referenced model with a tensor that nothing writes, or without operations."""
    number = int(editor.random.integers(len(editor.referenced)))
    graph = editor.referenced[number]
    if editor.random.random() < 0.5:
        editor.referenced[number] = replace(graph, operations=())
    else:
        lost = Operand(OperandCode.TENSOR_FLOAT32, (1,))
        editor.referenced[number] = replace(graph, operands=(*graph.operands, lost))
    return True
