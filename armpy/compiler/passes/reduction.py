"""Passes that change the type that floats are computed in, with conversions at the edges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from armpy.compiler.passes.context import PassContext, layer_like
from armpy.core.dataclass import dataclass
from armpy.core.numerics import bfloat16_bits, bfloat16_values
from armpy.graph import Graph, Layer, Value
from armpy.graph.rewriter import Rewriter, rewrite
from armpy.ops.composite import Composite
from armpy.ops.control_flow import ControlFlow
from armpy.ops.convolution import Convolution2d, DepthwiseConvolution2d
from armpy.ops.data_movement import DataMovement
from armpy.ops.dense import FullyConnected
from armpy.ops.operation import Array
from armpy.ops.quantizing import Cast, Dequantize, Quantize
from armpy.tensor import TensorInfo
from armpy.types import DataType

_PRECISE = frozenset(("DetectionPostProcess",))
"""Operations that stay in float32: a box's corner of 2000 pixels is off by one in float16."""

_PASSIVE = (Cast, DataMovement, Dequantize, Quantize)
"""Operations that compute nothing in floats: for them alone, nothing is converted."""

_REDUCED_PRODUCTS = (Convolution2d, DepthwiseConvolution2d, FullyConnected)


@dataclass(frozen=True, slots=True)
class _Types:
    """The floating-point types that a layer is computed with."""

    # `inputs` and `outputs`: one per operand; those that are not floats stay what they are.
    inputs: tuple[DataType | None, ...]
    outputs: tuple[DataType, ...]


def reduce_fp32_to_fp16(graph: Graph, context: PassContext) -> Graph:
    """Compute float32 layers in float16, where operations and backends do that.

    A layer is left in float32 where its operation knows no float16, a constant does not fit
    there, or the first backend that takes it at all takes it in float32 only.

    References
    ----------
    Arm NN Fp32NetworkToFp16Converter, ConvertConstantsFloatToHalf, and the conversions that
    AssignBackends adds around layers that a backend refuses in float16.
    """
    return _retyped(graph, lambda layer: _as(layer, context, DataType.FLOAT32, DataType.FLOAT16))


def reduce_fp32_to_bf16(graph: Graph, context: PassContext) -> Graph:
    """Round what products read to bfloat16; sums, biases and results are float32.

    Operations know no bfloat16, so each tensor is converted there and back in front of the
    product, which a backend with such products takes as one with it. Weights are rounded here.
    A layer whose backend does not convert to bfloat16 is left as it is.

    References
    ----------
    Arm NN Fp32NetworkToBf16Converter, which releases of 2023 have left out again.
    """
    products = [layer for layer in graph.layers if _rounds_operands(layer, context)]
    rounded: dict[Value, Value] = {}

    def change(rewriter: Rewriter, layer: Layer, _: None) -> None:
        inputs = rewriter.operands(layer)
        for index, value in enumerate(layer.inputs[:2]):
            assert value is not None
            # Once per tensor, however many products read it.
            if value not in rounded:
                rounded[value] = _rounded(rewriter, value)
            inputs[index] = rounded[value]
        rewriter.replace(layer, layer.operation, inputs)

    return rewrite(graph, dict.fromkeys(products), change)


def _rounds_operands(layer: Layer, context: PassContext) -> bool:
    """Return whether a layer is a product of floats on a backend that converts to bfloat16."""
    if not isinstance(layer.operation, _REDUCED_PRODUCTS):
        return False
    value, weights = layer["input"], layer["weights"]
    if {value.info.data_type, weights.info.data_type} != {DataType.FLOAT32}:
        return False
    backend = next((backend for backend in context.backends if context.takes(backend, layer)), None)
    short = Value(-1, _info(value.info, DataType.BFLOAT16), value.name)
    # Both directions are asked about, as each tensor goes there and back.
    casts = (
        layer_like(layer, Cast(), [value], [short.info]),
        layer_like(layer, Cast(), [short], [value.info]),
    )
    return backend is not None and all(cast and context.takes(backend, cast) for cast in casts)


def _rounded(rewriter: Rewriter, value: Value) -> Value:
    """A tensor whose elements are numbers of bfloat16."""
    # A constant is rounded once, now, and no execution converts it.
    if value.data is not None:
        return rewriter.constant(bfloat16_values(bfloat16_bits(value.data)), value.info, value.name)
    source, name = rewriter.mapped(value), value.name
    short = _info(source.info, DataType.BFLOAT16)
    cast = rewriter.insert(Cast(), [source], f"{name}/float32_to_bfloat16", [short])
    back = rewriter.insert(Cast(), cast.outputs, f"{name}/bfloat16_to_float32", [source.info])
    return back.outputs[0]


def fall_back_to_float32(graph: Graph, context: PassContext) -> Graph:
    """Compute in float32 what a backend refuses in float16 only.

    References
    ----------
    Arm NN AssignBackends.
    """

    def choose(layer: Layer) -> _Types | None:
        types = _renamed(layer, DataType.FLOAT16, DataType.FLOAT32)
        # A Cast is about its types: in others it would be another layer.
        if types is None or isinstance(layer.operation, Cast):
            return None
        wide = _layer_of(layer, types)
        for backend in context.backends:
            # The most preferred backend that takes either form decides.
            if context.takes(backend, layer):
                return None
            if wide is not None and context.takes(backend, wide):
                return types
        return None

    return _retyped(graph, choose)


def _types_of(layer: Layer) -> _Types:
    """The types that a layer has."""
    inputs = tuple(None if info is None else info.data_type for info in layer.input_infos)
    return _Types(inputs, tuple(info.data_type for info in layer.output_infos))


