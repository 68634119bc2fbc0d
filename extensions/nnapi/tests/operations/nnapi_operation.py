"""Lower and run models of a few NNAPI operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armpy.execution import Runtime, RuntimeOptions
from armpy.ops.operation import Array
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.description.model_description import (
    ChannelQuant,
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)
from armpy_nnapi.lowering.lower_model import lower_model
from armpy_nnapi.operations import Arguments, definitions


def tensor(
    code: OperandCode,
    values: object,
    scale: float = 0.0,
    zero_point: int = 0,
    channel_quant: ChannelQuant | None = None,
) -> Operand:
    """A constant tensor; stored integers for quantised types."""
    array = np.array(values, code.traits.dtype)
    return Operand(
        code,
        array.shape,
        scale,
        zero_point,
        Lifetime.CONSTANT_COPY,
        array.tobytes(),
        channel_quant,
    )


def scalar(code: OperandCode, value: float) -> Operand:
    """A constant scalar."""
    return tensor(code, value)


def integer(value: int) -> Operand:
    """A constant INT32."""
    return scalar(OperandCode.INT32, value)


def omitted(code: OperandCode, dimensions: Sequence[int] = ()) -> Operand:
    """An optional operand without a value."""
    return Operand(code, tuple(dimensions), lifetime=Lifetime.NO_VALUE)


def output(
    code: OperandCode,
    dimensions: Sequence[int] = (),
    scale: float = 0.0,
    zero_point: int = 0,
) -> Operand:
    """An output of the model; of unknown rank if no dimensions are given."""
    return Operand(code, tuple(dimensions), scale, zero_point, Lifetime.SUBGRAPH_OUTPUT)


def feature_level(
    code: OperationCode, inputs: Sequence[Operand], outputs: Sequence[Operand]
) -> int:
    """Lowest feature level that has an operation with these operands; raises if none has."""
    definition = definitions()[code]
    arguments = Arguments(definition.match(inputs, outputs), inputs, outputs)
    arguments.check_ranks()
    level = arguments.match.feature_level
    return level if definition.check is None else definition.check(arguments)


def run(
    code: OperationCode, inputs: Sequence[Operand], outputs: Sequence[Operand]
) -> tuple[Array, ...]:
    """Run one operation on CpuRef; tensors are inputs of the model, scalars its constants."""
    return run_chain([(code, inputs)], outputs)


def run_chain(
    steps: Sequence[tuple[OperationCode, Sequence[Operand]]],
    outputs: Sequence[Operand],
    between: Sequence[Operand] = (),
) -> tuple[Array, ...]:
    """Run operations one after the other on CpuRef.

    `steps`: each with its inputs; from the second step on without the first one.
    `outputs`: of the last step.
    `between`: the output of each other step, which is the next one's first input.
    """
    operands: list[Operand] = []
    nodes, positions, arrays = [], [], []
    carried: tuple[int, ...] = ()
    for number, (code, inputs) in enumerate(steps):
        indexes = [*carried]
        for operand in inputs:
            indexes.append(len(operands))
            elements = operand.elements
            if operand.is_tensor and elements is not None:
                positions.append(len(operands))
                arrays.append(elements)
                operands.append(replace(operand, lifetime=Lifetime.SUBGRAPH_INPUT, data=None))
            else:
                operands.append(operand)
        results = outputs if number == len(steps) - 1 else (_temporary(between[number]),)
        carried = tuple(range(len(operands), len(operands) + len(results)))
        operands.extend(results)
        nodes.append(OperationNode(code, tuple(indexes), carried))
    graph = Subgraph(tuple(operands), tuple(nodes), tuple(positions), carried)
    return _run_model(ModelDescription(graph), arrays)


def _temporary(operand: Operand) -> Operand:
    """The same inside of a model."""
    return replace(operand, lifetime=Lifetime.TEMPORARY_VARIABLE)


def _run_model(description: ModelDescription, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Outputs of a model."""
    runtime = Runtime(RuntimeOptions(backends=["CpuRef"]))
    network = runtime.load_network(lower_model(description))
    named = {f"input{position}": array for position, array in enumerate(arrays)}
    results = runtime.enqueue_workload(network, named)
    return tuple(results[f"output{i}"] for i in range(len(description.main.outputs)))
