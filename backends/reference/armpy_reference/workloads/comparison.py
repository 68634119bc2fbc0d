"""CpuRef's Comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from armpy.ops import Comparison, ComparisonOperation
from armpy.ops.operation import Array
from armpy_reference.blocks import in_blocks
from armpy_reference.quantized.binary import comparison
from armpy_reference.quantized.lookup_table import BinaryKernel, look_up_pairs, table_of_pairs
from armpy_reference.workload import ReferenceWorkload


class ComparisonWorkload(ReferenceWorkload[Comparison]):
    """Stored numbers with NumPy; 8-bit quantised pairs through a table of all of them."""

    def prepare(self) -> None:
        """Make the kernel for the data type."""
        lhs, rhs = self.input_infos
        compare = _FUNCTIONS[self.operation.operation]
        self.kernel: BinaryKernel = partial(_compare, compare)
        if not lhs.data_type.is_quantized:
            return
        self.kernel = comparison((lhs, rhs), compare)
        if lhs.data_type.size_bytes == 1:
            table = table_of_pairs(self.kernel, lhs, rhs, self.info.outputs[0])
            self.kernel = partial(look_up_pairs, table)

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compare with broadcasting."""
        in_blocks(self.kernel, inputs, outputs[0])


def _compare(function: Callable[..., Any], lhs: Array, rhs: Array, out: Array) -> None:
    """Compare numbers as they are stored."""
    function(lhs, rhs, out=out)


_FUNCTIONS: dict[ComparisonOperation, Callable[..., Any]] = {
    ComparisonOperation.EQUAL: np.equal,
    ComparisonOperation.GREATER: np.greater,
    ComparisonOperation.GREATER_OR_EQUAL: np.greater_equal,
    ComparisonOperation.LESS: np.less,
    ComparisonOperation.LESS_OR_EQUAL: np.less_equal,
    ComparisonOperation.NOT_EQUAL: np.not_equal,
}
