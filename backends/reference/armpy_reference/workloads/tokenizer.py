"""CpuRef's Tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from armpy.core.patterns.matcher import RegularExpression
from armpy.ops import Tokenizer
from armpy.ops.operation import Array
from armpy_reference.stopping import stop_check
from armpy_reference.workload import ReferenceWorkload

_TEXT_BEGIN, _TEXT_END = "\x02", "\x03"


class TokenizerWorkload(ReferenceWorkload[Tokenizer]):
    """Search for separators or tokens in each string."""

    def prepare(self) -> None:
        """Compile the patterns."""
        self.separators = [RegularExpression(text) for text in self.operation.separators]
        self.token = RegularExpression(self.operation.token_pattern)

    def compute_dynamic(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Divide each string, and fill up with the padding."""
        operation, check = self.operation, stop_check()
        rows = [self._tokens(text, check) for text in inputs[0].reshape(-1).tolist()]
        most = max(map(len, rows), default=0)
        if operation.is_marked and most:
            rows = [[_TEXT_BEGIN, *row, _TEXT_END] for row in rows]
            most += 2
        tokens = np.full((len(rows), most), operation.padding, object)
        for filled, row in zip(tokens, rows, strict=True):
            filled[: len(row)] = row
        return (tokens.reshape(*inputs[0].shape, most),)

    def _tokens(self, text: str, check: Callable[[], None]) -> list[str]:
        least = self.operation.least_characters
        if not self.separators:
            return list(_matches(self.token, text, least, check))
        tokens = [text]
        for separator in self.separators:
            parts = (part for token in tokens for part in _parts(separator, token, check))
            tokens = [part for part in parts if len(part) >= least]
        return tokens


def _matches(
    pattern: RegularExpression, text: str, least: int, check: Callable[[], None]
) -> Iterator[str]:
    """Matches of at least some characters, which do not overlap."""
    position = 0
    for start in pattern.starts(text, check):
        if start < position:
            continue
        end = pattern.longest_end(text, start, check)
        position = start + 1
        if end - start >= least:
            yield text[start:end]
            position = end


def _parts(separator: RegularExpression, text: str, check: Callable[[], None]) -> Iterator[str]:
    """Parts of a text between separators."""
    position = 0
    for start in separator.starts(text, check):
        if start >= position:
            yield text[position:start]
            # An empty separator drops a character, as in ONNX Runtime.
            position = max(separator.longest_end(text, start, check), start + 1)
    yield text[position:]
