"""CpuRef's Dequantize."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import Dequantize
from armpy.ops.operation import Array
from armpy_reference.quantization import dequantize
from armpy_reference.workload import ReferenceWorkload


class DequantizeWorkload(ReferenceWorkload[Dequantize]):
    """Multiply differences from the zero point by the scale."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Convert each element."""
        source = self.input_infos[0]
        if source.data_type.is_float:
            outputs[0][...] = inputs[0]
        else:
            outputs[0][...] = dequantize(inputs[0], source)
