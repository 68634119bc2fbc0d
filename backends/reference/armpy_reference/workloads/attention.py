"""CpuRef's Attention."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import Attention, AttentionScores
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class AttentionWorkload(ReferenceWorkload[Attention]):
    """Products, cap, mask, softmax, products."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute all heads at once."""
        operation = self.operation
        query, key, value = (_wide(array) for array in inputs[:3])
        heads, groups = query.shape[1], key.shape[1]
        if groups and heads != groups:
            key, value = (np.repeat(array, heads // groups, axis=1) for array in (key, value))
        scale = query.dtype.type(operation.scale or max(query.shape[-1], 1) ** -0.5)
        if not operation.scales_products:
            query = query * scale
        stages: dict[AttentionScores, Array] = {}
        scores = np.matmul(query, key.swapaxes(-1, -2))
        if operation.scales_products:
            scores *= scale
        stages[AttentionScores.PRODUCTS] = scores
        if operation.softcap:
            cap = scores.dtype.type(operation.softcap)
            scores = np.tanh(scores / cap) * cap
        stages[AttentionScores.CAPPED] = scores
        bias = self._bias(inputs, scores)
        seen = ~np.isneginf(bias)
        scores = np.where(seen, scores + bias, scores.dtype.type(-np.inf))
        stages[AttentionScores.MASKED] = scores
        probabilities = _softmax(scores)
        np.copyto(probabilities, 0, where=~seen.any(axis=-1, keepdims=True))
        stages[AttentionScores.PROBABILITIES] = probabilities
        outputs[0][...] = _gathered(probabilities, value, seen)
        if len(outputs) > 1:
            outputs[1][...] = stages[operation.scores]

    def _bias(self, inputs: Sequence[Array], scores: Array) -> Array:
        """Return the mask of the products, and -infinity where nothing is seen."""
        operation = self.operation
        mask = inputs[3] if len(inputs) > 3 else None
        lengths = inputs[4] if len(inputs) > 4 else None
        queries, keys = scores.shape[-2:]
        first: Array = np.asarray(operation.num_past)
        if lengths is not None:
            first = lengths.reshape(-1, 1, 1, 1).astype(np.int64) - queries
        distance = np.arange(keys) - (first + np.arange(queries)[:, None])
        seen = np.ones_like(distance, np.bool_)
        if operation.is_causal:
            seen &= distance <= 0
        if operation.left_window >= 0:
            seen &= distance >= -operation.left_window
        if operation.right_window >= 0:
            seen &= distance <= operation.right_window
        if lengths is not None:
            seen &= np.arange(keys) < lengths.reshape(-1, 1, 1, 1)
        bias: Array = np.zeros((), scores.dtype)
        if mask is not None and mask.dtype == np.bool_:
            seen = seen & mask
        elif mask is not None:
            bias = mask.astype(scores.dtype)
        return np.where(seen, bias, scores.dtype.type(-np.inf))


def _wide(array: Array) -> Array:
    """Numbers of the type to compute in."""
    return array.astype(np.promote_types(array.dtype, np.float32), copy=False)


def _gathered(probabilities: Array, value: Array, seen: Array) -> Array:
    """Sums of the values that are seen: 0 times one that is not finite would be NaN."""
    if np.isfinite(value).all():
        product: Array = np.matmul(probabilities, value)
        return product
    seen = np.broadcast_to(seen, probabilities.shape)
    rows = (
        np.where(seen[..., row, :, None], probabilities[..., row, :, None] * value, 0).sum(axis=-2)
        for row in range(probabilities.shape[-2])
    )
    return np.stack([*rows], axis=-2)


def _softmax(scores: Array) -> Array:
    """Softmax along the last axis; 0 where all is -infinity."""
    largest = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    powers: Array = np.exp(scores - np.where(np.isneginf(largest), 0, largest).astype(scores.dtype))
    total = powers.sum(axis=-1, keepdims=True)
    powers /= np.where(total == 0, 1, total).astype(scores.dtype)
    return powers
