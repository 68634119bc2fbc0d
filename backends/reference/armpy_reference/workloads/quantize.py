"""CpuRef's Quantize."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from armpy.core.numerics.integer_functions import requantized
from armpy.ops import Quantize
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy_reference.blocks import in_blocks
from armpy_reference.quantization import parameters_of, quantize
from armpy_reference.quantized.lookup_table import UnaryKernel
from armpy_reference.quantized.unary import integer_kernel
from armpy_reference.workload import ReferenceWorkload


class QuantizeWorkload(ReferenceWorkload[Quantize]):
    """Floats by division, 8-bit integers by a table, other integers in fixed point."""

    def prepare(self) -> None:
        """Make the kernel for the data types."""
        source, target = self.input_infos[0], self.info.outputs[0]
        self.kernel: UnaryKernel
        if source.data_type.is_float:
            self.kernel = partial(_quantize, target, self.operation.rounds_to_even)
            return
        function = requantized(parameters_of(source), parameters_of(target))
        self.kernel = integer_kernel(source, target, function)

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Convert each element."""
        if self.info.outputs[0].has_per_axis_quantization:
            # A block of elements would not know its position along the axis.
            self.kernel(inputs[0], outputs[0])
        else:
            in_blocks(self.kernel, inputs, outputs[0])


def _quantize(target: TensorInfo, rounds_to_even: bool, values: Array, out: Array) -> None:
    """`quantize` with the order of arguments of a kernel."""
    quantize(values, target, out, rounds_to_even)
