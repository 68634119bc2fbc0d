"""CpuRef's DecisionTrees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from armpy.ops import DecisionTrees, TreeComparison
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload

_COMPARE: Mapping[int, Callable[..., Any]] = MappingProxyType(  # Any: NumPy's functions
    {
        TreeComparison.LESS_OR_EQUAL: np.less_equal,
        TreeComparison.LESS: np.less,
        TreeComparison.GREATER_OR_EQUAL: np.greater_equal,
        TreeComparison.GREATER: np.greater,
        TreeComparison.EQUAL: np.equal,
        TreeComparison.NOT_EQUAL: np.not_equal,
    }
)


class DecisionTreesWorkload(ReferenceWorkload[DecisionTrees]):
    """Let all rows go down all trees, one node at a time."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Leaves are negative on the way."""
        rows, features, comparisons, thresholds, missing, if_true, if_false, roots = inputs
        at = np.tile(roots, len(rows))
        row = np.repeat(np.arange(len(rows)), len(roots))
        kinds = np.unique(comparisons).tolist()
        inside = np.arange(at.size)
        num_nodes = len(features)
        for _ in range(num_nodes):
            inside = inside[(at[inside] >= 0) & (at[inside] < num_nodes)]
            if not inside.size or not rows.shape[1]:
                break
            node = at[inside]
            value = rows[row[inside], np.clip(features[node], 0, rows.shape[1] - 1)]
            is_so = missing[node] & np.isnan(value)
            for kind in kinds:
                compare = _COMPARE.get(kind)
                if compare is not None:
                    comparison = compare(value, thresholds[node])
                    is_so |= (
                        comparison if len(kinds) == 1 else comparison & (comparisons[node] == kind)
                    )
            at[inside] = np.where(is_so, if_true[node], if_false[node])
        outputs[0][...] = np.where(at < 0, -1 - at, 0).reshape(outputs[0].shape)
