"""CpuRef's Svdf."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.core.numerics.fixed_point import Multiplier
from armpy.ops import Svdf
from armpy.ops.operation import Array
from armpy_reference.recurrent.activation import activate, as_float32
from armpy_reference.workload import ReferenceWorkload


class SvdfWorkload(ReferenceWorkload[Svdf]):
    """Filter the newest input, append it to the older ones, filter over time.

    float16 and float32: float32 accumulation, one rounding at the end. int8: int32
    accumulation; the newest entry is rescaled and saturated to the state's type, the
    output to int8; the activation is not applied.

    References
    ----------
    TFLite ``kernels/internal/reference/svdf.h``; TFLite Micro's ``svdf_common.cc`` for a
    state of 8 bits.
    """

    def prepare(self) -> None:
        """Work out the multipliers of the integer kernel."""
        self._output_info = self.info.outputs[1]
        self._state_info = self.info.outputs[0]
        self._is_quantized = self._output_info.data_type.is_quantized
        if self._is_quantized:
            data, feature, time = (info.scale if info else 1.0 for info in self.info.inputs[:3])
            state = self._state_info.scale
            self._to_state = Multiplier.from_real(data * feature / state)
            self._to_output = Multiplier.from_real(state * time / self._output_info.scale)

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute output and new state."""
        data, feature, time, bias, state = inputs
        entries = self._filter_input(data, feature)
        memory = (*entries.shape, time.shape[1])
        old = state.reshape(memory)
        shifts_first = self.operation.shifts_state_first
        history = old[..., 1:] if shifts_first else old[..., :-1]
        remembered = np.concatenate(
            [history.astype(entries.dtype), entries[..., np.newaxis]], axis=2
        )
        outputs[1][...] = self._filter_memory(remembered, time, bias)
        new_state = outputs[0].reshape(memory)
        if shifts_first:
            new_state[...] = remembered
        else:
            new_state[..., :-1] = remembered[..., 1:]
            new_state[..., -1] = self._state_info.zero_point

    def _filter_input(self, data: Array, feature: Array) -> Array:
        """Entries (b, f) that the memory is to take up, as it stores them."""
        if not self._is_quantized:
            return as_float32(data) @ as_float32(feature).T
        data_info = self.info.inputs[0]
        shift = data_info.zero_point if data_info else 0
        # Sums of int8 products are exact in float64, whose product is the quick one.
        sums = (data.astype(np.float64) - shift) @ feature.T.astype(np.float64)
        rescaled = self._to_state.apply(sums) + self._state_info.zero_point
        return np.clip(rescaled, *self._state_info.data_type.integer_range)

    def _filter_memory(self, remembered: Array, time: Array, bias: Array | None) -> Array:
        """Output (b, u) as it is stored."""
        if not self._is_quantized:
            sums = _sum_products(remembered, as_float32(time), self.operation.rank)
            if bias is not None:
                sums += as_float32(bias)
            return activate(sums, self.operation.activation)
        centred = remembered - self._state_info.zero_point
        sums = _sum_products(centred, time.astype(np.int64), self.operation.rank)
        if bias is not None:
            sums += bias
        # The reference accumulates in int32, which extreme 16-bit states make wrap.
        rescaled = self._to_output.apply(sums.astype(np.int32)) + self._output_info.zero_point
        return np.clip(rescaled, *self._output_info.data_type.integer_range)


def _sum_products(remembered: Array, time: Array, rank: int) -> Array:
    """Sum (b, f, m) times (f, m) over time and over the `rank` filters of a unit."""
    filtered: Array = np.einsum("bfm,fm->bf", remembered, time)
    units = filtered.reshape(len(remembered), filtered.shape[1] // rank, rank)
    sums: Array = units.sum(axis=2)
    return sums
