"""Ways to make a model invalid by its operations, and by its lists of inputs and outputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.description.model_description import Lifetime, Operand
from armpy_nnapi.operations import definitions

from .editor import Editor

_UNKNOWN_CODES = (102, 103, 5000, 9999, 10001, 65535, -1)
_NEVER_TAKEN = (OperandCode.TENSOR_OEM_BYTE, OperandCode.UINT32, OperandCode.OEM_SCALAR)
"""Types that no operation takes."""

_HIGH_RANK = (1,) * 7
_CONTROL_FLOW = (OperationCode.IF, OperationCode.WHILE)
_CONSTANT = (Lifetime.CONSTANT_COPY, Lifetime.CONSTANT_REFERENCE)


def input_out_of_range(editor: Editor) -> bool:
    """An operation that reads an operand that does not exist."""
    editor.set_input(*editor.any_input(), _out_of_range(editor))
    return True


def output_out_of_range(editor: Editor) -> bool:
    """An operation that writes an operand that does not exist."""
    editor.set_output(editor.any_node(), 0, _out_of_range(editor))
    return True


def _out_of_range(editor: Editor) -> int:
    """An index that no operand has."""
    count = len(editor.operands)
    return editor.pick((count, count + 7, 2**32 - 1, -1, -count)) or 0


def reads_what_nothing_writes(editor: Editor) -> bool:
    """An operation that reads a tensor which no operation writes."""
    number, position = editor.any_input()
    operand = editor.operands[editor.nodes[number].inputs[position]]
    if operand.type == OperandCode.MODEL:
        return False
    lifetime = Lifetime.TEMPORARY_VARIABLE
    index = editor.add(replace(operand, lifetime=lifetime, data=None))
    editor.set_input(number, position, index)
    return True


def reads_itself(editor: Editor) -> bool:
    """An operation that reads its own output."""
    number, position = editor.any_input()
    editor.set_input(number, position, editor.nodes[number].outputs[0])
    return True


def reads_in_a_circle(editor: Editor) -> bool:
    """Two operations that read each other's outputs."""
    written = {node.outputs[0]: number for number, node in enumerate(editor.nodes)}
    pairs = [
        (written[index], number)
        for number, node in enumerate(editor.nodes)
        for index in node.inputs
        if index in written
    ]
    if not pairs:
        return False
    first, second = pairs[int(editor.random.integers(len(pairs)))]
    editor.set_input(first, 0, editor.nodes[second].outputs[0])
    return True


def two_writers(editor: Editor) -> bool:
    """Two operations that write the same tensors."""
    editor.nodes.append(editor.nodes[editor.any_node()])
    return True


def writes_twice(editor: Editor) -> bool:
    """An operation that writes a tensor twice."""
    number = editor.any_node()
    outputs = editor.nodes[number].outputs
    editor.nodes[number] = replace(editor.nodes[number], outputs=(*outputs, outputs[0]))
    return True


def writes_what_has_a_value(editor: Editor) -> bool:
    """An operation that writes a constant, an input of the model, or nothing."""
    number = editor.any_node()
    old = editor.nodes[number].outputs[0]
    operand = editor.operands[old]
    index = editor.pick(editor.operands_of(*_CONSTANT, Lifetime.SUBGRAPH_INPUT))
    if index is None or editor.random.random() < 0.5:
        index = editor.add(replace(operand, lifetime=Lifetime.NO_VALUE))
    editor.set_output(number, 0, index)
    return True


def unknown_operation(editor: Editor) -> bool:
    """An operation that there is not."""
    number = editor.any_node()
    code = editor.pick(_UNKNOWN_CODES) or 0
    editor.nodes[number] = replace(editor.nodes[number], type=code)
    return True


def wrong_number_of_inputs(editor: Editor) -> bool:
    """An operation with so many inputs as no form of it has."""
    number = editor.any_node()
    node = editor.nodes[number]
    allowed = {1000} if node.type in _CONTROL_FLOW else _input_counts(node.type)
    count = editor.pick(n for n in range(max(allowed) + 3) if n not in allowed and n < 65)
    if node.type in _CONTROL_FLOW:
        count = editor.pick((0, 1, 2))
    if count is None:
        return False
    inputs = (*node.inputs, *node.inputs[-1:] * 65)[:count]
    editor.nodes[number] = replace(node, inputs=inputs)
    return True


def _input_counts(code: int) -> set[int]:
    """Numbers of inputs that an operation may have."""
    counts: set[int] = set()
    for form in definitions()[code].forms:
        is_open = any(argument.variadic for argument in form.inputs)
        counts.update(range(len(form.inputs), 70) if is_open else (len(form.inputs),))
    return counts


def no_outputs(editor: Editor) -> bool:
    """An operation that writes nothing."""
    number = editor.any_node()
    editor.nodes[number] = replace(editor.nodes[number], outputs=())
    return True


