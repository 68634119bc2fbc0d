"""Finds means of bytes that are rounded to bytes once: one command adds integers.

Notes
-----
The layers convert bytes to floats, average these and quantise the results. The kernel multiplies
sums of bytes by a factor. It takes their place if all sums that windows can have give the same byte
in either way: none of them so near to a tie that roundings of floats matter, in whatever order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import frexp, prod

import numpy as np
import numpy.typing as npt

from armpy.core import numerics
from armpy.core.dataclass import dataclass
from armpy.core.symbolic import is_traced
from armpy.graph import Layer, SubgraphView, Value
from armpy.ops import (
    BinaryOperation,
    Dequantize,
    ElementwiseBinary,
    Pooling2d,
    PoolingAlgorithm,
    Quantize,
    Reduce,
    ReduceOperation,
)
from armpy.ops.activations import FusedActivation
from armpy.ops.operation import Array
from armpy_numba_acc.lowering.movement import RESHAPES
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.lowering.pooling import MOST_ELEMENTS, emit_byte_means
from armpy_numba_acc.lowering.windows import Windows
from armpy_numba_acc.packing.quantized import QUANTIZED_TYPES, scale_of, zero_point_of
from armpy_numba_acc.passes.consumers import only_consumer
from armpy_numba_acc.program.emitter import Emitter

_LEAST_CHANNELS = 16
"""That a kernel over windows is quick with."""

_ROUNDING = 2.0**-24
"""How far off a result of float32 may be, relative to it."""

_REACH = 3
"""So many sums on either side of a tie are looked at; float32 moves ties of sums by less."""

_TILTS = (1.0, 1 - 2.0**-23, 1 + 2.0**-23, 1 - 2.0**-22, 1 + 2.0**-22)
"""What factors are changed by until all sums give the right byte."""


@dataclass(frozen=True, eq=False, slots=True)
class ByteMean:
    """A Dequantize, a mean and a Quantize that are computed together."""

    # In the order of execution. Between the last two there may be factors and other shapes.
    layers: tuple[Layer, ...]
    windows: Windows
    scale: float  # of the input relative to the output's, as the kernel takes it

    @property
    def absorbed(self) -> tuple[Layer, ...]:
        """The layers but the first, whose output others may read."""
        return self.layers[1:]


def find_byte_means(view: SubgraphView, taken: Collection[Layer]) -> Mapping[Layer, ByteMean]:
    """Means by their last layer.

    Parameters
    ----------
    taken
        Layers that are computed with others already.
    """
    outside = set(view.outputs)
    means: dict[Layer, ByteMean] = {}
    for last in view.layers:
        layers = [last]
        if not isinstance(last.operation, Quantize) or last in taken:
            continue
        above = _maker(view, layers, outside)
        while above is not None and _is_between(above):
            layers.insert(0, above)
            above = _maker(view, layers, outside)
        windows = None if above is None else _windows_of(above)
        if above is None or windows is None:
            continue
        first = view.producers.get(above["input"])
        if first is None:
            continue
        layers = [first, above, *layers]
        scale = _kernel_scale(layers, windows) if _has_bytes(layers) else None
        if scale is not None:
            means[last] = ByteMean(tuple(layers), windows, scale)
    return means


def lower_byte_mean(emit: Emitter, mean: ByteMean) -> None:
    """Add the command of a mean, in the place of its last layer's."""
    label = " + ".join(layer.name for layer in mean.layers)
    source, output = mean.layers[0]["input"], mean.layers[-1].output
    emit_byte_means(emit, source, output, mean.windows, mean.scale, label)


def _maker(view: SubgraphView, layers: list[Layer], outside: Collection[Value]) -> Layer | None:
    """The layer whose output the first of some layers alone reads."""
    value = layers[0].inputs[0]
    if value is None or only_consumer(view, value, outside) is not layers[0]:
        return None
    return view.producers.get(value)


def _factor_of(layer: Layer) -> float | None:
    """The number that a layer multiplies all elements by; None if it does something else."""
    operation = layer.operation
    if not isinstance(operation, ElementwiseBinary):
        return None
    number, is_plain = layer.constant("rhs"), operation.activation is FusedActivation.NONE
    if operation.operation is not BinaryOperation.MUL or number is None or not is_plain:
        return None
    return float(number.reshape(())) if number.size == 1 and number.reshape(()) > 0 else None


def _is_between(layer: Layer) -> bool:
    """Return whether a layer may follow the mean."""
    return isinstance(layer.operation, RESHAPES) or _factor_of(layer) is not None


def _factors(layers: Sequence[Layer]) -> list[float]:
    """The numbers that means are multiplied by."""
    return [factor for layer in layers[2:-1] if (factor := _factor_of(layer)) is not None]


def _has_bytes(layers: Sequence[Layer]) -> bool:
    """Return whether layers begin with a Dequantize of bytes and end with bytes."""
    infos = layers[0].input_infos[0], layers[-1].output.info
    return isinstance(layers[0].operation, Dequantize) and not any(
        info is None or info.data_type not in QUANTIZED_TYPES or info.has_per_axis_quantization
        for info in infos
    )


