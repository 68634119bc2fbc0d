"""Finds layers that are computed together with the layer in front of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from armpy.graph import Layer, SubgraphView, Value
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    Convolution2d,
    ElementwiseBinary,
    FullyConnected,
)
from armpy.types import DataType
from armpy_numba_acc.packing.quantized import QUANTIZED_TYPES
from armpy_numba_acc.program.fusion import Bounds, Fusion, is_fusing

_LARGEST_FACTOR = float(1 << 20)
"""Of elements that are added: their sums fit int32."""


def find_fusions(view: SubgraphView) -> Mapping[Layer, Fusion]:
    """What each weighted layer is computed together with.

    Parameters
    ----------
    view : SubgraphView

    Returns
    -------
    mapping of Layer to Fusion
        For every layer that `is_fusing`, also where nothing is absorbed.

    Notes
    -----
    A sum with another tensor of the same shape, and a clamp, join the layer in front if
    nobody else reads what lies between. The other summand has to be there already when the
    layer runs.
    """
    order = {layer: number for number, layer in enumerate(view.layers)}
    made = {value: layer for layer in view.layers for value in layer.outputs}
    readers: dict[Value, list[Layer]] = {}
    for layer in view.layers:
        for value in layer.inputs:
            if value is not None:
                readers.setdefault(value, []).append(layer)
    outside = set(view.outputs)
    taken: set[Layer] = set()
    found: dict[Layer, Fusion] = {}
    for layer in view.layers:
        if not is_fusing(layer):
            continue
        assert isinstance(layer.operation, Convolution2d | FullyConnected)
        fusion = Fusion(layer.outputs[0], layer.operation.activation.bounds)
        while True:
            following = _following(fusion, layer, readers, outside, taken)
            if following is None:
                break
            longer = _absorb(fusion, layer, following, made, order)
            if longer is None:
                break
            fusion = longer
            taken.add(following)
        found[layer] = fusion
    return found


def _following(
    fusion: Fusion,
    layer: Layer,
    readers: Mapping[Value, Sequence[Layer]],
    outside: set[Value],
    taken: set[Layer],
) -> Layer | None:
    """The only layer that reads what a fusion gives so far."""
    reading = readers.get(fusion.output, ())
    if len(reading) != 1 or fusion.output in outside or reading[0] in taken:
        return None
    if list(reading[0].inputs).count(fusion.output) != 1:
        return None
    return reading[0]


def _absorb(
    fusion: Fusion,
    layer: Layer,
    following: Layer,
    made: Mapping[Value, Layer],
    order: Mapping[Layer, int],
) -> Fusion | None:
    """The fusion with one more layer; None if that does not go."""
    absorbed = (*fusion.absorbed, following)
    operation, output = following.operation, following.outputs[0]
    if isinstance(operation, Activation):
        bounds = _clamp(operation)
        if bounds is None or output.info.data_type is not DataType.FLOAT32:
            return None
        return replace(
            fusion, output=output, bounds=_both(fusion.bounds, bounds), absorbed=absorbed
        )
    if not isinstance(operation, ElementwiseBinary):
        return None
    if operation.operation is not BinaryOperation.ADD or fusion.residual is not None:
        return None
    other = next(v for v in following.inputs if v is not fusion.output)
    if other is None or other.data is not None or not _can_add(fusion, other, output):
        return None
    producer = made.get(other)
    if producer is not None and order[producer] > order[layer]:
        return None
    return Fusion(output, operation.activation.bounds, other, absorbed)


def _can_add(fusion: Fusion, other: Value, output: Value) -> bool:
    """Whether a kernel can add a tensor to what a fusion gives so far."""
    infos = [value.info for value in (fusion.output, other, output)]
    if len({info.shape for info in infos}) > 1:
        return False
    if infos[0].data_type is DataType.FLOAT32:
        return fusion.bounds == (None, None)
    # The product is clamped, and rounded, before anything is added to it.
    for info in infos:
        if info.data_type not in QUANTIZED_TYPES or info.has_per_axis_quantization:
            return False
    return max(infos[0].scale, infos[1].scale) < _LARGEST_FACTOR * infos[2].scale


def _clamp(operation: Activation) -> Bounds | None:
    """What an activation function clamps to; None if it does something else."""
    if operation.function is ActivationFunction.RELU:
        return (0.0, None)
    if operation.function is ActivationFunction.BOUNDED_RELU:
        return (operation.b, operation.a)
    return None


def _both(first: Bounds, second: Bounds) -> Bounds:
    """Bounds of a clamp behind another one."""
    lows = [bound for bound in (first[0], second[0]) if bound is not None]
    highs = [bound for bound in (first[1], second[1]) if bound is not None]
    low = max(lows, default=None)
    high = min(highs, default=None)
    if low is not None and high is not None and low > high:
        low = high = second[0] if second[0] is not None else second[1]
    return low, high
