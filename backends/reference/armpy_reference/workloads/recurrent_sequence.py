"""CpuRef's RecurrentSequence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from armpy.ops import GateFunction, RecurrentCell, RecurrentSequence
from armpy.ops.operation import Array
from armpy_reference.recurrent.operands import by_name
from armpy_reference.workload import ReferenceWorkload

Function: TypeAlias = Callable[[Array], Array]

_FUNCTIONS: Mapping[GateFunction, Callable[[Array, float, float], Array]] = {
    GateFunction.SIGMOID: lambda x, a, b: 1 / (1 + np.exp(-x)),
    GateFunction.TANH: lambda x, a, b: np.tanh(x),
    GateFunction.RELU: lambda x, a, b: np.maximum(x, 0),
    GateFunction.AFFINE: lambda x, a, b: a * x + b,
    GateFunction.LEAKY_RELU: lambda x, a, b: np.where(x < 0, a * x, x),
    GateFunction.THRESHOLDED_RELU: lambda x, a, b: np.where(x >= a, x, 0),
    GateFunction.SCALED_TANH: lambda x, a, b: a * np.tanh(b * x),
    GateFunction.HARD_SIGMOID: lambda x, a, b: np.clip(a * x + b, 0, 1),
    GateFunction.ELU: lambda x, a, b: np.where(x < 0, a * np.expm1(x), x),
    GateFunction.SOFTSIGN: lambda x, a, b: x / (1 + np.abs(x)),
    GateFunction.SOFTPLUS: lambda x, a, b: np.logaddexp(x, 0),
}

_LETS_OUT = 2
"""Number of the function of an LSTM's cell state on its way out."""


class RecurrentSequenceWorkload(ReferenceWorkload[RecurrentSequence]):
    """Multiply all inputs with their weights at once, then step through time."""

    def prepare(self) -> None:
        """Put the functions together."""
        operation = self.operation
        functions = operation.functions or operation.cell.functions
        zeros = (0.0,) * len(functions)
        self._functions = [
            self._function(number, *arguments)
            for number, arguments in enumerate(
                zip(functions, operation.alphas or zeros, operation.betas or zeros, strict=True)
            )
        ]
        self._step = {
            RecurrentCell.RNN: self._rnn,
            RecurrentCell.GRU: self._gru,
            RecurrentCell.LSTM: self._lstm,
        }[operation.cell]

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """One step of all sequences that have not ended at a time."""
        named = {
            name: array.astype(np.promote_types(array.dtype, np.float32), copy=False)
            if array.dtype.kind == "f"
            else array
            for name, array in by_name(self.operation, inputs).items()
            if array is not None
        }
        sequence = named["input"]
        times, batches, _ = sequence.shape
        lengths = np.clip(named.get("sequence_lengths", np.full(batches, times)), 0, times)
        zeros = np.zeros(outputs[1].shape, sequence.dtype)
        hidden = named.get("hidden_state_in", zeros).copy()
        cell = named.get("cell_state_in", zeros).copy()
        bias = named.get("bias", np.zeros(len(named["weights"]), sequence.dtype))
        share = sequence @ named["weights"].T + bias
        outputs[0][...] = 0
        for step in range(times):
            active = np.flatnonzero(step < lengths)
            at = lengths[active] - 1 - step if self.operation.is_reversed else step
            states = self._step(named, share[at, active], hidden[active], cell[active])
            hidden[active], cell[active] = states
            outputs[0][at, active] = states[0]
        for output, state in zip(outputs[1:], (hidden, cell), strict=False):
            output[...] = state

    def _function(self, number: int, function: GateFunction, alpha: float, beta: float) -> Function:
        """A function of the limited input, if there is a limit."""
        compute, limit = _FUNCTIONS[function], self.operation.clip
        if not limit or number == _LETS_OUT:
            return lambda x: compute(x, alpha, beta)
        return lambda x: compute(np.clip(x, -limit, limit), alpha, beta)

    def _rnn(
        self, named: Mapping[str, Array], share: Array, hidden: Array, cell: Array
    ) -> tuple[Array, Array]:
        """The new state."""
        sums = share + _recurrent(named, hidden, slice(None))
        return self._functions[0](sums), cell

    def _gru(
        self, named: Mapping[str, Array], share: Array, hidden: Array, cell: Array
    ) -> tuple[Array, Array]:
        """The new state."""
        gate, activate = self._functions
        units = hidden.shape[-1]
        update, reset = (
            gate(share[:, part] + _recurrent(named, hidden, part))
            for part in (slice(units), slice(units, 2 * units))
        )
        last = slice(2 * units, None)
        if self.operation.resets_after:
            recurrent = reset * _recurrent(named, hidden, last)
        else:
            recurrent = _recurrent(named, reset * hidden, last)
        return (1 - update) * activate(share[:, last] + recurrent) + update * hidden, cell

    def _lstm(
        self, named: Mapping[str, Array], share: Array, hidden: Array, cell: Array
    ) -> tuple[Array, Array]:
        """The new states."""
        gate, activate, let_out = self._functions
        sums = share + _recurrent(named, hidden, slice(None))
        update, passed, retained, candidate = np.split(sums, 4, axis=-1)
        peephole = named.get("peephole", np.zeros(3 * hidden.shape[-1], sums.dtype))
        of_taken, of_passed, of_kept = np.split(peephole, 3)
        update = gate(update + of_taken * cell)
        retained = 1 - update if self.operation.couples_gates else gate(retained + of_kept * cell)
        cell = retained * cell + update * activate(candidate)
        return gate(passed + of_passed * cell) * let_out(cell), cell


def _recurrent(named: Mapping[str, Array], hidden: Array, part: slice) -> Array:
    """Return the state's share of the gates of a part of the rows."""
    product: Array = hidden @ named["recurrent_weights"][part].T
    bias = named.get("recurrent_bias")
    return product if bias is None else product + bias[part]
