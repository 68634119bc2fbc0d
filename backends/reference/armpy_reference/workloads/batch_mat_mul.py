"""CpuRef's BatchMatMul."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.core.numerics.fixed_point import Multiplier
from armpy.ops import BatchMatMul
from armpy.ops.activations import FusedActivation
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_reference.quantization import activation_range
from armpy_reference.quantized.accumulate import exact_dtype
from armpy_reference.quantized.requantize import (
    FixedPointRescaling,
    OutputStage,
    QuantizedStage,
    SumStage,
)
from armpy_reference.weighted import operand, real_factors
from armpy_reference.workload import ReferenceWorkload


class BatchMatMulWorkload(ReferenceWorkload[BatchMatMul]):
    """Multiply the matrices at the last two axes.

    Floats accumulate in float32, wider plain types in themselves. Quantised sums are exact
    integers, rescaled as by TFLite's reference kernels: rounded twice, or once with a multiplier
    of 16 bits for 16-bit inputs.
    """

    def prepare(self) -> None:
        """Work out the rescaling of quantised sums."""
        x, y, output = operand(self.info, 0), operand(self.info, 1), self.info.outputs[0]
        is_small = x.data_type.size_bytes < 4
        self._dtype = np.dtype(np.float32) if is_small else x.data_type.dtype
        self._stage: OutputStage | None = None
        if not x.data_type.is_quantized:
            return
        depth = x.known_shape[-2 if self.operation.transpose_x else -1]
        self._dtype = exact_dtype(depth * _largest(x) * _largest(y))
        bias = np.zeros((), np.int64)
        if output.data_type is DataType.SIGNED32:
            self._stage = SumStage(bias)
            return
        multiplier = Multiplier.from_real(real_factors(x, y, output, in_float=True))
        self._stage = QuantizedStage(
            FixedPointRescaling.rounding_once(multiplier, bias)
            if x.data_type is DataType.QSYMM_S16
            else FixedPointRescaling.rounding_twice(multiplier, bias, keeps_negatives=True),
            output.zero_point,
            *activation_range(FusedActivation.NONE, output),
        )

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """One matrix product per batch."""
        flags = self.operation.transpose_x, self.operation.transpose_y
        x, y = (self._numbers(inputs[i], i, flag) for i, flag in enumerate(flags))
        out = outputs[0]
        if self._stage is not None:
            sums = np.matmul(x, y)
            self._stage.finish(sums.reshape(-1, out.shape[-1]), out.reshape(-1, out.shape[-1]))
        elif out.dtype == self._dtype:
            np.matmul(x, y, out=out)
        else:
            out[...] = np.matmul(x, y)

    def _numbers(self, stored: Array, index: int, is_transposed: bool) -> Array:
        """An input as numbers of the type to compute in, zero points taken off."""
        numbers = stored.swapaxes(-1, -2) if is_transposed else stored
        if self._stage is None:
            return numbers.astype(self._dtype, copy=False)
        return np.subtract(numbers, operand(self.info, index).zero_point, dtype=self._dtype)


def _largest(info: TensorInfo) -> int:
    """Largest magnitude of a stored integer less the zero point."""
    return max(abs(limit - info.zero_point) for limit in info.data_type.integer_range)
