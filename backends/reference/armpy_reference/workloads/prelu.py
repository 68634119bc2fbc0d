"""CpuRef's Prelu."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from armpy.ops import Prelu
from armpy.ops.operation import Array
from armpy_reference.blocks import in_blocks
from armpy_reference.quantized.binary import parametric_relu
from armpy_reference.quantized.lookup_table import BinaryKernel, look_up_pairs, table_of_pairs
from armpy_reference.workload import ReferenceWorkload


class PreluWorkload(ReferenceWorkload[Prelu]):
    """Floats with NumPy; 8-bit quantised pairs through a table of all of them."""

    def prepare(self) -> None:
        """Make the kernel for the data type."""
        source, alpha = self.input_infos
        output = self.info.outputs[0]
        self.kernel: BinaryKernel = _compute_floats
        if not output.data_type.is_quantized:
            return
        self.kernel = parametric_relu((source, alpha), output)
        if output.data_type.size_bytes == 1:
            table = table_of_pairs(self.kernel, source, alpha, output)
            self.kernel = partial(look_up_pairs, table)

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute with broadcasting."""
        in_blocks(self.kernel, inputs, outputs[0])


def _compute_floats(values: Array, alpha: Array, out: Array) -> None:
    """Floats; one float16 product, rounded once, equals that of float32 rounded."""
    out[...] = np.where(values >= 0, values, values * alpha)