def too_many_outputs(editor: Editor) -> bool:
    """An operation with more outputs than it has."""
    number = editor.any_node()
    node = editor.nodes[number]
    if node.type in (*_CONTROL_FLOW, OperationCode.SPLIT):
        return False
    extra = tuple(
        editor.add(Operand(OperandCode.TENSOR_FLOAT32, (2,), lifetime=Lifetime.SUBGRAPH_OUTPUT))
        for _ in range(7)
    )
    editor.nodes[number] = replace(node, outputs=(*node.outputs, *extra))
    return True


def type_that_nothing_takes(editor: Editor) -> bool:
    """An operation with an input or output of a type that no operation has."""
    code = _NEVER_TAKEN[int(editor.random.integers(len(_NEVER_TAKEN)))]
    dimensions = (2,) if code.traits.is_tensor else ()
    if editor.random.random() < 0.7:
        number, position = editor.any_input()
        index = editor.add(Operand(code, dimensions, lifetime=Lifetime.SUBGRAPH_INPUT))
        editor.set_input(number, position, index)
        return True
    index = editor.add(Operand(code, dimensions, lifetime=Lifetime.SUBGRAPH_OUTPUT))
    editor.set_output(editor.any_node(), 0, index)
    return True


def scalar_for_a_tensor(editor: Editor) -> bool:
    """An operation whose first input, a tensor or model for each of them, is a scalar."""
    editor.set_input(editor.any_node(), 0, editor.add_scalar(OperandCode.INT32))
    return True


def tensor_for_a_scalar(editor: Editor) -> bool:
    """An operation with a tensor of one element in the place of a scalar."""
    pairs = [
        (number, position)
        for number, node in enumerate(editor.nodes)
        for position, index in enumerate(node.inputs)
        if editor.operands[index].type == OperandCode.INT32
    ]
    # A convolution's or pooling's form may have another argument in this place; none a tensor.
    if not pairs:
        return False
    number, position = pairs[int(editor.random.integers(len(pairs)))]
    data = np.zeros(1, np.int32).tobytes()
    tensor = Operand(OperandCode.TENSOR_INT32, (1,), 0, 0, Lifetime.CONSTANT_COPY, data)
    editor.set_input(number, position, editor.add(tensor))
    return True


def wrong_rank(editor: Editor) -> bool:
    """An operation with an input of a rank that it does not take."""
    places = []
    for number, node in enumerate(editor.nodes):
        if node.type in _CONTROL_FLOW:
            continue
        inputs = [editor.operands[index] for index in node.inputs]
        outputs = [editor.operands[index] for index in node.outputs]
        match = definitions()[node.type].match(inputs, outputs)
        places += [(number, i) for i, argument in enumerate(match.inputs) if argument.ranks]
    if not places:
        return False
    number, position = places[int(editor.random.integers(len(places)))]
    operand = editor.operands[editor.nodes[number].inputs[position]]
    if operand.channel_quant is not None or operand.lifetime is Lifetime.NO_VALUE:
        return False
    changed = replace(operand, dimensions=_HIGH_RANK, lifetime=Lifetime.SUBGRAPH_INPUT, data=None)
    editor.set_input(number, position, editor.add(changed))
    return True


def no_operations(editor: Editor) -> bool:
    """A model without operations, or without anything."""
    editor.nodes.clear()
    if editor.random.random() < 0.5:
        editor.operands.clear()
        editor.inputs.clear()
        editor.outputs.clear()
    return True


def listed_twice(editor: Editor) -> bool:
    """An operand that is twice among the inputs or the outputs."""
    lists = [entries for entries in (editor.inputs, editor.outputs) if entries]
    entries = lists[int(editor.random.integers(len(lists)))]
    entries.append(entries[int(editor.random.integers(len(entries)))])
    return True


def listed_as_both(editor: Editor) -> bool:
    """An operand that is an input and an output."""
    if not editor.inputs:
        return False
    if editor.random.random() < 0.5:
        editor.outputs.append(editor.inputs[0])
    else:
        editor.inputs.append(editor.outputs[0])
    return True


def constant_listed(editor: Editor) -> bool:
    """A constant, or an operand without a value, among the inputs or outputs."""
    index = editor.pick(editor.operands_of(*_CONSTANT, Lifetime.NO_VALUE))
    if index is None:
        return False
    (editor.inputs if editor.random.random() < 0.5 else editor.outputs).append(index)
    return True


def listed_out_of_range(editor: Editor) -> bool:
    """An operand that does not exist among the inputs or outputs."""
    entries = editor.inputs if editor.random.random() < 0.5 else editor.outputs
    entries.append(_out_of_range(editor))
    return True


def input_not_listed(editor: Editor) -> bool:
    """An input that is read and not in the list."""
    read = {index for node in editor.nodes for index in node.inputs}
    index = editor.pick(i for i in editor.inputs if i in read)
    if index is None:
        return False
    editor.inputs.remove(index)
    return True
