"""CpuRef's ReverseSequence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.errors import InvalidArgumentError
from armpy.ops import ReverseSequence
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class ReverseSequenceWorkload(ReferenceWorkload[ReverseSequence]):
    """Copy each sequence with its beginning reversed."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type.

        Raises
        ------
        InvalidArgumentError
            If a length is out of range.
        """
        values, lengths = inputs
        axes = (self.operation.batch_axis, self.operation.sequence_axis)
        source, target = (np.moveaxis(array, axes, (0, 1)) for array in (values, outputs[0]))
        size = source.shape[1]
        if lengths.size and (lengths.min() < 0 or lengths.max() > size):
            raise InvalidArgumentError(
                "a length is out of range",
                expected=f"0 to {size}",
                actual=f"{lengths.min()} to {lengths.max()}",
            )
        target[...] = source
        for sequence, reversed_, length in zip(source, target, lengths, strict=True):
            reversed_[:length] = sequence[:length][::-1]
