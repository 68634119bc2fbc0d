"""Makes calls of single operations, and a model of several calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from armpy.compiler import specialize
from armpy.errors import ArmpyError
from armpy.ops.operation import Array
from armpy_nnapi.codes import OperandCode
from armpy_nnapi.conformance.random_graphs.call import RandomOperation, Source
from armpy_nnapi.conformance.random_graphs.recipes import recipes
from armpy_nnapi.description.model_description import (
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)
from armpy_nnapi.lowering.lower_model import lower_model
from armpy_nnapi.operations import Form, OperationDefinition, TypeRow
from armpy_nnapi.validation.validate_model import validate_model

_EXTRA_OUTPUTS = 0.1
"""Part of the tensors that operations read and that are outputs besides."""

_UNKNOWN = 0.1
"""Part of the tensors in between whose dimensions or rank the model leaves open."""

_TRIES = 50
"""Number of times that operands of one operation are drawn before another one is taken."""


MadeCall: TypeAlias = tuple[RandomOperation, list[Source]]
"""An operation and its outputs."""


def random_call(
    random: np.random.Generator,
    definition: OperationDefinition,
    form: Form,
    row: TypeRow,
    pool: Sequence[Source] = (),
) -> tuple[RandomOperation, list[Operand]] | None:
    """Make up the operands of one operation; None if no try was accepted.

    Returns
    -------
    call : RandomOperation
    outputs : list of Operand
        Outputs with the dimensions that follow, 0 where they depend on elements.
    """
    recipe = recipes()[definition.code]
    for _ in range(_TRIES):
        call = RandomOperation(definition, form, row, random, pool)
        recipe(call)
        try:
            return call, _outputs(call)
        except ArmpyError:
            continue
    return None


def _outputs(call: RandomOperation) -> list[Operand]:
    """Outputs of an operation, with the dimensions that its lowering infers."""
    inputs = [
        _as_known(source, argument.decisive)
        for argument in call.form.inputs
        for source in call.given[argument.name]
    ]
    outputs = []
    for argument in call.output_arguments():
        code = argument.code(call.row)
        quant = call.quantized.get(argument.name) or _first_quant(call, code)
        outputs.append(Operand(code, (), *quant, Lifetime.SUBGRAPH_OUTPUT))
    first = len(inputs)
    indexes = tuple(range(first, first + len(outputs)))
    graph = Subgraph(
        (*inputs, *outputs),
        (OperationNode(call.definition.code, tuple(range(first)), indexes),),
        tuple(i for i, o in enumerate(inputs) if o.lifetime is Lifetime.SUBGRAPH_INPUT),
        indexes,
    )
    description = ModelDescription(graph)
    validate_model(description)
    infos = [value.info for value in specialize(lower_model(description)).outputs]
    return [
        replace(operand, dimensions=tuple(dim or 0 for dim in info.shape or ()))
        for operand, info in zip(outputs, infos, strict=True)
    ]


def _as_known(source: Source, is_decisive: bool) -> Operand:
    """An input of an operation by itself: parameters are constants, whatever they will be."""
    operand = source.operand
    if source.data is not None and (is_decisive or not operand.is_tensor):
        data = source.data.tobytes()
        return replace(operand, lifetime=Lifetime.CONSTANT_COPY, data=data)
    if operand.lifetime is Lifetime.TEMPORARY_VARIABLE:
        return replace(operand, lifetime=Lifetime.SUBGRAPH_INPUT)
    return operand


def _first_quant(call: RandomOperation, code: int) -> tuple[float, int]:
    """Quantisation of the first input of an output's type."""
    for source in call.inputs():
        if source.operand.type == code:
            return source.operand.scale, source.operand.zero_point
    return call.quantization(OperandCode(code))


def results_of(call: RandomOperation, operands: Sequence[Operand]) -> list[Source]:
    """Return the results of a call, for others to read."""
    return [
        Source(replace(operand, lifetime=Lifetime.TEMPORARY_VARIABLE), None, call.definition.code)
        for operand in operands
    ]


def assemble(
    random: np.random.Generator, calls: Sequence[MadeCall]
) -> tuple[ModelDescription, tuple[Array, ...]]:
    """A model of calls, and its inputs' elements.

    Notes
    -----
    Unread tensors are outputs, and some others. Some of the read tensors that are not outputs leave
    their dimensions open.
    """
    if not any(_is_input(source) for call, _ in calls for source in call.inputs()):
        _make_input(next(s for s in calls[0][0].inputs() if s.operand.is_tensor))
    read = {id(source) for call, _ in calls for source in call.inputs()}
    for _, outputs in calls:
        for source in outputs:
            if id(source) not in read or random.random() < _EXTRA_OUTPUTS:
                source.operand = replace(source.operand, lifetime=Lifetime.SUBGRAPH_OUTPUT)
            elif random.random() < _UNKNOWN:
                unknown = (0,) * int(random.choice([0, len(source.shape)]))
                source.operand = replace(source.operand, dimensions=unknown)
    sources = list(
        {id(s): s for call, outputs in calls for s in (*call.inputs(), *outputs)}.values()
    )
    index = {id(source): position for position, source in enumerate(sources)}
    nodes = tuple(
        OperationNode(
            call.definition.code,
            tuple(index[id(source)] for source in call.inputs()),
            tuple(index[id(source)] for source in outputs),
        )
        for call, outputs in calls
    )
    inputs = [source for source in sources if _is_input(source)]
    graph = Subgraph(
        tuple(source.operand for source in sources),
        nodes,
        tuple(index[id(source)] for source in inputs),
        tuple(
            position
            for position, source in enumerate(sources)
            if source.operand.lifetime is Lifetime.SUBGRAPH_OUTPUT
        ),
    )
    arrays = tuple(source.data for source in inputs if source.data is not None)
    return ModelDescription(graph), arrays


def _is_input(source: Source) -> bool:
    """Return whether an operand is one of the model's inputs."""
    return source.operand.lifetime is Lifetime.SUBGRAPH_INPUT


def _make_input(source: Source) -> None:
    """Turn a constant into an input of the model."""
    source.operand = replace(source.operand, lifetime=Lifetime.SUBGRAPH_INPUT, data=None)
