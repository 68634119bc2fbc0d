"""Finds layers that together are a function of one byte: one table of 256 computes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.graph import Layer, SubgraphView, Value
from armpy.ops import Activation, BinaryOperation, ElementwiseBinary, ElementwiseUnary, Quantize
from armpy.ops.operation import Array
from armpy.types import DataType
from armpy_numba_acc.lowering.lookup import emit_lookup_or_alias
from armpy_numba_acc.packing import tables
from armpy_numba_acc.packing.lines import exact_pairs
from armpy_numba_acc.packing.quantized import QUANTIZED_TYPES, stored_bounds
from armpy_numba_acc.program.emitter import TOP_BIT, Emitter

_BINARY = (BinaryOperation.ADD, BinaryOperation.SUB, BinaryOperation.MUL)

_MOST_LAYERS = 16
"""Of a function: a longer one is a mistake."""


@dataclass(frozen=True, eq=False, slots=True)
class ByteFunction:
    """Layers that are computed together."""

    # In the order of execution; the last one gives the result. Those whose outputs others read as
    # well have commands of their own, too.
    layers: tuple[Layer, ...]
    absorbed: tuple[Layer, ...]  # the others
    root: Value  # the only tensor that they read, apart from single numbers


def find_byte_functions(
    view: SubgraphView, taken: Collection[Layer] = ()
) -> Mapping[Layer, ByteFunction]:
    """Functions of at least two layers, by their last layer.

    ``x sigmoid(x)`` is one, which Keras writes as a LOGISTIC and a MUL.

    Parameters
    ----------
    taken
        Layers that are computed with others already.
    """
    makers = {
        layer.output: layer
        for layer in view.layers
        if layer not in taken and _reads(layer) is not None
    }
    order = {layer: number for number, layer in enumerate(view.layers)}
    outside, used = set(view.outputs), set[Layer]()
    functions: dict[Layer, ByteFunction] = {}
    for layer in reversed(view.layers):
        if layer in used or layer.output not in makers:
            continue
        members, root = _with_makers(view, layer, makers, order, outside)
        if root is None:
            continue
        layers = tuple(sorted(members, key=order.__getitem__))
        gone = {layer}
        for member in reversed(layers[:-1]):
            if member.output not in outside and gone.issuperset(view.consumers[member.output]):
                gone.add(member)
        used.update(gone)
        functions[layer] = ByteFunction(layers, tuple(m for m in layers if m in gone), root)
    return functions


def lower_byte_function(emit: Emitter, function: ByteFunction) -> None:
    """Add the command of a function, in the place of its last layer's."""
    known: dict[Value, Array] = {function.root: np.arange(256)}
    for layer in function.layers:
        known[layer.output] = _table(layer, known)
    output = function.layers[-1].output
    label = " + ".join(layer.name for layer in function.layers)
    table = known[output].astype(np.uint8)
    emit_lookup_or_alias(emit, table, function.root, output, label)


def _with_makers(
    view: SubgraphView,
    last: Layer,
    makers: Mapping[Value, Layer],
    order: Mapping[Layer, int],
    outside: Collection[Value],
) -> tuple[set[Layer], Value | None]:
    """A layer with those in front of it that read one tensor, and that; None if there are none."""
    members, reads = {last}, set(_reads(last) or ())
    layers, root = members, None
    while len(members) < _MOST_LAYERS:
        ready = [makers[value] for value in reads if value in makers]
        if len(reads) == 1:  # what others need is computed anyhow
            if len(members) > 1:
                layers, root = set(members), next(iter(reads))
            ready = [
                maker
                for maker in ready
                if maker.output not in outside and members.issuperset(view.consumers[maker.output])
            ]
        if not ready:
            break
        maker = max(ready, key=order.__getitem__)
        members.add(maker)
        reads = (reads - {maker.output}) | set(_reads(maker) or ())
    return layers, root


def _reads(layer: Layer) -> Sequence[Value] | None:
    """Tensors of which a layer computes each byte from those in its place; None if it does not."""
    operation, infos = layer.operation, [*layer.input_infos, *layer.output_infos]
    is_known = isinstance(operation, Activation | ElementwiseUnary | Quantize) or (
        isinstance(operation, ElementwiseBinary) and operation.operation in _BINARY
    )
    if not is_known or any(i is None or i.data_type not in QUANTIZED_TYPES for i in infos):
        return None
    if any(info is not None and info.has_per_axis_quantization for info in infos):
        return None
    values = [value for value in layer.inputs if value is not None]
    tensors = [value for value in values if value.data is None]
    shape = layer.output.info.known_shape
    are_same = all(value.info.known_shape == shape for value in tensors)
    are_numbers = all(v.info.num_elements == 1 for v in values if v.data is not None)
    return tensors if tensors and are_same and are_numbers else None


def _table(layer: Layer, known: Mapping[Value, Array]) -> Array:
    """A layer's bytes for every byte of the root."""
    operation, info = layer.operation, layer.output.info
    if isinstance(operation, ElementwiseBinary):
        values = layer["lhs"], layer["rhs"]
        first, second = (known[v] if v.data is None else _number(v) for v in values)
        infos = [value.info for value in (*values, layer.output)]
        pairs = exact_pairs(operation.operation, infos, first, second)
        return np.asarray(pairs.clip(*stored_bounds(operation.activation.bounds, info)))
    source = layer["input"]
    if isinstance(operation, Activation):
        own = tables.of_activation(operation, source.info, info)
    elif isinstance(operation, ElementwiseUnary):
        own = tables.of_unary(operation.operation, source.info, info)
    else:
        own = tables.of_requantization(source.info, info)
    return np.asarray(own[known[source]])


def _number(value: Value) -> Array:
    """A constant's byte as regions keep it."""
    assert value.data is not None  # `_reads` has looked
    stored: Array = value.data.reshape(1).view(np.uint8)
    return stored ^ TOP_BIT if value.info.data_type is DataType.QASYMM_S8 else stored
