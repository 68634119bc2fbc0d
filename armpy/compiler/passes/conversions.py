"""Passes over layers that convert elements: pairs that cancel, and moves past movement."""

from __future__ import annotations

from armpy.compiler.pass_selection import MOVING, kind_of
from armpy.compiler.passes.context import PassContext
from armpy.graph import Graph, Layer, Value
from armpy.graph.rewriter import Rewriter, only_reader, rewrite
from armpy.ops.quantizing import Cast, Dequantize, Quantize
from armpy.tensor import TensorInfo
from armpy.types import DataType

_HALVES = (DataType.FLOAT16, DataType.BFLOAT16)
_FINE = (2.0**-100, 2.0**100)
"""Scales with which products of 16-bit integers neither overflow float32 nor lose digits."""


def merge_casts(graph: Graph, context: PassContext) -> Graph:
    """Make one cast of two, or none, where stored integers only change their name.

    Exact: the integers are of one size and sign. Front-ends write such casts where a file has
    plain integers that stand for real numbers.
    """
    merged: dict[Layer, Value] = {}
    for layer in graph.layers:
        if not _renames(layer):
            continue
        value, above = layer["input"], graph.producers.get(layer["input"])
        while above is not None and _renames(above):
            value, above = above["input"], graph.producers.get(above["input"])
        if value is not layer["input"]:
            merged[layer] = value
    return rewrite(graph, merged, _merge_cast)


def _merge_cast(rewriter: Rewriter, layer: Layer, source: Value) -> None:
    """Let a cast read a value; it is left out if it would change nothing."""
    value, info = rewriter.mapped(source), layer.output.info
    is_same = value.info.data_type is info.data_type
    if is_same and value.info.quantization == info.quantization:
        rewriter.alias(layer.output, value)
    else:
        rewriter.replace(layer, layer.operation, [value])


def _renames(layer: Layer) -> bool:
    """Return whether a layer gives stored integers another type or scale, and changes none."""
    if not isinstance(layer.operation, Cast):
        return False
    before, after = layer["input"].info.data_type, layer.output.info.data_type
    is_plain = not (before.is_float or after.is_float or before.is_narrow or after.is_narrow)
    return is_plain and before.dtype == after.dtype and DataType.BOOLEAN not in (before, after)


def cancel_conversions(graph: Graph, context: PassContext) -> Graph:
    """Remove conversions that end where others began, also around layers that move elements.

    Exactly those that give back every element: quantised to float32 and the same way back, or a
    shorter floating-point type. The way from float32 through a shorter one and back rounds.

    References
    ----------
    Arm NN OptimizeInverseConversionsFp16 and Fp32, the exact one of them; for quantised elements
    there is none.
    """
    ends: dict[Layer, Layer] = {}
    moved: dict[Layer, Layer | None] = {}
    for layer in graph.layers:
        chain = _chain_above(graph, layer)
        start = chain[-1] if chain else layer
        source = start.inputs[0] if start.inputs else None
        first = None if source is None else graph.producers.get(source)
        if first is None or not _gives_back(first, layer, bool(chain)):
            continue
        if all(_stays(context, mover, layer.output.info) for mover in chain):
            ends[layer] = first
            moved |= dict.fromkeys(chain)

    def change(rewriter: Rewriter, layer: Layer, first: Layer | None) -> None:
        source = layer["input"]
        producer = graph.producers.get(source)
        if layer in moved:
            # The first movement of a chain reads past the conversion; all others read movements.
            is_first = producer is not None and producer not in moved
            value = producer["input"] if is_first and producer is not None else source
            _add_moved(rewriter, layer, rewriter.mapped(value))
        else:
            value = first["input"] if first is not None and producer is first else source
            rewriter.alias(layer.output, rewriter.mapped(value))

    return rewrite(graph, {**moved, **ends}, change)


