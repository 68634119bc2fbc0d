"""CpuRef's Select."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import Select
from armpy.ops.operation import Array
from armpy_reference.quantized.binary import requantized
from armpy_reference.workload import ReferenceWorkload


class SelectWorkload(ReferenceWorkload[Select]):
    """Copy elements, converted where quantisations differ."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Choose with broadcasting."""
        condition, lhs, rhs = inputs
        output = self.info.outputs[0]
        if output.data_type.is_quantized:
            _, lhs_info, rhs_info = self.input_infos
            lhs = requantized(lhs, lhs_info, output)
            rhs = requantized(rhs, rhs_info, output)
        outputs[0][...] = np.where(condition, lhs, rhs)
