"""Base of float and integer LSTMs: operands by gate, the loop over time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from armpy.ops.operation import Array

GATES = ("input", "forget", "cell", "output")
BIASES = {
    "input": "input_gate_bias",
    "forget": "forget_gate_bias",
    "cell": "cell_bias",
    "output": "output_gate_bias",
}


class LstmCell(ABC):
    """One LSTM with its weights, ready to run over sequences.

    A subclass says how the share of the gates that the input contributes is computed, for
    all time steps at once, and how one step is made from it and the states.
    """

    @abstractmethod
    def input_share(self, sequence: Array) -> Mapping[str, npt.NDArray[Any]]:
        """Compute the part of each gate (t, b, n) from the input (t, b, i)."""

    @abstractmethod
    def step(
        self,
        share: Mapping[str, npt.NDArray[Any]],
        output_state: npt.NDArray[Any],
        cell_state: npt.NDArray[Any],
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Compute the states (b, o) and (b, n) after one time step."""

    def run(
        self, sequence: Array, output_state: Array, cell_state: Array, out: Array
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Run over a sequence.

        Parameters
        ----------
        sequence : ndarray, shape (t, b, i)
        output_state : ndarray, shape (b, o)
        cell_state : ndarray, shape (b, n)
        out : ndarray, shape (t, b, o)
            Written completely.

        Returns
        -------
        output_state, cell_state : ndarray
            After the last time step.
        """
        shares = self.input_share(sequence)
        for time in range(len(sequence)):
            share = {gate: values[time] for gate, values in shares.items()}
            output_state, cell_state = self.step(share, output_state, cell_state)
            out[time] = output_state
        return output_state, cell_state
