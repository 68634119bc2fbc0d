"""CpuRef's TfIdfVectorizer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import TermWeighting, TfIdfVectorizer
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class TfIdfVectorizerWorkload(ReferenceWorkload[TfIdfVectorizer]):
    """Look each n-gram of each row up; of two equal ones the last is counted."""

    def prepare(self) -> None:
        """Sort the n-grams by length."""
        operation = self.operation
        self._places = dict(zip(operation.ngrams, operation.indexes, strict=True))
        self._lengths = sorted({len(ngram) for ngram in operation.ngrams})

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Count, then weigh."""
        operation, words = self.operation, inputs[0]
        counts = np.zeros((words.size // max(words.shape[-1], 1), outputs[0].shape[-1]))
        lines = words.reshape(len(counts), words.shape[-1]).tolist()
        for row, line in zip(counts, lines, strict=True):
            # Gaps make no difference to single words.
            for gap in range(1, min(operation.max_skips + 1, max(len(line), 1)) + 1):
                for length in self._lengths:
                    if length > 1 or gap == 1:
                        self._count(line, length, gap, row)
        if operation.weighting is TermWeighting.IDF:
            counts = (counts > 0).astype(np.float64)
        if operation.weights and operation.weighting is not TermWeighting.TF:
            counts *= operation.weights
        outputs[0][...] = counts.reshape(outputs[0].shape) if counts.size else 0

    def _count(self, line: Sequence[int], length: int, gap: int, row: Array) -> None:
        """Count the n-grams of a length whose words are a gap apart."""
        for start in range(len(line) - gap * (length - 1)):
            words = tuple(line[start : start + gap * (length - 1) + 1 : gap])
            place = self._places.get(words)
            if place is not None:
                row[place] += 1
