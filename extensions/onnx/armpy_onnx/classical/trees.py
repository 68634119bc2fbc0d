"""Ensembles of decision trees as ONNX writes them: checked, and as tables of indexes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.graph import Value
from armpy.ops.reduction import ReduceOperation
from armpy.ops.trees import DecisionTrees, TreeComparison
from armpy.types import DataType
from armpy_onnx.blocks import check_table, gathered, reduced
from armpy_onnx.node import Node

Integers: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = npt.NDArray[Any]  # Any: float32 or float64

MEMBER = 6
"""The mode of a node of TreeEnsemble that looks for a feature in a set."""

MODES = {
    "BRANCH_LEQ": TreeComparison.LESS_OR_EQUAL,
    "BRANCH_LT": TreeComparison.LESS,
    "BRANCH_GTE": TreeComparison.GREATER_OR_EQUAL,
    "BRANCH_GT": TreeComparison.GREATER,
    "BRANCH_EQ": TreeComparison.EQUAL,
    "BRANCH_NEQ": TreeComparison.NOT_EQUAL,
}
"""Comparisons by ONNX's names in older versions; the other name is that of leaves."""


@dataclass(frozen=True, eq=False, slots=True)
class Trees:
    """An ensemble."""

    # ndarray, shape (m,). As of `DecisionTrees`; nodes that are not leaves.
    features: Integers
    comparisons: Integers
    thresholds: Numbers
    missing: npt.NDArray[np.bool_]
    if_true: Integers
    if_false: Integers
    roots: Integers  # ndarray of int64, shape (t,)
    num_leaves: int

    def check(self, node: Node, num_features: int) -> None:
        """Check that every path ends, and every index is in range.

        Raises
        ------
        LayerValidationError
            If not.

        Notes
        -----
        A node that has one parent, in trees whose roots have none, is on no circle that a path
        from a root could reach.
        """
        count = len(self.features)
        next_nodes = np.concatenate((self.if_true, self.if_false, self.roots))
        inner = next_nodes[next_nodes >= 0]
        if inner.size and (inner.max() >= count or np.bincount(inner).max() > 1):
            raise node.error("the nodes are not trees", expected="one parent for each, or none")
        if next_nodes.size and -1 - next_nodes.min() >= self.num_leaves:
            raise node.error(
                "a node leads to a leaf that does not exist",
                expected=f"{self.num_leaves} leaves",
                actual=f"leaf {-1 - next_nodes.min()}",
            )
        if count and not 0 <= self.features.min() <= self.features.max() < num_features:
            raise node.error(
                "a node's feature is out of range",
                expected=f"0 to {num_features - 1}",
                actual=self.features.max(),
            )

    def leaves(self, node: Node, rows: Value) -> Value:
        """The leaf in each tree, (n, t)."""
        index = DataType.SIGNED32
        return node.layer(
            DecisionTrees(),
            rows,
            node.constant(self.features, index),
            node.constant(self.comparisons, DataType.UNSIGNED8),
            node.constant(self.thresholds, rows.info.data_type),
            node.constant(self.missing, DataType.BOOLEAN),
            node.constant(self.if_true, index),
            node.constant(self.if_false, index),
            node.constant(self.roots, index),
        )


def column(node: Node, name: str, count: int, default: int | None = None) -> Integers:
    """An attribute with one integer for each node of an ensemble."""
    column_values = np.array(node.integers(name, () if default is not None else None), np.int64)
    if default is not None and not column_values.size:
        return np.full(count, default, np.int64)
    if len(column_values) != count:
        raise node.error(
            f"the attribute '{name}' has the wrong length",
            expected=str(count),
            actual=len(column_values),
        )
    return column_values


def reals(node: Node, name: str) -> Numbers:
    """An attribute that is several numbers, or a tensor of them by its other name."""
    if node.attribute(f"{name}_as_tensor") is not None:
        return node.tensor(f"{name}_as_tensor")[0].reshape(-1)
    return np.array(node.attribute(name, ()), np.float32)


def read_trees(node: Node) -> tuple[Trees, PlacesOfLeaves]:
    """An ensemble whose nodes have numbers within their trees, leaves among them."""
    tree_ids = np.array(node.integers("nodes_treeids"), np.int64)
    count = len(tree_ids)
    places = PlacesOfLeaves(node, tree_ids, column(node, "nodes_nodeids", count))
    modes = node.attribute("nodes_modes", ())
    if len(modes) != count or not count:
        raise node.error("there is not one mode for each node", expected=str(count))
    is_leaf = np.array([mode == "LEAF" for mode in modes])
    unknown = {mode for mode in modes if mode != "LEAF"} - MODES.keys()
    if unknown:
        raise node.error("a node's mode is unknown", expected=", ".join(MODES), actual=unknown)
    thresholds = reals(node, "nodes_values")
    if len(thresholds) != count:
        raise node.error("there is not one value for each node", expected=str(count))
    number = np.where(is_leaf, -np.cumsum(is_leaf), np.cumsum(~is_leaf) - 1)
    places.leaf_numbers = np.where(is_leaf, -1 - number, -1)
    inner = np.flatnonzero(~is_leaf)
    if_true, if_false = (
        number[places.find(tree_ids[inner], column(node, f"nodes_{way}nodeids", count)[inner])]
        for way in ("true", "false")
    )
    _, first = np.unique(tree_ids, return_index=True)
    trees = Trees(
        column(node, "nodes_featureids", count)[inner],
        np.array([MODES[modes[at]] for at in inner.tolist()], np.int64),
        thresholds[inner],
        column(node, "nodes_missing_value_tracks_true", count, 0)[inner] != 0,
        if_true,
        if_false,
        number[first],
        int(is_leaf.sum()),
    )
    return trees, places


