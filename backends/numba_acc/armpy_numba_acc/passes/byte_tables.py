"""Finds layers that together are a function of one byte: one table of 256 computes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from armpy.core.dataclass import dataclass
from armpy.graph import Layer, SubgraphView, Value
from armpy.ops import (
    Activation,
    Cast,
    Comparison,
    Dequantize,
    ElementwiseBinary,
    ElementwiseUnary,
    LogicalBinary,
    Prelu,
    Quantize,
    Select,
)
from armpy.types import DataType
from armpy_numba_acc.lowering.lookup import emit_byte_function
from armpy_numba_acc.lowering.operands import given
from armpy_numba_acc.packing.quantized import QUANTIZED_TYPES
from armpy_numba_acc.program.emitter import Emitter

_ELEMENTWISE = (
    *(Activation, Cast, Comparison, Dequantize, ElementwiseBinary, ElementwiseUnary),
    *(LogicalBinary, Prelu, Quantize, Select),
)
"""Operations on the elements in one place."""

_BYTES = (*QUANTIZED_TYPES, DataType.SIGNED8, DataType.UNSIGNED8)
"""Types of which there is a table."""

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

    ``x sigmoid(x)`` is one, which Keras writes as a LOGISTIC and a MUL; so are functions of real
    numbers between a Dequantize and a Quantize.

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
        if layer in used or layer.output not in makers or layer.output.info.data_type not in _BYTES:
            continue
        members, root = _with_makers(view, layer, makers, order, outside)
        if root is None:
            continue
        layers = tuple(sorted(members, key=order.__getitem__))
        absorbed = _absorbed(view, layers, outside)
        used.update(absorbed)
        functions[layer] = ByteFunction(layers, tuple(m for m in layers if m in absorbed), root)
    return functions


def lower_byte_function(emit: Emitter, function: ByteFunction) -> None:
    """Add the command of a function, in the place of its last layer's."""
    label = " + ".join(layer.name for layer in function.layers)
    emit_byte_function(emit, function.layers, function.root, label)


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
        if len(reads) == 1 and all(value.info.data_type in _BYTES for value in reads):
            if len(members) > 1:
                layers, root = set(members), next(iter(reads))
            # What others need is computed anyhow.
            absorbed = _absorbed(view, sorted(members, key=order.__getitem__), outside)
            ready = [maker for maker in ready if _is_read_by(view, maker, absorbed, outside)]
        if not ready:
            break
        maker = max(ready, key=order.__getitem__)
        members.add(maker)
        reads = (reads - {maker.output}) | set(_reads(maker) or ())
    return layers, root


def _absorbed(
    view: SubgraphView, layers: Sequence[Layer], outside: Collection[Value]
) -> set[Layer]:
    """The last of some layers, and those whose outputs nothing but these reads."""
    absorbed = {layers[-1]}
    for layer in reversed(layers[:-1]):
        if _is_read_by(view, layer, absorbed, outside):
            absorbed.add(layer)
    return absorbed


def _is_read_by(
    view: SubgraphView, layer: Layer, readers: set[Layer], outside: Collection[Value]
) -> bool:
    """Return whether no others read a layer's output."""
    return layer.output not in outside and readers.issuperset(view.consumers[layer.output])


def _reads(layer: Layer) -> Sequence[Value] | None:
    """Tensors of which a layer computes each element from those in its place; None if not."""
    infos = [*layer.input_infos, *layer.output_infos]
    if not isinstance(layer.operation, _ELEMENTWISE) or None in infos:
        return None
    if any(info is not None and info.has_per_axis_quantization for info in infos):
        return None
    values = given(layer)
    tensors = [value for value in values if value.data is None]
    shape = layer.output.info.known_shape
    are_same = all(value.info.known_shape == shape for value in tensors)
    are_numbers = all(v.info.num_elements == 1 for v in values if v.data is not None)
    return tensors if tensors and are_same and are_numbers else None
