"""What operations on sequences compute, element by element, in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.ops import Attention, AttentionScores, Operation

Numbers: TypeAlias = npt.NDArray[Any]  # Any: float64, or a tensor's own elements


def _attention(operation: Attention, inputs: Sequence[Any], outputs: object) -> Sequence[Numbers]:
    """One query of one head at a time."""
    query, key, value, mask, lengths = (*inputs, None, None)[:5]
    batches, heads, queries, size = query.shape
    groups, keys = key.shape[1:3]
    if mask is not None:
        mask = np.broadcast_to(mask, (batches, heads, queries, keys))
    found = np.zeros((batches, heads, queries, value.shape[3]))
    told = {kind: np.zeros((batches, heads, queries, keys)) for kind in AttentionScores}
    for b, h, s in np.ndindex(batches, heads, queries):
        at = b, h, s
        group = h // (heads // groups)
        position = s + (operation.num_past if lengths is None else int(lengths[b]) - queries)
        scores = key[b, group] @ query[at] * (operation.scale or 1 / np.sqrt(size))
        told[AttentionScores.PRODUCTS][at] = scores
        if operation.softcap:
            scores = operation.softcap * np.tanh(scores / operation.softcap)
        told[AttentionScores.CAPPED][at] = scores
        seen: list[bool] = [
            (lengths is None or t < lengths[b])
            and (not operation.is_causal or t <= position)
            and (operation.left_window < 0 or t >= position - operation.left_window)
            and (operation.right_window < 0 or t <= position + operation.right_window)
            and (mask is None or mask.dtype != np.bool_ or bool(mask[at][t]))
            for t in range(keys)
        ]
        if mask is not None and mask.dtype != np.bool_:
            scores = scores + mask[at]
        scores = np.where(np.array(seen, np.bool_), scores, -np.inf)
        told[AttentionScores.MASKED][at] = scores
        if any(seen):
            powers = np.exp(scores - scores.max())
            told[AttentionScores.PROBABILITIES][at] = powers / powers.sum()
            found[at] = powers / powers.sum() @ value[b, group]
    if operation.scores is AttentionScores.NONE:
        return (found,)
    return found, told[operation.scores]


Definition: TypeAlias = Callable[[Any, Sequence[Any], Any], Sequence[Numbers]]
"""As of `defined_functions`; Any: of one kind."""

SEQUENCES: Mapping[type[Operation], Definition] = {Attention: _attention}
