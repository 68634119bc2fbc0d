"""CpuRef's L2Normalization."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from armpy.core.numerics.fixed_point import multiply_high
from armpy.core.numerics.gemmlowp import inverse_sqrt_multiplier
from armpy.core.numerics.rounding import rounding_shift_right
from armpy.ops import L2Normalization
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_reference.quantization import is_output_of
from armpy_reference.quantized.lookup_table import UnaryKernel
from armpy_reference.rows import along_axis, float_kernel
from armpy_reference.workload import ReferenceWorkload

_OUTPUT_FRACTION_BITS = 7


class L2NormalizationWorkload(ReferenceWorkload[L2Normalization]):
    """Floats with NumPy; 8-bit integers as TFLite's kernels, or through float32."""

    def prepare(self) -> None:
        """Make the kernel for the data types."""
        source, target = self.input_infos[0], self.info.outputs[0]
        self.kernel: UnaryKernel
        zero_point = 128 if target.data_type is DataType.QASYMM_U8 else 0
        if source.data_type.size_bytes == 1 and is_output_of(
            target, 2**-_OUTPUT_FRACTION_BITS, zero_point
        ):
            self.kernel = partial(_normalize_integers, source, target)
        else:
            self.kernel = float_kernel(source, target, partial(_normalize, self.operation.epsilon))

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute along the axis."""
        along_axis(self.kernel, self.operation.axis, inputs[0], outputs[0])


def _normalize(epsilon: float, values: Array, out: Array) -> None:
    """Divide float32 rows by their norm."""
    squares = np.square(values).sum(axis=-1, keepdims=True)
    np.divide(values, np.sqrt(np.maximum(squares, np.float32(epsilon))), out=out)


def _normalize_integers(source: TensorInfo, target: TensorInfo, stored: Array, out: Array) -> None:
    """Multiply 8-bit rows by the reciprocal of their norm in fixed point."""
    values = np.subtract(stored, source.zero_point, dtype=np.int64)
    multiplier, shift = inverse_sqrt_multiplier((values * values).sum(axis=-1, keepdims=True))
    if target.zero_point:
        result = multiply_high(values << _OUTPUT_FRACTION_BITS, multiplier)
    else:
        # TFLite's int8 kernel adds the fraction bits to the shift instead.
        shift = shift + _OUTPUT_FRACTION_BITS
        result = multiply_high(values << np.maximum(shift, 0), multiplier)
    rounding_shift_right(result, np.maximum(-shift, 0), out=result)
    out[...] = np.clip(result + target.zero_point, *target.data_type.integer_range)
