"""CpuRef's Rnn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import Rnn
from armpy.ops.operation import Array
from armpy_reference.recurrent.operands import weights_of
from armpy_reference.recurrent.rnn import run_rnn
from armpy_reference.workload import ReferenceWorkload


class RnnWorkload(ReferenceWorkload[Rnn]):
    """Run a recurrent network for one time step; see `run_rnn`."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute the new state, which is the output."""
        data, state = inputs[0], inputs[-1]
        weights = weights_of(self.operation, inputs)
        run_rnn(weights, self.operation.activation, data[np.newaxis], state, outputs[1][np.newaxis])
        outputs[0][...] = outputs[1]
