"""Finds operations on float32 elements that one command computes together."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from armpy.graph import Layer, SubgraphView, Value
from armpy.records import dataclass
from armpy.types import DataType
from armpy_numba_acc.lowering.broadcasting import MAX_INPUTS, emit_elementwise
from armpy_numba_acc.lowering.real_functions import function_of
from armpy_numba_acc.machine.expression_words import PARAMETER_WORD
from armpy_numba_acc.program.emitter import Emitter

MAX_WORDS = 24
"""Of an expression: what is read twice is written twice."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Layers that are computed without writing what lies between them.

    Parameters
    ----------
    layers : tuple of Layer
        In the order of execution; all write the shape that the last one does.
    inputs : tuple of Value
        What they read, constants of one element left out.
    words : str
        The expression; see `armpy_numba_acc.tiles.expressions.expression_named`.
    parameters : tuple of float
        The expression's.
    """

    layers: tuple[Layer, ...]
    inputs: tuple[Value, ...]
    words: str
    parameters: tuple[float, ...]


def find_chains(view: SubgraphView, taken: Collection[Layer] = ()) -> Mapping[Layer, Chain]:
    """Chains of at least two layers, by their last layer.

    Parameters
    ----------
    view : SubgraphView
    taken : collection of Layer
        Layers that are computed with others already.

    Notes
    -----
    A layer joins those behind it if nobody else reads its output, and if that has as many
    elements as theirs: what broadcasts would be computed again and again.
    """
    readers: dict[Value, set[Layer]] = {}
    for layer in view.layers:
        for value in layer.inputs:
            if value is not None:
                readers.setdefault(value, set()).add(layer)
    order = {layer: number for number, layer in enumerate(view.layers)}
    outside = set(view.outputs)
    makers = {
        layer.outputs[0]: layer
        for layer in view.layers
        if layer not in taken and layer.outputs[0] not in outside and _is_real(layer)
    }
    used = set(taken)
    chains: dict[Layer, Chain] = {}
    for layer in reversed(view.layers):
        if layer in used or not _is_real(layer):
            continue
        chain = _chain_behind(layer, order, makers, readers)
        if len(chain.layers) > 1:
            chains[layer] = chain
            used.update(chain.layers)
    return chains


def lower_chain(emit: Emitter, chain: Chain) -> None:
    """Add the command of a chain, in the place of its last layer's."""
    label = " + ".join(layer.name for layer in chain.layers)
    output = chain.layers[-1].outputs[0]
    emit_elementwise(emit, chain.words, chain.inputs, output, label, chain.parameters)


def _is_real(layer: Layer) -> bool:
    """Whether a layer computes float32 elements by an expression."""
    values = [value for value in (*layer.inputs, *layer.outputs) if value is not None]
    are_floats = all(value.info.data_type is DataType.FLOAT32 for value in values)
    return are_floats and function_of(layer.operation) is not None


def _chain_behind(
    last: Layer,
    order: Mapping[Layer, int],
    makers: Mapping[Value, Layer],
    readers: Mapping[Value, set[Layer]],
) -> Chain:
    """The longest chain that ends with a layer."""
    members = {last}
    chain = _written(members, last, order)
    assert chain is not None
    size = last.outputs[0].info.num_elements
    refused: set[Layer] = set()
    while True:
        joining = [
            makers[value]
            for value in chain.inputs
            if value in makers
            and makers[value] not in refused
            and readers[value] <= members
            and value.info.num_elements == size
        ]
        if not joining:
            return chain
        longer = _written(members | {joining[0]}, last, order)
        if longer is None:
            refused.add(joining[0])
        else:
            members.add(joining[0])
            chain = longer


def _written(members: set[Layer], last: Layer, order: Mapping[Layer, int]) -> Chain | None:
    """The chain of some layers; None if its expression is too long or reads too much."""
    made = {layer.outputs[0]: layer for layer in members}
    inputs: list[Value] = []
    parameters: list[float] = []

    def words_of(value: Value) -> list[str]:
        if value in made:
            function = function_of(made[value].operation)
            assert function is not None
            operands = [words_of(v) for v in made[value].inputs if v is not None]
            parameters.extend(function[1])
            return [word for words in operands for word in words] + function[0].split(".")
        if value.data is not None and value.data.size == 1:
            parameters.append(float(value.data.reshape(())))
            return [PARAMETER_WORD]
        if value not in inputs:
            inputs.append(value)
        return [f"x{inputs.index(value)}"]

    words = words_of(last.outputs[0])
    if len(words) > MAX_WORDS or not 1 <= len(inputs) <= MAX_INPUTS:
        # One layer always fits: it is lowered as it is where it has constants only.
        return None if len(members) > 1 else Chain((last,), tuple(inputs), "", ())
    layers = tuple(sorted(members, key=order.__getitem__))
    return Chain(layers, tuple(inputs), ".".join(words), tuple(parameters))
