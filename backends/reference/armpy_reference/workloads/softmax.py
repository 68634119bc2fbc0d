"""CpuRef's Softmax."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from armpy.ops import Softmax
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_reference.quantization import is_output_of
from armpy_reference.quantized.lookup_table import UnaryKernel
from armpy_reference.quantized.softmax import softmax8, softmax16
from armpy_reference.rows import along_axis, float_kernel
from armpy_reference.workload import ReferenceWorkload


class SoftmaxWorkload(ReferenceWorkload[Softmax]):
    """Floats with NumPy; quantised integers as TFLite's kernels, or through float32."""

    def prepare(self) -> None:
        """Make the kernel for the data types."""
        source, target = self.input_infos[0], self.info.outputs[0]
        beta = self.operation.beta
        self.kernel: UnaryKernel = _integer_kernel(source, target, beta) or float_kernel(
            source, target, partial(softmax, beta)
        )

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute along the axis."""
        along_axis(self.kernel, self.operation.axis, inputs[0], outputs[0])


def _integer_kernel(source: TensorInfo, target: TensorInfo, beta: float) -> UnaryKernel | None:
    """The fixed-point arithmetic for the output's quantisation, if there is any."""
    if not source.data_type.is_quantized:
        return None
    if source.data_type.size_bytes == 1:
        bits = 8 * target.data_type.size_bytes
        lowest = target.data_type.integer_range[0]
        return softmax8(source, target, beta) if is_output_of(target, 2**-bits, lowest) else None
    return softmax16(source, beta) if is_output_of(target, 2**-15, 0) else None


def softmax(beta: float, values: Array, out: Array) -> None:
    """Softmax of float32 rows."""
    np.subtract(values, values.max(axis=-1, keepdims=True), out=out)
    if beta != 1:
        out *= np.float32(beta)
    np.exp(out, out=out)
    out /= out.sum(axis=-1, keepdims=True)
