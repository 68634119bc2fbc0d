"""The compiler's result: packed weights, and how to apply them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from armpy.graph import Layer
from armpy.ops import Activation, ActivationFunction, Convolution2d, FullyConnected
from armpy.ops.operation import Array
from armpy.ops.shapes import resolve_padding

Floats: TypeAlias = npt.NDArray[np.float32]
Bounds: TypeAlias = tuple[float | None, float | None]


@dataclass(frozen=True, eq=False, slots=True)
class Windows:
    """How a convolution's windows lie over its input."""

    # Along height and width; the extent is the window's with its dilation.
    extent: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[tuple[int, int], ...]  # (before, after) per axis of the image

    def rows(self, image: Floats) -> Floats:
        """Each window's elements in a row, channels outermost."""
        padded = np.pad(image, self.padding)
        windows = sliding_window_view(padded, self.extent, axis=(1, 2))
        (sy, sx), (dy, dx) = self.stride, self.dilation
        windows = windows[:, ::sy, ::sx, :, ::dy, ::dx]
        return windows.reshape(math.prod(windows.shape[:3]), math.prod(windows.shape[3:]))


@dataclass(frozen=True, eq=False, slots=True)
class Program:
    """A weighted layer with its activation: one matrix product."""

    weights: Floats  # ndarray, float32, shape (depth, units)
    bias: Floats  # ndarray, float32, shape (units,)
    windows: Windows | None  # None for FullyConnected, whose input is a matrix already
    bounds: tuple[Bounds, ...]  # the layer's and the activation's clamps, in this order

    @property
    def size_bytes(self) -> int:
        """Memory that the packed weights take."""
        return self.weights.nbytes + self.bias.nbytes

    def run(self, source: Floats, out: Floats) -> None:
        """Compute the output; any number of threads may do so at once."""
        depth, units = self.weights.shape
        rows = self.windows.rows(source) if self.windows else source.reshape(-1, depth)
        flat = out.reshape(-1, units)
        np.matmul(rows, self.weights, out=flat)
        flat += self.bias
        for low, high in self.bounds:
            clamp(flat, low, high, flat)


def clamp(x: Floats, low: float | None, high: float | None, out: Floats) -> None:
    """Apply bounds, either of which may be missing."""
    np.clip(x, -np.inf if low is None else low, np.inf if high is None else high, out=out)


def bounds_of(operation: Activation) -> Bounds:
    """What an activation that the backend supports clamps to."""
    if operation.function is ActivationFunction.RELU:
        return 0.0, None
    return operation.b, operation.a


def make_program(layer: Layer, activation: Layer | None) -> Program:
    """Pack the weights of a layer, and take over the activation after it."""
    operation = cast(Convolution2d | FullyConnected, layer.operation)
    weights = _constant(layer, 1)
    bounds = [operation.activation.bounds]
    if activation is not None:
        bounds.append(bounds_of(cast(Activation, activation.operation)))
    has_bias = len(layer.inputs) > 2 and layer.inputs[2] is not None
    bias = _constant(layer, 2) if has_bias else np.zeros(weights.shape[0], np.float32)
    if isinstance(operation, FullyConnected):
        packed, windows = weights.T, None
    else:
        packed = weights.transpose(3, 1, 2, 0).reshape(-1, weights.shape[0])
        windows = _windows(operation, layer, weights.shape[1:3])
    return Program(np.ascontiguousarray(packed), bias, windows, tuple(bounds))


def _windows(operation: Convolution2d, layer: Layer, kernel: tuple[int, ...]) -> Windows:
    """The windows of a convolution whose shapes are known."""
    sizes = layer.input_infos[0].known_shape[1:3] if layer.input_infos[0] else ()
    stride, dilation = operation.stride, operation.dilation
    pairs = tuple(
        resolve_padding(operation.padding, sizes[i], kernel[i], stride[i], dilation[i], i)
        for i in range(2)
    )
    extent = ((kernel[0] - 1) * dilation[0] + 1, (kernel[1] - 1) * dilation[1] + 1)
    return Windows(extent, stride, dilation, ((0, 0), *pairs, (0, 0)))


def _constant(layer: Layer, index: int) -> Array:
    """The elements of an operand that layer support found to be constant."""
    value = layer.inputs[index]
    return cast(Array, value.data if value else None)
