"""Names of classes, from a text file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError

BACKGROUND = "background"

_NUMBERED = r"(\d{1,9})(?:\s*[:,]\s*|\s+)(\S.*)"
"""``12 cat``, ``12: cat`` or ``12,cat``."""

_LARGEST_FILE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Labels:
    """Names by class."""

    names: Mapping[int, str]
    source: str = "the labels"  # where they are from, for messages

    @property
    def count(self) -> int:
        """One more than the highest class that has a name."""
        return max(self.names, default=-1) + 1

    def name(self, index: int) -> str:
        """Name of a class; empty if it has none."""
        return self.names.get(index, "")

    def for_classes(self, num_classes: int) -> Labels:
        """The labels of a model with a number of classes.

        Without the first one if that is an additional ``background``: lists for ImageNet come with
        1000 and with 1001 classes.
        """
        if self.count < num_classes:
            raise InvalidArgumentError(
                "there are fewer labels than classes",
                where=self.source,
                expected=f"{num_classes} labels",
                actual=str(self.count),
                fix="Use the labels that belong to the model, one per line",
            )
        if self.count == num_classes + 1 and self.name(0).lower() == BACKGROUND:
            names = {index - 1: name for index, name in self.names.items() if index}
            return Labels(names, self.source)
        return self


def read_labels(path: str) -> Labels:
    """Read a file of UTF-8 text with one label per line, or with an index before each label."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(_LARGEST_FILE_BYTES + 1)
        if len(content) > _LARGEST_FILE_BYTES:
            raise InvalidArgumentError("too large for a label file", where=path)
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        fix = "Save it as text in UTF-8"
        raise InvalidArgumentError("not a text file in UTF-8", where=path, fix=fix) from error
    except OSError as error:
        raise InvalidArgumentError(f"cannot be read: {error.strerror}", where=path) from error
    return parse_labels(text, path)


def parse_labels(text: str, source: str) -> Labels:
    """Labels of a text, see `read_labels`.

    Empty lines between labels count, so that line numbers stay classes; those at the end do not.
    Numbers are indexes only if every line has one, followed by a name.
    """
    lines = [line.strip() for line in text.rstrip().split("\n")]
    if not any(lines):
        fix = "Write one label per line"
        raise InvalidArgumentError("the label file is empty", where=source, fix=fix)
    matches = [re.fullmatch(_NUMBERED, line) for line in lines if line]
    numbered = [(int(match[1]), match[2]) for match in matches if match]
    if len(numbered) < len(matches):
        return Labels({index: line for index, line in enumerate(lines) if line}, source)
    names = dict(numbered)
    if len(names) < len(numbered):
        fix = "Give each index once"
        raise InvalidArgumentError("two labels have the same index", where=source, fix=fix)
    return Labels(names, source)
