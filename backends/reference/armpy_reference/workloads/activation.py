"""CpuRef's Activation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from armpy.ops import Activation, ActivationFunction
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_reference import quantized_unary
from armpy_reference.blocks import in_blocks
from armpy_reference.elementary_functions import FAST, ROUNDED
from armpy_reference.lookup_table import UnaryKernel
from armpy_reference.quantization import is_output_of, real_bound
from armpy_reference.real_activations import apply_activation
from armpy_reference.workload import ReferenceWorkload


class ActivationWorkload(ReferenceWorkload[Activation]):
    """Floats with NumPy; quantised integers as TFLite's kernels, or through float32."""

    def prepare(self) -> None:
        """Make the kernel for the data type."""
        source, target = self.input_infos[0], self.info.outputs[0]
        self.kernel: UnaryKernel
        if target.data_type.is_quantized:
            is_8_bit = source.data_type.size_bytes == 1
            real = partial(apply_activation, self.operation, ROUNDED if is_8_bit else FAST)
            kernel = _integer_kernel(self.operation, source, target)
            self.kernel = quantized_unary.unary_kernel(source, target, real, kernel)
        else:
            self.kernel = partial(_compute_floats, self.operation)

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute each element."""
        in_blocks(self.kernel, inputs, outputs[0])


def _compute_floats(operation: Activation, values: Array, out: Array) -> None:
    """Compute in float32 and round once if the output is float16."""
    out[...] = apply_activation(operation, FAST, np.asarray(values, np.float32))


def _integer_kernel(
    operation: Activation, source: TensorInfo, target: TensorInfo
) -> UnaryKernel | None:
    """The fixed-point arithmetic that TFLite has for a function, if it has."""
    function = operation.function
    is_16_bit = target.data_type.size_bytes == 2
    if function is ActivationFunction.RELU:
        return quantized_unary.clamped_rescaling(source, target, real_bound(0.0, target))
    if function is ActivationFunction.BOUNDED_RELU:
        low, high = real_bound(operation.b, target), real_bound(operation.a, target)
        return quantized_unary.clamped_rescaling(source, target, low, high)
    if function is ActivationFunction.LEAKY_RELU:
        return quantized_unary.leaky_relu(source, target, operation.a)
    if function is ActivationFunction.HARD_SWISH and not is_16_bit:
        return quantized_unary.hard_swish(source, target)
    if is_16_bit and is_output_of(target, 2**-15, 0) and source.zero_point == 0:
        if function is ActivationFunction.SIGMOID:
            return quantized_unary.logistic16(source)
        if function is ActivationFunction.TANH and operation.a == operation.b == 1:
            return quantized_unary.tanh16(source)
    return None
