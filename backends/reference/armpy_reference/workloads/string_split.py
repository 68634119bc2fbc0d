"""CpuRef's StringSplit."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from armpy.core.text_memory import REFERENCE_BYTES, STRING_BYTES, GrowingText, text_bytes
from armpy.ops import StringSplit
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload

_WORD = re.compile(r"\S+")


class StringSplitWorkload(ReferenceWorkload[StringSplit]):
    """Split as Python does."""

    def compute_dynamic(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Split each string, and fill up with empty ones."""
        shape, limit = inputs[0].shape, self.operation.max_splits
        delimiter = self.operation.delimiter or None
        texts = inputs[0].reshape(-1).tolist()
        counts = np.array([_num_parts(text, delimiter, limit) for text in texts], np.int64)
        most = int(counts.max(initial=0))
        references = len(texts) * most * REFERENCE_BYTES
        parts = int(counts.sum()) * STRING_BYTES
        GrowingText(self).add(references + parts + sum(map(text_bytes, texts)))
        filled = np.full((len(texts), most), "", object)
        for row, text, count in zip(filled, texts, counts, strict=True):
            row[:count] = text.split(delimiter, limit)
        return filled.reshape(*shape, filled.shape[1]), counts.reshape(shape)


def _num_parts(text: str, delimiter: str | None, limit: int) -> int:
    """Number of parts that ``text.split`` makes, without any of them."""
    if delimiter is not None:
        count = text.count(delimiter) + 1
    else:
        count = sum(1 for _ in _WORD.finditer(text))
    return count if limit < 0 else min(count, limit + 1)
