"""CpuRef's StringSplit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import StringSplit
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class StringSplitWorkload(ReferenceWorkload[StringSplit]):
    """Split as Python does."""

    def compute_dynamic(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Split each string, and fill up with empty ones."""
        shape, limit = inputs[0].shape, self.operation.max_splits
        delimiter = self.operation.delimiter or None
        split = [text.split(delimiter, limit) for text in inputs[0].reshape(-1).tolist()]
        counts = np.array([len(parts) for parts in split], np.int64)
        filled = np.full((len(split), counts.max(initial=0)), "", object)
        for row, parts in zip(filled, split, strict=True):
            row[: len(parts)] = parts
        return filled.reshape(*shape, filled.shape[1]), counts.reshape(shape)
