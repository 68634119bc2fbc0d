"""CpuRef's RegexFullMatch."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.core.strings import encoded
from armpy.ops import RegexFullMatch
from armpy.ops.operation import Array
from armpy_reference.regular_expression import RegularExpression
from armpy_reference.stopping import stop_check
from armpy_reference.workload import ReferenceWorkload


class RegexFullMatchWorkload(ReferenceWorkload[RegexFullMatch]):
    """Match each string by RE2."""

    def prepare(self) -> None:
        """Compile the pattern."""
        self.pattern = RegularExpression(self.operation.pattern)

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Match each string, unless the execution is stopped between two of them."""
        check = stop_check()
        matches = outputs[0].reshape(-1)
        for number, text in enumerate(inputs[0].reshape(-1).tolist()):
            check()
            matches[number] = self.pattern.matches(encoded(text))