def _renamed(layer: Layer, old: DataType, new: DataType) -> _Types | None:
    """A layer's types with one in the place of another; None if it has none, or must keep them."""
    operation = layer.operation
    is_closed = isinstance(operation, ControlFlow | Composite) or operation.is_random
    if is_closed or operation.extension or operation.name in _PRECISE:
        return None
    layer_types = _types_of(layer)
    types = _Types(
        tuple(new if kind is old else kind for kind in layer_types.inputs),
        tuple(new if kind is old else kind for kind in layer_types.outputs),
    )
    return None if types == layer_types else types


def _as(layer: Layer, context: PassContext, old: DataType, new: DataType) -> _Types | None:
    """A layer's types in the other form, if that is possible and its backend takes it so."""
    types = _renamed(layer, old, new)
    if types is None or not all(map(_fits, layer.inputs, types.inputs)):
        return None
    return types if context.prefers(_layer_of(layer, types), layer) else None


def _layer_of(layer: Layer, types: _Types) -> Layer | None:
    """A layer with other types, to ask about; None if its operation does not allow them."""
    inputs = [
        value and replace(value, info=_info(value.info, kind), data=_data(value, kind))
        for value, kind in zip(layer.inputs, types.inputs, strict=True)
    ]
    pairs = zip(layer.output_infos, types.outputs, strict=True)
    return layer_like(layer, layer.operation, inputs, [_info(*pair) for pair in pairs])


def _info(info: TensorInfo, kind: DataType | None) -> TensorInfo:
    """A tensor of another type."""
    return info if kind is None or info.data_type is kind else replace(info, data_type=kind)


def _data(value: Value, kind: DataType | None) -> Array | None:
    """A constant's elements in another type."""
    if value.data is None or kind is None or value.info.data_type is kind:
        return value.data
    # Only infinities become infinities: constants that do not fit have been refused.
    with np.errstate(over="ignore"):
        return value.data.astype(kind.dtype)


def _fits(value: Value | None, kind: DataType | None) -> bool:
    """Return whether a constant's finite elements are finite in another type."""
    if value is None or value.data is None or kind is not DataType.FLOAT16:
        return True
    largest = np.float32(np.finfo(np.float16).max)
    return bool(np.all(np.abs(value.data[np.isfinite(value.data)]) <= largest))


def _retyped(graph: Graph, choose: Callable[[Layer], _Types | None]) -> Graph:
    """The graph with some layers computed in other types."""
    types = {layer: chosen for layer in graph.layers if (chosen := choose(layer)) is not None}
    # Moving alone gains nothing in a short type, and would cost two conversions.
    types = {layer: types[layer] for layer in _connected(graph, types)}
    if not types:
        return graph
    return _TypeRewriter(graph, types).run()


def _connected(graph: Graph, chosen: Mapping[Layer, _Types]) -> list[Layer]:
    """Those of some layers that compute, or hand on what one of these reads or writes."""
    waiting = [layer for layer in chosen if not isinstance(layer.operation, _PASSIVE)]
    connected = dict.fromkeys(waiting)
    while waiting:
        layer = waiting.pop()
        above = [graph.producers.get(value) for value in layer.inputs if value is not None]
        below = [reader for value in layer.outputs for reader in graph.consumers.get(value, ())]
        for near in (*above, *below):
            if near in chosen and near not in connected and near is not None:
                connected[near] = None
                waiting.append(near)
    return [layer for layer in chosen if layer in connected]


class _TypeRewriter:
    """Rebuilds a graph with conversions where a tensor is needed in another type."""

    def __init__(self, graph: Graph, types: Mapping[Layer, _Types]) -> None:
        self._rewriter = Rewriter(graph)
        self._types = types
        # Each tensor in each requested type.
        self._made: dict[tuple[Value, DataType], Value] = {}

    def run(self) -> Graph:
        """Add every layer, then give results the types that they had."""
        rewriter, graph = self._rewriter, self._rewriter.graph
        for layer in graph.layers:
            types = self._types.get(layer) or _types_of(layer)
            inputs = [
                None if value is None or kind is None else self._value(value, kind)
                for value, kind in zip(layer.inputs, types.inputs, strict=True)
            ]
            infos = [_info(*p) for p in zip(layer.output_infos, types.outputs, strict=True)]
            new_layer = rewriter.replace(layer, layer.operation, inputs, infos)
            for old, new in zip(layer.outputs, new_layer.outputs, strict=True):
                self._made[old, new.info.data_type] = new
        # One tensor may be several results.
        for value in dict.fromkeys(graph.results):
            rewriter.alias(value, self._value(value, value.info.data_type))
        return rewriter.finish()

    def _value(self, value: Value, kind: DataType) -> Value:
        """A tensor in one type, converted where it is first needed so."""
        key = value, kind
        if key not in self._made:
            self._made[key] = self._convert(value, kind)
        return self._made[key]

    def _convert(self, value: Value, kind: DataType) -> Value:
        """A tensor in a type that it is not there in yet."""
        if value.data is not None:
            data, info = _data(value, kind), _info(value.info, kind)
            assert data is not None
            return self._rewriter.constant(data, info, value.name)
        source = self._rewriter.mapped(value)
        if source.info.data_type is kind:
            return source
        name = f"{value.name}/{source.info.data_type.name}_to_{kind.name}".lower()
        infos: Sequence[TensorInfo] = [replace(source.info, data_type=kind)]
        return self._rewriter.insert(Cast(), [source], name, infos).outputs[0]
