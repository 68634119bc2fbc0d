"""Lowers while loops: their graphs' commands, run again and again by the program itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from armpy.graph import Graph, Layer, Value
from armpy.graph.counting import counted
from armpy.graph.nesting import graphs_of
from armpy.ops import While
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy_numba_acc.lowering.list_writes import Write, find_writes
from armpy_numba_acc.lowering.nested_graphs import copy, jump, lowered, refusal_of_graphs
from armpy_numba_acc.lowering.operands import expect, given
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Graphs of known shapes, the same in every turn, that are not too many."""
    operation = expect(operation, While)
    if reason := refusal_of_graphs(operation, inputs):
        return reason
    body = operation.body_graph
    before = body.input_infos[: len(body.output_infos)]
    is_changed = [info.shape for info in before] != [info.shape for info in body.output_infos]
    return "shapes change from turn to turn" if is_changed else ""


def lower_while(emit: Emitter, layer: Layer) -> None:
    """The commands of the condition, if it is needed, and of the body, with jumps around them."""
    operation = expect(layer.operation, While)
    condition, body = (graph for _, graph in graphs_of(operation))
    turns = counted(operation, layer.inputs)
    states = _begun(emit, layer, body, given(layer))
    counter = emit.scratch(8)
    control = emit.control()
    jump(emit, layer, calls.Loop("begin", control, counter))
    first = emit.num_commands
    flag: Buffer | int = 0
    if turns is None:
        nested = lowered(emit, f"{layer.name}/condition", condition, states)
        flag = nested.source(condition.outputs[0])
    tested = calls.Loop("test", control, counter, flag, 0 if turns is None else turns.num_turns)
    test = jump(emit, layer, tested)
    written = find_writes(body)
    nested = lowered(emit, f"{layer.name}/body", body, states, written)
    for write in written.values():
        _write(emit, layer, write, nested, states)
    made = [
        (state if number in written else nested.source(value), value.info.size_bytes)
        for number, (value, state) in enumerate(zip(body.outputs, states, strict=False))
    ]
    _move(emit, layer, made, states)
    jump(emit, layer, calls.Loop("back", control, counter, target=first))
    emit.change(test, replace(tested, target=emit.num_commands))
    for state in states:
        state.touch(emit.num_commands - 1)
    for output, state in zip(layer.outputs, states, strict=False):
        emit.place(output, state)


def _begun(emit: Emitter, layer: Layer, body: Graph, values: Sequence[Value]) -> list[Buffer]:
    """Return the places of the graphs' inputs in every turn: unchanged ones stay where they are."""
    states = []
    for number, value in enumerate(values):
        source = emit.source(value)
        is_changed = number < len(body.outputs) and body.outputs[number] is not body.inputs[number]
        if is_changed:
            state = emit.scratch(value.info.size_bytes)
            copy(emit, layer, source, state, value.info.size_bytes)
            states.append(state)
        else:
            states.append(source)
    return states


def _write(
    emit: Emitter, layer: Layer, write: Write, nested: Emitter, states: Sequence[Buffer]
) -> None:
    """Put one element of a list in its place."""
    count = write.whole.info.known_shape[0]
    run = write.element.info.size_bytes
    element, index = nested.source(write.element), nested.source(write.index)
    index_bytes = write.index.info.data_type.size_bytes
    call = calls.PutRun(index_bytes, element, states[write.number], index, count, run)
    emit(call, f"{layer.name}: write", num_bytes=2 * run, part="write")


def _move(
    emit: Emitter,
    layer: Layer,
    given: Sequence[tuple[Buffer, int]],
    states: Sequence[Buffer],
) -> None:
    """Put what a turn has given, and how many bytes, where the next turn looks for it."""
    moves = [
        (source, state, size)
        for (source, size), state in zip(given, states, strict=False)
        if (source.root, source.start) != (state.root, state.start)
    ]
    roots = {state.root for state in states}
    for number, (source, state, size) in enumerate(moves):
        if source.root in roots:  # it might be overwritten before it is read
            kept = emit.scratch(size)
            copy(emit, layer, source, kept, size)
            moves[number] = kept, state, size
    for source, state, size in moves:
        copy(emit, layer, source, state, size)


LOWERINGS = {While: LoweringRule(check, lower_while)}
