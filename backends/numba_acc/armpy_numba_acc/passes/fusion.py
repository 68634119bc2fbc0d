"""Fusion: finds sums and clamps that the product in front of them computes, too."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from armpy.graph import Layer, SubgraphView, Value
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    ElementwiseBinary,
)
from armpy.types import DataType
from armpy_numba_acc.packing.quantized import QUANTIZED_TYPES
from armpy_numba_acc.passes.consumers import only_consumer
from armpy_numba_acc.program.fusion import Bounds, Fusion, is_fusing

_LARGEST_FACTOR = float(1 << 20)
"""Of elements that are added: their sums fit int32."""


def find_fusions(view: SubgraphView) -> Mapping[Layer, Fusion]:
    """Return the layers that each weighted layer is computed together with.

    A sum with another tensor of the same shape, and a clamp, join the layer in front if
    no other layer reads its output. The other summand has to be there already when the
    layer runs.

    Returns
    -------
    mapping of Layer to Fusion
        For every layer that `is_fusing`, also where nothing is absorbed.
    """
    outside, earlier = set(view.outputs), set[Layer]()
    absorbed: set[Layer] = set()
    fusions: dict[Layer, Fusion] = {}
    for layer in view.layers:
        earlier.add(layer)
        if not is_fusing(layer):
            continue
        bounds = layer.operation.activation.bounds  # type: ignore[attr-defined]
        longer: Fusion | None = Fusion(layer.output, bounds)
        while longer is not None:
            fusions[layer] = fusion = longer
            absorbed.update(fusion.absorbed)
            following = only_consumer(view, fusion.output, outside)
            longer = None
            if following is not None and following not in absorbed:
                longer = _absorb(view, fusion, following, earlier)
    return fusions


def _absorb(
    view: SubgraphView, fusion: Fusion, following: Layer, earlier: Collection[Layer]
) -> Fusion | None:
    """The fusion with one more layer; None if that does not go.

    Parameters
    ----------
    earlier
        The fusion's first one and those in front of it, whose outputs are there.
    """
    absorbed = (*fusion.absorbed, following)
    operation, output = following.operation, following.output
    if isinstance(operation, Activation):
        bounds = _clamp(operation)
        if bounds is None or output.info.data_type is not DataType.FLOAT32:
            return None
        bounds = _both(fusion.bounds, bounds)
        return replace(fusion, output=output, bounds=bounds, absorbed=absorbed)
    if not isinstance(operation, ElementwiseBinary):
        return None
    if operation.operation is not BinaryOperation.ADD or fusion.residual is not None:
        return None
    lhs, rhs = following["lhs"], following["rhs"]
    other = rhs if lhs is fusion.output else lhs
    if other.data is not None or not _can_add(fusion, other, output):
        return None
    producer = view.producers.get(other)
    if producer is not None and producer not in earlier:
        return None
    return Fusion(output, operation.activation.bounds, other, absorbed)


def _can_add(fusion: Fusion, other: Value, output: Value) -> bool:
    """Return whether a kernel can add a tensor to what a fusion gives so far."""
    infos = [value.info for value in (fusion.output, other, output)]
    if any(info.shape != infos[0].shape for info in infos):
        return False
    if infos[0].data_type is DataType.FLOAT32:
        return fusion.bounds == (None, None)
    # The product is clamped, and rounded, before anything is added to it.
    for info in infos:
        if info.data_type not in QUANTIZED_TYPES or info.has_per_axis_quantization:
            return False
    return max(infos[0].scale, infos[1].scale) < _LARGEST_FACTOR * infos[2].scale


def _clamp(operation: Activation) -> Bounds | None:
    """Return the bounds of a clamping activation function; None if it does something else."""
    if operation.function is ActivationFunction.RELU:
        return (0.0, None)
    if operation.function is ActivationFunction.BOUNDED_RELU:
        return (operation.b, operation.a)
    return None


def _both(first: Bounds, second: Bounds) -> Bounds:
    """Bounds of a clamp after another one."""
    lows = [bound for bound in (first[0], second[0]) if bound is not None]
    highs = [bound for bound in (first[1], second[1]) if bound is not None]
    low = max(lows, default=None)
    high = min(highs, default=None)
    if low is not None and high is not None and low > high:
        low = high = second[0] if second[0] is not None else second[1]
    return low, high
