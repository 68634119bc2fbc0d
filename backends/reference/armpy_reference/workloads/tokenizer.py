"""CpuRef's Tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from armpy.core.strings import decoded, encoded
from armpy.core.text_memory import REFERENCE_BYTES, STRING_BYTES, GrowingText, text_bytes
from armpy.ops import Tokenizer
from armpy.ops.operation import Array
from armpy_reference.regular_expression import RegularExpression
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
        operation, check, made = self.operation, stop_check(), GrowingText(self)
        rows = [self._tokens(text, check, made) for text in inputs[0].reshape(-1).tolist()]
        most = max(map(len, rows), default=0)
        if operation.is_marked and most:
            rows = [[_TEXT_BEGIN, *row, _TEXT_END] for row in rows]
            most += 2
        made.add(len(rows) * most * REFERENCE_BYTES)
        tokens = np.full((len(rows), most), operation.padding, object)
        for filled, row in zip(tokens, rows, strict=True):
            filled[: len(row)] = row
        return (tokens.reshape(*inputs[0].shape, most),)

    def _tokens(self, text: str, check: Callable[[], None], made: GrowingText) -> list[str]:
        least = self.operation.least_characters
        content = encoded(text)
        made.add(len(content))
        if not self.separators:
            return list(_matches(self.token, content, least, check, made))
        tokens = [content]
        for separator in self.separators:
            parts = (part for token in tokens for part in _parts(separator, token, check, made))
            tokens = [part for part in parts if len(decoded(part)) >= least]
        made.add(sum(map(text_bytes, tokens)))
        return list(map(decoded, tokens))


def _matches(
    pattern: RegularExpression,
    text: bytes,
    least: int,
    check: Callable[[], None],
    made: GrowingText,
) -> Iterator[str]:
    """Matches of at least some characters, which do not overlap."""
    position = 0
    while (place := _found(pattern, text, position, check)) is not None:
        start, end = place
        token = decoded(text[start:end])
        position = _after(text, start)
        if len(token) >= least:
            made.add(text_bytes(token))
            yield token
            position = end


def _parts(
    separator: RegularExpression, text: bytes, check: Callable[[], None], made: GrowingText
) -> Iterator[bytes]:
    """Parts of a text between separators."""
    position = 0
    while (place := _found(separator, text, position, check)) is not None:
        start, end = place
        made.add(STRING_BYTES + start - position)
        yield text[position:start]
        # An empty separator drops a character, as in ONNX Runtime.
        position = max(end, _after(text, start))
    made.add(STRING_BYTES + len(text) - position)
    yield text[position:]


def _found(
    pattern: RegularExpression, text: bytes, position: int, check: Callable[[], None]
) -> tuple[int, int] | None:
    """The first match from a position on, unless the text has ended before it."""
    check()
    return pattern.search(text, position) if position <= len(text) else None


def _after(text: bytes, position: int) -> int:
    """The position after a character, of UTF-8."""
    position += 1
    while position < len(text) and text[position] & 0xC0 == 0x80:
        position += 1
    return position
