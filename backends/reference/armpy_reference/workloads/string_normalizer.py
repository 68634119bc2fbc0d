"""CpuRef's StringNormalizer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.core.text_memory import LARGEST_CHARACTER_BYTES, GrowingText, text_bytes
from armpy.ops import CaseChange, StringNormalizer
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload

_ROOM_BYTES = 3 * LARGEST_CHARACTER_BYTES
"""Memory that Python takes to change the case of a character that is not ASCII."""


class StringNormalizerWorkload(ReferenceWorkload[StringNormalizer]):
    """Compare with a set, and change letters as Python does."""

    def compute_dynamic(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Remove the stop words, then change the case of the others."""
        operation = self.operation
        words = inputs[0].reshape(-1).tolist()
        text = GrowingText(self)
        stop_words = {self._compared(word, text) for word in operation.stop_words}
        if stop_words:
            words = [word for word in words if self._compared(word, text) not in stop_words] or [""]
        if operation.case_change is not CaseChange.NONE:
            words = [_changed(word, operation.case_change, text) for word in words]
        normalized = np.empty(len(words), object)
        normalized[:] = words
        return (normalized.reshape(*inputs[0].shape[:-1], len(words)),)

    def _compared(self, word: str, text: GrowingText) -> str:
        """The form of a word that is compared, which is not kept."""
        if self.operation.is_case_sensitive:
            return word
        lower = _changed(word, CaseChange.LOWER, text)
        text.add(-text_bytes(lower))
        return lower


def _changed(word: str, change: CaseChange, text: GrowingText) -> str:
    """A word in another case, whose memory counts."""
    room = text_bytes(word) if word.isascii() else len(word) * _ROOM_BYTES
    text.add(room)
    changed = word.lower() if change is CaseChange.LOWER else word.upper()
    text.add(text_bytes(changed) - room)
    return changed
