"""Makes up valid NNAPI models, the same ones for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from armpy.errors import ArmpyError
from armpy.nnapi.codes import OperandCode
from armpy.nnapi.lowering import lower_model
from armpy.nnapi.model_description import (
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)
from armpy.nnapi.operations import Form, OperationDefinition, TypeRow, definitions
from armpy.nnapi.validation import validate_model
from armpy.ops.operation import Array
from armpy.optimizer import specialize
from armpy.testing.random_graphs.call import Call, Source
from armpy.testing.random_graphs.control_flow import CONTROL_FLOW, control_flow_model
from armpy.testing.random_graphs.recipes import recipes

_SIZES = ((1, 0.4), (3, 0.3), (8, 0.2), (20, 0.1))
"""Numbers of operations, and how likely each is."""

_EXTRA_OUTPUTS = 0.1
"""Part of the tensors that operations read and that are outputs besides."""

_UNKNOWN = 0.1
"""Part of the tensors in between whose dimensions or rank the model leaves open."""

_TRIES = 50
"""How often operands of one operation are made up anew before another one is taken."""


@dataclass(frozen=True, slots=True)
class RandomModel:
    """A model and what to run it with.

    Parameters
    ----------
    seed : int
    description : ModelDescription
    inputs : tuple of ndarray
    """

    seed: int
    description: ModelDescription
    inputs: tuple[Array, ...]


def random_model(seed: int, size: int | None = None) -> RandomModel:
    """Make up a model.

    Parameters
    ----------
    seed : int
        0 or more.
    size : int, optional
        Number of operations of the main graph; drawn if left out.

    Notes
    -----
    Operations are drawn from all signatures of all definitions that have a recipe, each
    operation equally often. Whether a parameter goes is asked of the lowering: what it
    refuses is drawn again.
    """
    random = np.random.default_rng(seed)
    if size is None:
        size = int(random.choice([s for s, _ in _SIZES], p=[p for _, p in _SIZES]))
    if random.random() < CONTROL_FLOW:
        return RandomModel(seed, *control_flow_model(random))
    model = _Maker(random)
    while len(model.calls) < size:
        model.add_operation()
    return RandomModel(seed, *model.finish())


def random_call(
    random: np.random.Generator,
    definition: OperationDefinition,
    form: Form,
    row: TypeRow,
    pool: Sequence[Source] = (),
) -> tuple[Call, list[Operand]] | None:
    """Make up the operands of one operation; None if no try was accepted.

    Returns
    -------
    call : Call
    outputs : list of Operand
        With the dimensions that follow, 0 where they depend on elements.
    """
    recipe = recipes()[definition.code]
    for _ in range(_TRIES):
        call = Call(definition, form, row, random, pool)
        recipe(call)
        try:
            return call, _outputs(call)
        except ArmpyError:
            continue
    return None


def _outputs(call: Call) -> list[Operand]:
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


def _first_quant(call: Call, code: int) -> tuple[float, int]:
    """Quantisation of the first input of an output's type."""
    for source in call.inputs():
        if source.operand.type == code:
            return source.operand.scale, source.operand.zero_point
    return call.quantization(OperandCode(code))


class _Maker:
    """Collects operations until the model is large enough."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random
        self.calls: list[tuple[Call, list[Source]]] = []
        self._pool: list[Source] = []

    def add_operation(self) -> None:
        """Add an operation of a random kind; none if its operands could not be made up."""
        codes = list(recipes())
        definition = definitions()[int(self._random.choice(codes))]
        signatures = list(definition.signatures())
        form, row = signatures[int(self._random.integers(len(signatures)))]
        made = random_call(self._random, definition, form, row, self._pool)
        if made is None:
            return
        call, operands = made
        outputs = [
            Source(replace(operand, lifetime=Lifetime.TEMPORARY_VARIABLE), None, definition.code)
            for operand in operands
        ]
        self.calls.append((call, outputs))
        self._pool += [
            output
            for output, argument in zip(outputs, call.output_arguments(), strict=True)
            if output.operand.dimensions
            and 0 not in output.shape
            and argument.name not in call.private
        ]

    def finish(self) -> tuple[ModelDescription, tuple[Array, ...]]:
        """The model and its inputs' elements; what nobody reads is an output, and some more."""
        if not any(is_input(source) for call, _ in self.calls for source in call.inputs()):
            make_input(next(s for s in self.calls[0][0].inputs() if s.operand.is_tensor))
        read = {id(source) for call, _ in self.calls for source in call.inputs()}
        index: dict[int, int] = {}
        sources: list[Source] = []
        nodes = []
        for call, outputs in self.calls:
            for source in outputs:
                if id(source) not in read or self._random.random() < _EXTRA_OUTPUTS:
                    source.operand = replace(source.operand, lifetime=Lifetime.SUBGRAPH_OUTPUT)
                elif self._random.random() < _UNKNOWN:
                    unknown = (0,) * int(self._random.choice([0, len(source.shape)]))
                    source.operand = replace(source.operand, dimensions=unknown)
            for source in (*call.inputs(), *outputs):
                if id(source) not in index:
                    index[id(source)] = len(sources)
                    sources.append(source)
            nodes.append(
                OperationNode(
                    call.definition.code,
                    tuple(index[id(source)] for source in call.inputs()),
                    tuple(index[id(source)] for source in outputs),
                )
            )
        inputs = [source for source in sources if is_input(source)]
        lifetime = Lifetime.SUBGRAPH_OUTPUT
        graph = Subgraph(
            tuple(source.operand for source in sources),
            tuple(nodes),
            tuple(index[id(source)] for source in inputs),
            tuple(i for i, source in enumerate(sources) if source.operand.lifetime is lifetime),
        )
        arrays = tuple(source.data for source in inputs if source.data is not None)
        return ModelDescription(graph), arrays


def is_input(source: Source) -> bool:
    """Whether an operand is one of the model's inputs."""
    return source.operand.lifetime is Lifetime.SUBGRAPH_INPUT


def make_input(source: Source) -> None:
    """Turn a constant into an input of the model."""
    source.operand = replace(source.operand, lifetime=Lifetime.SUBGRAPH_INPUT, data=None)
