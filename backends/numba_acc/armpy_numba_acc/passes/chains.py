"""Elementwise fusion: finds chains of operations on float32 that one command computes.

Notes
-----
Conversions from and to float16 are links like others: values computed as float32 and rounded
after each layer is rounded in registers. So are those of sums in int32 to floats, with what is
added to them before, and of floats to bytes: networks that are quantised as they run have them
around every product. So are those between bytes and floats: quantised tensors that no kernel
computes with exactly come as floats and leave as bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from armpy.core.dataclass import dataclass
from armpy.graph import Layer, SubgraphView, Value
from armpy.ops import BinaryOperation, Cast, Dequantize, ElementwiseBinary, Quantize
from armpy.types import DataType
from armpy_numba_acc.lowering.broadcasting import MAX_INPUTS, emit_elementwise
from armpy_numba_acc.lowering.quantizing import FLOAT_CASTS, dequantizing, quantizing
from armpy_numba_acc.lowering.real_functions import (
    Function,
    function_of,
    has_expression,
    operands_of,
)
from armpy_numba_acc.machine.expressions import PARAMETER
from armpy_numba_acc.program.emitter import Emitter

_CONVERSIONS = {
    **FLOAT_CASTS,
    (DataType.SIGNED32, DataType.FLOAT32): "int_to_float",
    (DataType.FLOAT32, DataType.UNSIGNED8): "float_to_u8",
}
"""Expressions of conversions that are links."""

_OF_SUMS = {
    BinaryOperation.ADD: "int_add",
    BinaryOperation.SUB: "int_sub",
    BinaryOperation.MUL: "int_mul",
}
"""Expressions of operations on int32 that are."""

MAX_TOKENS = 24
"""Of an expression: a value read twice is written twice."""


@dataclass(frozen=True, slots=True)
class ElementwiseChain:
    """Layers that are computed without writing what lies between them."""

    # In the order of execution; all write the shape that the last one does.
    layers: tuple[Layer, ...]
    inputs: tuple[Value, ...]  # without constants of one element
    expression: str  # see `armpy_numba_acc.tiles.elementwise.expressions.expression_named`
    parameters: tuple[float, ...]  # the expression's

    @property
    def absorbed(self) -> tuple[Layer, ...]:
        """Layers whose outputs no others read."""
        return tuple(layer for layer in self.layers if not _is_repeated(layer))


def find_chains(
    view: SubgraphView, taken: Collection[Layer] = ()
) -> Mapping[Layer, ElementwiseChain]:
    """Chains of at least two layers, by their last layer.

    A layer joins those after it if no other layer reads its output, or if it converts bytes to
    floats; and if that has as many elements as theirs: what broadcasts would be computed again and
    again.

    Parameters
    ----------
    taken
        Layers that are computed with others already.
    """
    order = {layer: number for number, layer in enumerate(view.layers)}
    outside, used = set(view.outputs), set(taken)
    makers = {
        layer.output: layer
        for layer in view.layers
        if layer not in used and _is_link(layer) and not isinstance(layer.operation, Quantize)
        if layer.output not in outside or _is_repeated(layer)
    }
    chains: dict[Layer, ElementwiseChain] = {}
    for layer in reversed(view.layers):
        if layer in used or not _is_link(layer):
            continue
        chain = _chain_ending_with(view, layer, order, makers)
        if len(chain.layers) > 1:
            chains[layer] = chain
            used.update(chain.absorbed)
    return chains


def lower_chain(emit: Emitter, chain: ElementwiseChain) -> None:
    """Add the command of a chain, in the place of its last layer's."""
    label = " + ".join(layer.name for layer in chain.layers)
    output = chain.layers[-1].output
    emit_elementwise(emit, chain.expression, chain.inputs, output, label, chain.parameters)


def _is_link(layer: Layer) -> bool:
    """Return whether a layer computes float32 elements by an expressionor is a known link."""
    if _of_other_types(layer)[0]:
        return layer.inputs[0] is not None and layer.inputs[0].data is None
    infos = [info for info in (*layer.input_infos, *layer.output_infos) if info is not None]
    are_floats = all(info.data_type is DataType.FLOAT32 for info in infos)
    return are_floats and has_expression(layer.operation)


def _of_other_types(layer: Layer) -> Function:
    """The expression of a conversion, or of an operation on int32; empty for other layers."""
    operation, target = layer.operation, layer.output.info
    if isinstance(operation, Cast):
        return _CONVERSIONS.get((layer["input"].info.data_type, target.data_type), ""), ()
    if isinstance(operation, Dequantize):
        return dequantizing(layer["input"].info)
    if isinstance(operation, Quantize) and layer["input"].info.data_type is DataType.FLOAT32:
        return quantizing(operation, target)
    if isinstance(operation, ElementwiseBinary) and target.data_type is DataType.SIGNED32:
        return _OF_SUMS.get(operation.operation, ""), ()
    return "", ()


def _function_of(layer: Layer) -> Function:
    """A link's expression and its parameters."""
    own = _of_other_types(layer)
    return own if own[0] else function_of(layer)


def _is_repeated(layer: Layer) -> bool:
    """Return whether each chain computes a layer again, as reading bytes is quicker than floats."""
    return isinstance(layer.operation, Dequantize) and layer["input"].info.data_type.size_bytes == 1


def _chain_ending_with(
    view: SubgraphView, last: Layer, order: Mapping[Layer, int], makers: Mapping[Value, Layer]
) -> ElementwiseChain:
    """The longest chain that ends with a layer."""
    size, refused, members = last.output.info.num_elements, set[Layer](), {last}
    chain = _written(members, last, order)
    if chain is None:  # it reads nothing but constants
        return ElementwiseChain((last,), (), "", ())

    def can_join(value: Value) -> bool:
        return (
            value in makers
            and makers[value] not in refused
            and (members.issuperset(view.consumers[value]) or _is_repeated(makers[value]))
            and value.info.num_elements == size
        )

    while joining := next(filter(can_join, chain.inputs), None):
        maker = makers[joining]
        longer = _written(members | {maker}, last, order)
        if longer is None:
            refused.add(maker)
        else:
            members.add(maker)
            chain = longer
    return chain


def _written(
    members: set[Layer], last: Layer, order: Mapping[Layer, int]
) -> ElementwiseChain | None:
    """The chain of some layers; None if its expression is too long or reads too much."""
    makers = {layer.output: layer for layer in members}
    inputs: list[Value] = []
    parameters: list[float] = []

    def tokens_of(value: Value) -> list[str]:
        if value in makers:
            function, numbers = _function_of(makers[value])
            inner = map(tokens_of, operands_of(makers[value]))
            operands = [token for tokens in inner for token in tokens]
            parameters.extend(numbers)
            return operands + function.split(".")
        is_float = value.info.data_type is DataType.FLOAT32
        if value.data is not None and value.data.size == 1 and is_float:
            parameters.append(float(value.data.reshape(())))
            return [PARAMETER]
        if value not in inputs:
            inputs.append(value)
        return [f"x{inputs.index(value)}"]

    tokens = tokens_of(last.output)
    if len(tokens) > MAX_TOKENS or not 1 <= len(inputs) <= MAX_INPUTS:
        return None
    layers = tuple(sorted(members, key=order.__getitem__))
    return ElementwiseChain(layers, tuple(inputs), ".".join(tokens), tuple(parameters))
