"""Lowers If layers: the commands of both graphs, of which the program itself runs one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from armpy.graph import Graph, Layer
from armpy.graph.nesting import graphs_of
from armpy.ops import If
from armpy.ops.backend_internal import UnfitGraph
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy_numba_acc.lowering.nested_graphs import copy, jump, lowered, refusal_of_graphs
from armpy_numba_acc.lowering.operands import expect, given
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.memory import Buffer
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.registry import LoweringRule


def check(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Graphs of known shapes, whose outputs are alike."""
    operation = expect(operation, If)
    if reason := refusal_of_graphs(operation, inputs[1:]):
        return reason
    then_shapes, else_shapes = (
        [info.shape for info in graph.output_infos] for _, graph in graphs_of(operation)
    )
    return "" if then_shapes == else_shapes else "the graphs give different shapes"


def lower_if(emit: Emitter, layer: Layer) -> None:
    """The commands of both graphs, with jumps around them; of one, if the condition is constant."""
    condition, *values = given(layer)
    states = [emit.source(value) for value in values]
    graphs = dict(graphs_of(expect(layer.operation, If)))
    if condition.data is not None:
        name = "then" if condition.data.reshape(-1)[0] else "else"
        nested = lowered(emit, f"{layer.name}/{name}", graphs[name], states)
        for output, value in zip(layer.outputs, graphs[name].outputs, strict=True):
            emit.place(output, nested.source(value))
        return
    results = [emit.scratch(output.info.size_bytes) for output in layer.outputs]
    unless = calls.Loop("unless", emit.control(), 0, emit.source(condition))
    choice = jump(emit, layer, unless)
    _branch(emit, layer, "then", graphs["then"], states, results)
    skip = replace(unless, part="skip", flag=0)
    end = jump(emit, layer, skip)
    emit.change(choice, replace(unless, target=emit.num_commands))
    _branch(emit, layer, "else", graphs["else"], states, results)
    emit.change(end, replace(skip, target=emit.num_commands))
    for output, result in zip(layer.outputs, results, strict=True):
        emit.place(output, result)


def _branch(
    emit: Emitter,
    layer: Layer,
    name: str,
    graph: Graph,
    states: Sequence[Buffer],
    results: Sequence[Buffer],
) -> None:
    """Add the commands of one graph, which put its outputs where both graphs put theirs."""
    nested = lowered(emit, f"{layer.name}/{name}", graph, states)
    for output, value, result in zip(layer.outputs, graph.outputs, results, strict=True):
        copy(emit, layer, nested.source(value), result, output.info.size_bytes)


def lower_unfit(emit: Emitter, layer: Layer) -> None:
    """The command that ends the execution with an error."""
    operation = expect(layer.operation, UnfitGraph)
    refuse = calls.Loop("refuse", emit.control(), 0, emit.failure())
    emit(refuse, f"{operation.where}: {operation.reason}", part="refuse")
    for output in layer.outputs:
        emit.place(output, emit.scratch(output.info.size_bytes))


LOWERINGS = {
    If: LoweringRule(check, lower_if),
    UnfitGraph: LoweringRule(lambda *_: "", lower_unfit),
}