class PlacesOfLeaves:
    """Places of nodes, by the numbers of their trees and their own."""

    def __init__(self, node: Node, tree_ids: Integers, node_ids: Integers) -> None:
        self._node = node
        self._trees, trees = np.unique(tree_ids, return_inverse=True)
        self._ids, ids = np.unique(node_ids, return_inverse=True)
        codes = trees * len(self._ids) + ids
        self._order = np.argsort(codes, kind="stable")
        self._codes = codes[self._order]
        if (np.diff(self._codes) == 0).any():
            raise node.error("two nodes of a tree have one number")
        self.leaf_numbers: Integers = np.empty(0, np.int64)

    def find(self, tree_ids: Integers, node_ids: Integers) -> Integers:
        """Places of nodes."""
        trees = np.searchsorted(self._trees, tree_ids).clip(max=len(self._trees) - 1)
        ids = np.searchsorted(self._ids, node_ids).clip(max=len(self._ids) - 1)
        at = np.searchsorted(self._codes, trees * len(self._ids) + ids)
        at = at.clip(max=len(self._codes) - 1)
        is_there = (self._trees[trees] == tree_ids) & (self._ids[ids] == node_ids)
        is_there &= self._codes[at] == trees * len(self._ids) + ids
        if not is_there.all():
            missing = int(np.flatnonzero(~is_there)[0])
            raise self._node.error(
                "a node that another one names does not exist",
                actual=f"{node_ids[missing]} of tree {tree_ids[missing]}",
            )
        places: Integers = self._order[at]
        return places

    def find_leaves(self, tree_ids: Integers, node_ids: Integers) -> Integers:
        """Numbers of leaves."""
        leaves = self.leaf_numbers[self.find(tree_ids, node_ids)]
        if (leaves < 0).any():
            raise self._node.error("a node with a weight is not a leaf")
        return leaves


def aggregated(
    node: Node,
    trees: Trees,
    rows: Value,
    weights: tuple[Integers, Integers, Numbers],
    num_targets: int,
    aggregate: str = "SUM",
) -> Value:
    """Sum the trees' answers for each target, (n, targets).

    Parameters
    ----------
    weights : tuple of ndarray
        Leaves, targets and weights, of one length.
    aggregate : {"SUM", "AVERAGE", "MIN", "MAX"}
    """
    leaves, targets, amounts = weights
    if targets.size and not 0 <= targets.min() <= targets.max() < num_targets:
        raise node.error(
            "a leaf's target is out of range",
            expected=f"0 to {num_targets - 1}",
            actual=f"{targets.min()} to {targets.max()}",
        )
    check_table(node, (trees.num_leaves, num_targets))
    float_type = rows.info.data_type
    limits = np.finfo(np.float64 if float_type is DataType.FLOAT64 else np.float32)
    start = {"MIN": limits.max, "MAX": limits.min}.get(aggregate, 0)
    table = np.full((trees.num_leaves, num_targets), start, float_type.dtype)
    write = {"MIN": np.minimum, "MAX": np.maximum}.get(aggregate, np.add)
    write.at(table, (leaves, targets), amounts)
    answers = gathered(node, node.constant(table, float_type), trees.leaves(node, rows))
    kinds = {"MIN": ReduceOperation.MIN, "MAX": ReduceOperation.MAX, "SUM": ReduceOperation.SUM}
    return reduced(node, kinds.get(aggregate, ReduceOperation.MEAN), answers, (1,), False)


def expand_members(
    node: Node, modes: Sequence[int], members: Numbers
) -> Iterator[tuple[int, Numbers]]:
    """Nodes that look for a feature in a set, each with the set; sets end in NaN."""
    ends = np.flatnonzero(np.isnan(members))
    starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
    places = np.flatnonzero(np.array(modes) == MEMBER)
    if len(places) != len(ends):
        raise node.error(
            "there is not one set for each node that looks for a feature in one",
            expected=str(len(places)),
            actual=len(ends),
        )
    for place, start, end in zip(places.tolist(), starts.tolist(), ends.tolist(), strict=True):
        yield place, members[start:end]
