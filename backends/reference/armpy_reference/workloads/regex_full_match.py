"""CpuRef's RegexFullMatch."""

from __future__ import annotations

import re
from collections.abc import Sequence

from armpy.ops import RegexFullMatch
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class RegexFullMatchWorkload(ReferenceWorkload[RegexFullMatch]):
    """Match with Python's regular expressions."""

    def prepare(self) -> None:
        """Compile the pattern."""
        self.matches = re.compile(self.operation.pattern, re.ASCII).fullmatch

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Match each string."""
        texts = inputs[0].reshape(-1).tolist()
        outputs[0].reshape(-1)[...] = [self.matches(text) is not None for text in texts]
