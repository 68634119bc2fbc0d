"""CpuRef's StringConcat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.core.text_memory import GrowingText, text_bytes
from armpy.ops import StringConcat
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class StringConcatWorkload(ReferenceWorkload[StringConcat]):
    """Add ``str`` objects."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Append with broadcasting."""
        pairs = np.broadcast(*inputs)
        GrowingText(self).add(sum(text_bytes(lhs, rhs) for lhs, rhs in pairs))
        np.add(inputs[0], inputs[1], out=outputs[0])
