"""CpuRef's RegexFullMatch."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.core.patterns.matcher import RegularExpression
from armpy.ops import RegexFullMatch
from armpy.ops.operation import Array
from armpy_reference.stopping import stop_check
from armpy_reference.workload import ReferenceWorkload


class RegexFullMatchWorkload(ReferenceWorkload[RegexFullMatch]):
    """Match each string by sets of states."""

    def prepare(self) -> None:
        """Compile the pattern."""
        self.pattern = RegularExpression(self.operation.pattern)

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Match each string, unless the execution is stopped meanwhile."""
        check = stop_check()
        texts = inputs[0].reshape(-1).tolist()
        outputs[0].reshape(-1)[...] = [self.pattern.matches(text, check) for text in texts]
