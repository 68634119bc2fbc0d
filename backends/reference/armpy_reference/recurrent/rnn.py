"""The fully connected recurrent network."""

from __future__ import annotations

from collections.abc import Mapping

from armpy.ops import RecurrentActivation
from armpy.ops.operation import Array
from armpy_reference.recurrent.activation import Float32Array, activate, as_float32


def run_rnn(
    weights: Mapping[str, Array],
    activation: RecurrentActivation,
    sequence: Array,
    hidden_state: Array,
    out: Array,
) -> Float32Array:
    """Run over a sequence.

    float32 throughout; the result of float16 operands is rounded once, at the end.

    Reference: NNAPI and TFLite RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN.

    Parameters
    ----------
    weights : mapping of str to ndarray
        ``weights`` (n, i), ``recurrent_weights`` (n, n) and ``bias`` (n), float16 or
        float32.
    sequence : ndarray, float16 or float32, shape (t, b, i)
    hidden_state : ndarray, type of `sequence`, shape (b, n)
    out : ndarray, type of `sequence`, shape (t, b, n)
        Written completely.

    Returns
    -------
    ndarray, float32, shape (b, n)
        The hidden state after the last time step.
    """
    shares = as_float32(sequence) @ as_float32(weights["weights"]).T
    shares += as_float32(weights["bias"])
    recurrent_weights = as_float32(weights["recurrent_weights"]).T
    hidden = as_float32(hidden_state)
    for time, share in enumerate(shares):
        hidden = activate(share + hidden @ recurrent_weights, activation)
        out[time] = hidden
    return hidden
