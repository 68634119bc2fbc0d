"""Operations on sequences, computed element by element, in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.ops import (
    Attention,
    AttentionScores,
    Dft,
    GateFunction,
    Operation,
    RecurrentCell,
    RecurrentSequence,
    TermWeighting,
    TfIdfVectorizer,
)

Numbers: TypeAlias = npt.NDArray[Any]  # Any: float64, or a tensor's own elements


def _attention(operation: Attention, inputs: Sequence[Any], outputs: object) -> Sequence[Numbers]:
    """One query of one head at a time."""
    query, key, value, mask, lengths = (*inputs, None, None)[:5]
    batches, heads, queries, size = query.shape
    groups, keys = key.shape[1:3]
    if mask is not None:
        mask = np.broadcast_to(mask, (batches, heads, queries, keys))
    attended = np.zeros((batches, heads, queries, value.shape[3]))
    stages = {kind: np.zeros((batches, heads, queries, keys)) for kind in AttentionScores}
    for b, h, s in np.ndindex(batches, heads, queries):
        at = b, h, s
        group = h // (heads // groups)
        position = s + (operation.num_past if lengths is None else int(lengths[b]) - queries)
        scores = key[b, group] @ query[at] * (operation.scale or 1 / np.sqrt(size))
        stages[AttentionScores.PRODUCTS][at] = scores
        if operation.softcap:
            scores = operation.softcap * np.tanh(scores / operation.softcap)
        stages[AttentionScores.CAPPED][at] = scores
        seen: list[bool] = [
            (lengths is None or t < lengths[b])
            and (not operation.is_causal or t <= position)
            and (operation.left_window < 0 or t >= position - operation.left_window)
            and (operation.right_window < 0 or t <= position + operation.right_window)
            and (mask is None or mask[at][t] != (False if mask.dtype == np.bool_ else -np.inf))
            for t in range(keys)
        ]
        if mask is not None and mask.dtype != np.bool_:
            scores = scores + mask[at]
        scores = np.where(np.array(seen, np.bool_), scores, -np.inf)
        stages[AttentionScores.MASKED][at] = scores
        if any(seen):
            powers = np.exp(scores - scores.max())
            stages[AttentionScores.PROBABILITIES][at] = powers / powers.sum()
            attended[at] = (powers / powers.sum())[seen] @ value[b, group, seen]
    if operation.scores is AttentionScores.NONE:
        return (attended,)
    return attended, stages[operation.scores]


_GATES: Mapping[GateFunction, Callable[[Numbers, float, float], Numbers]] = {
    GateFunction.SIGMOID: lambda x, a, b: 1 / (1 + np.exp(-x)),
    GateFunction.TANH: lambda x, a, b: np.tanh(x),
    GateFunction.RELU: lambda x, a, b: x * (x > 0),
    GateFunction.AFFINE: lambda x, a, b: a * x + b,
    GateFunction.LEAKY_RELU: lambda x, a, b: x * np.where(x > 0, 1, a),
    GateFunction.THRESHOLDED_RELU: lambda x, a, b: x * (x >= a),
    GateFunction.SCALED_TANH: lambda x, a, b: a * np.tanh(b * x),
    GateFunction.HARD_SIGMOID: lambda x, a, b: np.minimum(1, np.maximum(0, a * x + b)),
    GateFunction.ELU: lambda x, a, b: np.where(x > 0, x, a * (np.exp(x) - 1)),
    GateFunction.SOFTSIGN: lambda x, a, b: x / (1 + np.abs(x)),
    GateFunction.SOFTPLUS: lambda x, a, b: np.log1p(np.exp(x)),
}


def _recurrent(
    operation: RecurrentSequence, inputs: Sequence[Any], outputs: object
) -> Sequence[Numbers]:
    """One sequence at a time, gate by gate."""
    padded = (*inputs, *(None,) * (9 - len(inputs)))
    sequence, weights, recurrent, bias, more, lengths, first, first_cell, peephole = padded
    times, batches, _ = sequence.shape
    units, count = recurrent.shape[1], operation.cell.num_gates
    names = operation.functions or operation.cell.functions
    alphas = operation.alphas or (0,) * len(names)
    betas = operation.betas or (0,) * len(names)
    w, r = weights.reshape(count, units, -1), recurrent.reshape(count, units, units)
    b, d = (
        np.zeros((count, units)) if v is None else v.reshape(count, units) for v in (bias, more)
    )
    p = np.zeros((3, units)) if peephole is None else peephole.reshape(3, units)
    limit = operation.clip or np.inf

    def f(number: int, sums: Numbers, is_sum: bool = True) -> Numbers:
        limited = np.clip(sums, -limit, limit) if is_sum else sums
        return _GATES[names[number]](limited, alphas[number], betas[number])

    hidden_states = np.zeros((times, batches, units))
    states, cells = np.zeros((2, batches, units))
    for n in range(batches):
        h = np.zeros(units) if first is None else first[n]
        c = np.zeros(units) if first_cell is None else first_cell[n]
        length = times if lengths is None else int(lengths[n])
        for t in reversed(range(length)) if operation.is_reversed else range(length):
            x = [w[g] @ sequence[t, n] + b[g] for g in range(count)]
            y = [r[g] @ h + d[g] for g in range(count)]
            if operation.cell is RecurrentCell.RNN:
                h = f(0, x[0] + y[0])
            elif operation.cell is RecurrentCell.GRU:
                update, reset = f(0, x[0] + y[0]), f(0, x[1] + y[1])
                recurrent_part = (
                    reset * y[2] if operation.resets_after else r[2] @ (reset * h) + d[2]
                )
                h = (1 - update) * f(1, x[2] + recurrent_part) + update * h
            else:
                update_gate = f(0, x[0] + y[0] + p[0] * c)
                forgot = f(0, x[2] + y[2] + p[2] * c)
                c = (1 - update_gate if operation.couples_gates else forgot) * c
                c = c + update_gate * f(1, x[3] + y[3])
                h = f(0, x[1] + y[1] + p[1] * c) * f(2, c, is_sum=False)
            hidden_states[t, n] = h
        states[n], cells[n] = h, c
    return (hidden_states, states, cells)[: operation.num_outputs]


def _transformed(operation: Dft, inputs: Sequence[Any], outputs: object) -> Sequence[Numbers]:
    """A product with a matrix of complex roots of one."""
    (signal,) = inputs
    numbers = signal[..., 0] + 1j * (signal[..., 1] if signal.shape[-1] == 2 else 0)
    axis = operation.axis % signal.ndim
    rows = np.moveaxis(numbers, axis, -1)
    halves = operation.is_inverse and operation.is_onesided
    size = rows.shape[-1]
    length = operation.length or (2 * (size - 1) if halves else size)
    if halves:  # the others are what these are to the left of 0
        whole = np.zeros((*rows.shape[:-1], length), np.complex128)
        for f in range(min(size, length // 2 + 1)):
            whole[..., f] = rows[..., f]
            if 0 < f < length - f:
                whole[..., length - f] = rows[..., f].conj()
        whole[..., 0] = whole[..., 0].real
        if length % 2 == 0:
            whole[..., length // 2] = whole[..., length // 2].real
    else:
        whole = np.zeros((*rows.shape[:-1], length), np.complex128)
        whole[..., : min(size, length)] = rows[..., :length]
    sign = 1 if operation.is_inverse else -1
    roots = np.exp(sign * 2j * np.pi / length * np.outer(np.arange(length), np.arange(length)))
    spectrum = whole @ roots / (length if operation.is_inverse else 1)
    if operation.is_onesided and not operation.is_inverse:
        spectrum = spectrum[..., : length // 2 + 1]
    spectrum = np.moveaxis(spectrum, -1, axis)
    parts = (spectrum.real,) if halves else (spectrum.real, spectrum.imag)
    return (np.stack(parts, axis=-1),)


def _counted(
    operation: TfIdfVectorizer, inputs: Sequence[Any], outputs: object
) -> Sequence[Numbers]:
    """Every n-gram at every place with every gap."""
    (words,) = inputs
    counts = np.zeros((*words.shape[:-1], operation.num_features))
    for row in np.ndindex(words.shape[:-1]):
        line = words[row]
        for ngram, place in zip(operation.ngrams, operation.indexes, strict=True):
            for gap in range(1, operation.max_skips + 2 if len(ngram) > 1 else 2):
                for start in range(len(line)):
                    at = [start + gap * number for number in range(len(ngram))]
                    if at[-1] < len(line) and all(line[at] == ngram):
                        counts[(*row, place)] += 1
    weights = np.array(operation.weights or 1.0)
    if operation.weighting is TermWeighting.IDF:
        counts = weights * (counts > 0)
    elif operation.weighting is TermWeighting.TFIDF:
        counts = weights * counts
    return (counts,)


Definition: TypeAlias = Callable[[Any, Sequence[Any], Any], Sequence[Numbers]]
"""As of `defined_functions`; Any: of one kind."""

SEQUENCES: Mapping[type[Operation], Definition] = {
    Attention: _attention,
    RecurrentSequence: _recurrent,
    Dft: _transformed,
    TfIdfVectorizer: _counted,
}
