"""CpuRef's Activation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from armpy.core.numerics import activations, integer_functions
from armpy.core.numerics.elementary import FAST, ROUNDED
from armpy.core.numerics.lookup_table import StoredFunction, by_interpolation
from armpy.ops import Activation, ActivationFunction
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_reference.blocks import in_blocks
from armpy_reference.quantization import is_output_of, parameters_of
from armpy_reference.quantized.lookup_table import UnaryKernel
from armpy_reference.quantized.unary import unary_kernel
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
            function = _integer_function(self.operation, source, target)
            self.kernel = unary_kernel(source, target, real, function)
        else:
            self.kernel = partial(_compute_floats, self.operation)

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute each element."""
        in_blocks(self.kernel, inputs, outputs[0])


def _compute_floats(operation: Activation, values: Array, out: Array) -> None:
    """Compute in float32 and round once if the output is float16; float64 as it is."""
    wide = values if values.dtype == np.float64 else np.asarray(values, np.float32)
    out[...] = apply_activation(operation, FAST, wide)


def _integer_function(
    operation: Activation, source: TensorInfo, target: TensorInfo
) -> StoredFunction | None:
    """The fixed-point arithmetic that TFLite has for a function, if it has."""
    function = operation.function
    is_16_bit = target.data_type.size_bytes == 2
    parameters = parameters_of(source), parameters_of(target)
    if function is ActivationFunction.RELU:
        return integer_functions.clamped_rescaling(*parameters, (0.0, None))
    if function is ActivationFunction.BOUNDED_RELU:
        return integer_functions.clamped_rescaling(*parameters, (operation.b, operation.a))
    if function is ActivationFunction.LEAKY_RELU:
        return integer_functions.leaky_relu(*parameters, operation.a)
    if function is ActivationFunction.HARD_SWISH and not is_16_bit:
        return integer_functions.hard_swish(*parameters)
    if function is ActivationFunction.GELU and target.data_type is DataType.QSYMM_S16:
        gelu = partial(activations.gelu, approximate=operation.approximate, functions=ROUNDED)
        return by_interpolation(gelu, *parameters)
    if is_16_bit and is_output_of(target, 2**-15, 0) and source.zero_point == 0:
        if function is ActivationFunction.SIGMOID:
            return integer_functions.logistic16(parameters[0])
        if function is ActivationFunction.TANH and operation.a == operation.b == 1:
            return integer_functions.tanh16(parameters[0])
    return None
