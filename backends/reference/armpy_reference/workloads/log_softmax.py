"""CpuRef's LogSoftmax."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from armpy.ops import LogSoftmax
from armpy.ops.operation import Array
from armpy_reference.quantization import is_output_of
from armpy_reference.quantized.lookup_table import UnaryKernel
from armpy_reference.quantized.softmax import log_softmax8
from armpy_reference.rows import along_axis, float_kernel
from armpy_reference.workload import ReferenceWorkload


class LogSoftmaxWorkload(ReferenceWorkload[LogSoftmax]):
    """Floats with NumPy; quantised integers as TFLite's kernels, or through float32."""

    def prepare(self) -> None:
        """Make the kernel for the data types."""
        source, target = self.input_infos[0], self.info.outputs[0]
        beta = self.operation.beta
        self.kernel: UnaryKernel
        if source.data_type.size_bytes == 1 and is_output_of(
            target, 1 / 16, target.data_type.integer_range[1]
        ):
            self.kernel = log_softmax8(source, target, beta)
        else:
            self.kernel = float_kernel(source, target, partial(log_softmax, beta))

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute along the axis."""
        along_axis(self.kernel, self.operation.axis, inputs[0], outputs[0])


def log_softmax(beta: float, values: Array, out: Array) -> None:
    """Logarithm of the softmax of float32 rows."""
    np.subtract(values, values.max(axis=-1, keepdims=True), out=out)
    if beta != 1:
        out *= np.float32(beta)
    out -= np.log(np.exp(out).sum(axis=-1, keepdims=True))