def _windows_of(layer: Layer) -> Windows | None:
    """The windows that a layer adds up or averages; None if it does something else."""
    operation = layer.operation
    if not isinstance(operation, Pooling2d | Reduce):
        return None
    shape, out_shape = layer["input"].info.known_shape, layer.output.info.known_shape
    if is_traced(*shape):
        return None
    if isinstance(operation, Pooling2d):
        is_plain = operation.activation is FusedActivation.NONE
        if operation.algorithm is not PoolingAlgorithm.AVERAGE or not is_plain:
            return None
        size, stride = operation.pool_size, operation.stride
        return Windows.of(shape, out_shape, size, stride, operation.padding)
    axes = sorted(operation.resolved_axes(len(shape)))
    if operation.operation not in (ReduceOperation.MEAN, ReduceOperation.SUM) or not axes:
        return None
    first, end = axes[0], axes[-1] + 1
    if axes != list(range(first, end)):
        return None
    outer, count, inner = prod(shape[:first]), prod(shape[first:end]), prod(shape[end:])
    return Windows((outer, count, 1, inner), (outer, 1, 1, inner), (count, 1), (1, 1), (1, 1), 0, 0)


@np.errstate(all="ignore")  # no byte is equal to a NaN
def _kernel_scale(layers: Sequence[Layer], windows: Windows) -> float | None:
    """The scale with which the kernel gives the layers' bytes for all sums; None if none does."""
    if windows.shape[3] < _LEAST_CHANNELS or not 0 < windows.num_taps <= MOST_ELEMENTS:
        return None
    counts = np.unique(np.multiply.outer(*map(_inside, range(2), [windows] * 2))).tolist()
    results = [(count, *_results(layers, count)) for count in counts]
    zero, ratio = zero_point_of(layers[-1].output.info), _ratio(layers, windows.num_taps)
    for tilt in _TILTS:
        scale = np.float32(ratio * tilt)
        for count, sums, lower, upper in results:
            steps = sums.astype(np.float32) * (scale / np.float32(count))
            own = np.trunc(steps + np.copysign(np.float32(0.5), steps))
            own = np.clip(own + zero, 0, 255)
            if not (np.array_equal(own, lower) and np.array_equal(own, upper)):
                break
        else:
            return float(scale)
    return None


def _ratio(layers: Sequence[Layer], count: int) -> float:
    """Steps of the output for one of each element's."""
    ratio = float(scale_of(layers[0]["input"].info)) / float(scale_of(layers[-1].output.info))
    return ratio * prod(_factors(layers)) * (count if _is_sum(layers[1]) else 1)


def _is_sum(layer: Layer) -> bool:
    """Return whether a layer adds up, and does not average."""
    return isinstance(layer.operation, Reduce) and (
        layer.operation.operation is ReduceOperation.SUM
    )


def _results(layers: Sequence[Layer], count: int) -> tuple[Array, Array, Array]:
    """Sums of so many elements, and the least and the greatest byte that layers give for each.

    The sums are those next to ties: bytes of those between two of them are the same.
    """
    source, output = layers[0]["input"].info, layers[-1].output.info
    zero, quantize = zero_point_of(source), expect(layers[-1].operation, Quantize)
    ratio = _ratio(layers, count)
    ties = np.rint((np.arange(-256, 256) + 0.5) * (count / ratio))
    lowest, highest = -count * zero, count * (255 - zero)
    near = np.add.outer(ties.clip(lowest, highest), np.arange(-_REACH, _REACH + 1))
    sums = np.unique(near.clip(lowest, highest)).astype(np.int64)
    if _is_sum(layers[1]) and frexp(source.scale)[0] == 0.5:
        # All numbers up to the factors are exact.
        real = sums.astype(np.float32) * np.float32(source.scale)
        for factor in _factors(layers):
            real *= np.float32(factor)
        bounds = (real / scale_of(output),) * 2
    else:
        # CpuRef adds in float64 along axes, and in float32 in windows.
        num_roundings = 3 if isinstance(layers[1].operation, Reduce) else count + 2
        num_roundings += len(_factors(layers))
        error = num_roundings * _ROUNDING * max(zero, 255 - zero) * ratio
        bounds = sums * (ratio / count) - error, sums * (ratio / count) + error
    rounded = np.rint if quantize.rounds_to_even else numerics.round_half_away
    lower, upper = (np.clip(rounded(b) + zero_point_of(output), 0, 255) for b in bounds)
    return sums, lower, upper


def _inside(axis: int, windows: Windows) -> npt.NDArray[np.int64]:
    """Numbers of elements of windows that lie inside the image along an axis."""
    starts = np.arange(windows.out_shape[1 + axis]) * windows.stride[axis]
    starts -= (windows.top, windows.left)[axis]
    ends = np.minimum(starts + windows.kernel[axis], windows.shape[1 + axis])
    return np.unique(np.maximum(ends - np.maximum(starts, 0), 1))
