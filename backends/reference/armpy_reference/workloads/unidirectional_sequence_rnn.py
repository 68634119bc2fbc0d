"""CpuRef's UnidirectionalSequenceRnn."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import UnidirectionalSequenceRnn
from armpy.ops.operation import Array
from armpy_reference.recurrent.operands import time_major, weights_of
from armpy_reference.recurrent.rnn import run_rnn
from armpy_reference.workload import ReferenceWorkload


class UnidirectionalSequenceRnnWorkload(ReferenceWorkload[UnidirectionalSequenceRnn]):
    """Run a recurrent network over a sequence; see `run_rnn`."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the sequence and the state after it."""
        operation = self.operation
        outputs[0][...] = run_rnn(
            weights_of(operation, inputs),
            operation.activation,
            time_major(inputs[0], operation.time_major),
            inputs[-1],
            time_major(outputs[1], operation.time_major),
        )
