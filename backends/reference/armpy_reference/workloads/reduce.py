"""CpuRef's Reduce."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from armpy.core.numerics.fixed_point import Multiplier, mean_multiplier, quantize_multiplier
from armpy.ops import Reduce, ReduceOperation
from armpy.ops.operation import Array
from armpy_reference.quantization import saturate, scale_of
from armpy_reference.quantized.requantize import FixedPointRescaling
from armpy_reference.workload import ReferenceWorkload

Kernel: TypeAlias = Callable[[Array, Array], None]

_ZERO = np.zeros((), np.int64)


class ReduceWorkload(ReferenceWorkload[Reduce]):
    """Reduce with NumPy; sums, means and products of quantised elements in fixed point."""

    def prepare(self) -> None:
        """Choose the kernel and work out its constants."""
        shape = self.info.inputs[0].known_shape if self.info.inputs[0] else ()
        self.axes = self.operation.resolved_axes(len(shape))
        self.count = int(np.prod([shape[axis] for axis in self.axes], dtype=np.int64))
        self.kernel = self._kernels()[self.operation.operation]
        keeps = self.operation.operation.selects or self.operation.rounds_down
        if self.info.outputs[0].data_type.is_quantized and not keeps:
            self._prepare_quantized()

    def _prepare_quantized(self) -> None:
        """Work out the fixed-point multiplier for elements that are requantised."""
        source = self.info.inputs[0] or self.info.outputs[0]
        scale, out_scale = float(scale_of(source)), float(scale_of(self.info.outputs[0]))
        self.zero_point = source.zero_point
        self.kernel = self._quantized_sum
        if self.operation.operation is ReduceOperation.PROD:
            self.kernel = self._quantized_product
            # Each factor takes its share of the output's scale.
            out_scale **= 1 / max(self.count, 1)
        pair = quantize_multiplier(scale / out_scale)
        if self.operation.operation is ReduceOperation.MEAN and self.count:
            pair = mean_multiplier(*pair, self.count)
        self.multiplier = Multiplier.from_pairs([pair], ())

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Reduce; the kernel writes the output."""
        self.kernel(inputs[0], outputs[0])

    def _kernels(self) -> dict[ReduceOperation, Kernel]:
        """Kernels for elements that are not requantised."""
        return {
            ReduceOperation.SUM: self._sum,
            ReduceOperation.MEAN: self._mean,
            ReduceOperation.PROD: self._product,
            ReduceOperation.MAX: self._maximum,
            ReduceOperation.MIN: self._minimum,
            ReduceOperation.ANY: self._any,
            ReduceOperation.ALL: self._all,
        }

    def _total(self, values: Array) -> Array:
        """Sum in float64 or int64, with the reduced axes kept."""
        wide = np.float64 if values.dtype.kind == "f" else np.int64
        return np.asarray(np.add.reduce(values, self.axes, wide, keepdims=True))

    def _sum(self, values: Array, out: Array) -> None:
        """Integers wrap around."""
        out[...] = self._total(values).reshape(out.shape)

    def _mean(self, values: Array, out: Array) -> None:
        """Integers round towards 0, or down, and the mean of none of them is 0."""
        total = self._total(values).reshape(out.shape)
        if values.dtype.kind == "f":
            out[...] = total / np.float64(self.count)
        elif self.operation.rounds_down:
            out[...] = total // max(self.count, 1)
        else:
            out[...] = np.sign(total) * (np.abs(total) // max(self.count, 1))

    def _product(self, values: Array, out: Array) -> None:
        """Halves in float32; integers wrap around."""
        wide = np.float32 if values.dtype == np.float16 else values.dtype
        out[...] = np.multiply.reduce(values, self.axes, wide, keepdims=True).reshape(out.shape)
        if self.operation.zero_absorbs:
            out[np.any(values == 0, self.axes, keepdims=True).reshape(out.shape)] = 0

    def _maximum(self, values: Array, out: Array) -> None:
        """NaN where there is one; the least number of the type of no elements."""
        lowest = -np.inf if values.dtype.kind == "f" else np.iinfo(values.dtype).min
        maxima = np.maximum.reduce(values, self.axes, keepdims=True, initial=lowest)
        out[...] = self._signed(maxima, values, is_max=True).reshape(out.shape)

    def _minimum(self, values: Array, out: Array) -> None:
        """NaN where there is one; the greatest number of the type of no elements."""
        highest = np.inf if values.dtype.kind == "f" else np.iinfo(values.dtype).max
        minima = np.minimum.reduce(values, self.axes, keepdims=True, initial=highest)
        out[...] = self._signed(minima, values, is_max=False).reshape(out.shape)

    def _signed(self, extremes: Array, values: Array, *, is_max: bool) -> Array:
        """Extremes with 0.0 above -0.0, as IEEE 754 has it; NumPy takes either of them."""
        if values.dtype.kind != "f" or np.all(extremes):
            return extremes
        is_first = (values == 0) & (np.signbit(values) != is_max)
        zeros = np.where(np.any(is_first, self.axes, keepdims=True) == is_max, 0.0, -0.0)
        return np.where(extremes == 0, zeros, extremes)

    def _any(self, values: Array, out: Array) -> None:
        """Return whether one at least is true."""
        out[...] = np.any(values, self.axes, keepdims=True).reshape(out.shape)

    def _all(self, values: Array, out: Array) -> None:
        out[...] = np.all(values, self.axes, keepdims=True).reshape(out.shape)

    def _quantized_sum(self, values: Array, out: Array) -> None:
        """SUM or MEAN as ``QuantizedMeanOrSum`` computes them."""
        if not values.size:
            out[...] = 0
            return
        total = self._total(values).reshape(out.shape)
        total -= self.zero_point * self.count
        saturate(self.multiplier.apply(total), self.info.outputs[0], out)

    def _quantized_product(self, values: Array, out: Array) -> None:
        """PROD as ``QuantizedReduceProd`` computes it: each step is rescaled and rounded."""
        if not values.size:
            out[...] = 0
            return
        remaining = [axis for axis in range(values.ndim) if axis not in self.axes]
        factors = values.transpose(*self.axes, *remaining).reshape(self.count, -1).astype(np.int64)
        factors -= self.zero_point
        rescaling = FixedPointRescaling.rounding_once(self.multiplier, _ZERO)
        product = factors[0]
        # One more factor of 1 stands for the last rescaling, which multiplies by nothing.
        for factor in (*factors[1:], 1):
            rescaled = rescaling.rescaled(product * factor, product)
            product = rescaled.astype(np.int32).astype(np.int64)  # wraps around
        saturate(product.reshape(out.shape), self.info.outputs[0], out)
