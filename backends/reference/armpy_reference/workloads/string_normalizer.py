"""CpuRef's StringNormalizer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import CaseChange, StringNormalizer
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class StringNormalizerWorkload(ReferenceWorkload[StringNormalizer]):
    """Compare with a set, and change letters as Python does."""

    def compute_dynamic(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Remove the stop words, then change the case of the others."""
        operation = self.operation
        words = inputs[0].reshape(-1).tolist()
        stop_words = {self._compared(word) for word in operation.stop_words}
        if stop_words:
            words = [word for word in words if self._compared(word) not in stop_words] or [""]
        if operation.case_change is not CaseChange.NONE:
            is_lower = operation.case_change is CaseChange.LOWER
            words = [word.lower() if is_lower else word.upper() for word in words]
        normalized = np.empty(len(words), object)
        normalized[:] = words
        return (normalized.reshape(*inputs[0].shape[:-1], len(words)),)

    def _compared(self, word: str) -> str:
        return word if self.operation.is_case_sensitive else word.lower()