def move_conversions(graph: Graph, context: PassContext) -> Graph:
    """Move quantised elements instead of floats: quantise before a movement, dequantise after it.

    Exact. It pays where moving takes time for every byte; a compiled backend may do both at once.
    """
    early: dict[Layer, list[Layer]] = {}
    late: dict[Layer, list[Layer]] = {}
    claimed: set[Layer] = set()
    for layer in graph.layers:
        chain = _chain_above(graph, layer) if isinstance(layer.operation, Quantize) else []
        info = layer.output.info if chain else None
        if info is None or not _is_movable(info):
            continue
        # In front of a slice, more elements would be converted than are kept.
        grows = chain[-1]["input"].info.num_elements <= info.num_elements
        if grows and all(_stays(context, mover, info) for mover in chain):
            early[layer] = chain[::-1]
            claimed.update(chain)
    for layer in graph.layers:
        below = _chain_below(graph, layer) if isinstance(layer.operation, Dequantize) else []
        source = layer["input"].info if below else None
        # A movement between both conversions goes with the first of them that has it.
        if source is None or not _is_movable(source) or claimed.intersection(below):
            continue
        # After a broadcast, each element would be converted many times.
        shrinks = below[-1].output.info.num_elements <= source.num_elements
        if shrinks and all(_stays(context, mover, source) for mover in below):
            late[layer] = below
            claimed.update(below)

    def change(rewriter: Rewriter, layer: Layer, chain: list[Layer]) -> None:
        is_early, info = layer in early, layer.output.info
        value = rewriter.mapped(chain[0]["input"] if is_early else layer["input"])
        if is_early:
            before = info.with_shape(value.info.shape)
            name = f"{layer.name}/early"
            value = rewriter.insert(layer.operation, [value], name, [before], [layer]).output
        for mover in chain:
            value = _add_moved(rewriter, mover, value)
        if is_early:
            rewriter.alias(layer.output, value)
            return
        last = chain[-1]
        after, name = info.with_shape(last.output.info.shape), f"{layer.name}/late"
        new_layer = rewriter.insert(layer.operation, [value], name, [after], [layer])
        rewriter.alias(last.output, new_layer.output)

    return rewrite(graph, {**early, **late}, change, claimed)


def _is_moving(layer: Layer | None) -> bool:
    """Return whether a layer only moves the elements of its input."""
    return layer is not None and kind_of(layer) in MOVING and len(layer.inputs) == 1


def _chain_above(graph: Graph, layer: Layer) -> list[Layer]:
    """The movements in front of a conversion that are for it alone, the nearest first."""
    chain: list[Layer] = []
    if not isinstance(layer.operation, Quantize | Cast):
        return chain
    value = layer["input"]
    above = graph.producers.get(value)
    while above is not None and _is_moving(above) and only_reader(graph, value) is not None:
        chain.append(above)
        value = above["input"]
        above = graph.producers.get(value)
    return chain


def _chain_below(graph: Graph, layer: Layer) -> list[Layer]:
    """List the movements that follow a conversion as its only readers, the nearest first."""
    chain: list[Layer] = []
    below = only_reader(graph, layer.output)
    while below is not None and _is_moving(below):
        chain.append(below)
        below = only_reader(graph, below.output)
    return chain


def _gives_back(first: Layer, last: Layer, is_moved: bool) -> bool:
    """Return whether a conversion takes another one back, element by element and bit by bit."""
    if not isinstance(first.operation, Dequantize | Cast):
        return False
    if not isinstance(last.operation, Quantize | Cast):
        return False
    before, between, after = first["input"].info, first.output.info, last.output.info
    same = before.data_type is after.data_type and before.quantization == after.quantization
    if not same or between.data_type is not DataType.FLOAT32:
        return False
    if before.data_type in _HALVES:
        # Every half is a number of float32, so rounding gives it back.
        return isinstance(last.operation, Cast)
    is_quantized = before.data_type.is_quantized and isinstance(first.operation, Dequantize)
    if not is_quantized or not isinstance(last.operation, Quantize):
        return False
    # Scales of an axis would have to move with it.
    return _has_fine_scales(before) and not (is_moved and before.has_per_axis_quantization)


def _has_fine_scales(info: TensorInfo) -> bool:
    """Return whether neighbouring quantised elements differ as floats."""
    scales = info.quantization.scales if info.quantization is not None else ()
    return bool(scales) and all(_FINE[0] <= scale <= _FINE[1] for scale in scales)


def _is_movable(info: TensorInfo) -> bool:
    """Return whether a quantised tensor means the same wherever its elements are moved."""
    is_quantized = info.data_type.is_quantized and info.quantization is not None
    return is_quantized and not info.has_per_axis_quantization


def _stays(context: PassContext, layer: Layer, info: TensorInfo) -> bool:
    """Return whether a movement stays on its backend with elements of another type."""
    source = layer["input"]
    before = Value(source.id, info.with_shape(source.info.shape), source.name)
    after = info.with_shape(layer.output.info.shape)
    return context.stays(layer, layer.operation, [before], [after])


def _add_moved(rewriter: Rewriter, layer: Layer, value: Value) -> Value:
    """Add a movement for elements of another type."""
    info = value.info.with_shape(layer.output.info.shape)
    return rewriter.replace(layer, layer.operation, [value], [info]).outputs[0]
