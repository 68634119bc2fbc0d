"""Ensembles of decision trees, of the domain ai.onnx.ml."""

from __future__ import annotations

import numpy as np

from armpy.graph import Value
from armpy.ops.elementwise import BinaryOperation
from armpy.ops.trees import TreeComparison
from armpy.types import DataType
from armpy_onnx.blocks import binary, reshaped, taken
from armpy_onnx.classical.scores import (
    Labels,
    best_labels,
    class_labels,
    label_type,
    labels_above,
    transformed,
    with_other_class,
)
from armpy_onnx.classical.trees import (
    MEMBER,
    Integers,
    Numbers,
    Trees,
    aggregated,
    column,
    expand_members,
    read_trees,
    reals,
)
from armpy_onnx.node import Node, Operator, OperatorTable

_AGGREGATES = {name: name for name in ("SUM", "AVERAGE", "MIN", "MAX")}

_POST_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_NUMBERED_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


def _rows(node: Node) -> Value:
    """Rows of features, float32 or float64."""
    value = node.value(0)
    if node.type(0) is not DataType.FLOAT64:
        value = node.cast(value, DataType.FLOAT32)
    return reshaped(node, value, _rows_shape(node))


def _rows_shape(node: Node) -> tuple[int, int]:
    """Number of rows, and of features."""
    shape = node.shape(0)
    if len(shape) not in (1, 2):
        raise node.error("the input is not a matrix", expected="rank 2", actual=shape)
    return (1, *shape)[-2], shape[-1]


def _weights(node: Node, kind: str) -> tuple[Trees, tuple[Integers, Integers, Numbers]]:
    """An ensemble, and its leaves' weights: leaves, targets, amounts."""
    trees, places = read_trees(node)
    trees.check(node, _rows_shape(node)[1])
    targets = np.array(node.integers(f"{kind}_ids"), np.int64)
    amounts = reals(node, f"{kind}_weights")
    if len(amounts) != len(targets):
        raise node.error("there is not one weight for each target", expected=str(len(targets)))
    leaves = places.find_leaves(
        column(node, f"{kind}_treeids", len(targets)),
        column(node, f"{kind}_nodeids", len(targets)),
    )
    return trees, (leaves, targets, amounts)


def _regressor(node: Node) -> Value:
    trees, weights = _weights(node, "target")
    count = node.integer("n_targets")
    aggregate = node.choice("aggregate_function", "SUM", _AGGREGATES)
    scores = aggregated(node, trees, _rows(node), weights, count, aggregate)
    scores = _with_base(node, node.cast(scores, DataType.FLOAT32), count)
    return transformed(node, scores)


def _with_base(node: Node, scores: Value, count: int) -> Value:
    """Scores with the attribute ``base_values`` added."""
    base = reals(node, "base_values")
    if not base.size:
        return scores
    if len(base) != count:
        raise node.error("there is not one base value for each target", expected=str(count))
    return binary(node, BinaryOperation.ADD, scores, base)


def _classifier(node: Node) -> tuple[Value, Value]:
    labels = class_labels(node, "classlabels_int64s", "classlabels_strings")
    trees, (leaves, targets, amounts) = _weights(node, "class")
    rows, ids = _rows(node), set(targets.tolist())
    if len(labels) == 2 and ids == {0}:
        weights = leaves, np.zeros_like(targets), amounts
        return _two_classes(node, aggregated(node, trees, rows, weights, 1), labels, amounts)
    scores = aggregated(node, trees, rows, (leaves, targets, amounts), len(labels))
    scores = _with_base(node, node.cast(scores, DataType.FLOAT32), len(labels))
    if len(labels) == 2 and ids == {1}:
        label = labels_above(node, taken(node, scores, 1, 1, 2), _limit(amounts), labels)
    else:
        label = best_labels(node, scores, labels)
    return label, transformed(node, scores)


def _limit(amounts: Numbers) -> float:
    """Return the limit of the score of the only class with weights; see `_two_classes`."""
    return 0.5 if (amounts >= 0).all() else 0.0


def _two_classes(
    node: Node, scores: Value, labels: Labels, amounts: Numbers
) -> tuple[Value, Value]:
    """Labels and scores of two classes: trees give the first class's score for the second.

    Notes
    -----
    ONNX does not say it; this is what ONNX Runtime does. Weights without a sign are shares, which
    are compared with 0.5.
    """
    scores = node.cast(scores, DataType.FLOAT32)
    base = reals(node, "base_values")
    if base.size > 1:
        raise node.error("which base value counts is not known", expected="one", actual=base.size)
    if base.size:
        scores = binary(node, BinaryOperation.ADD, scores, float(base[0]))
    limit = _limit(amounts)
    label = labels_above(node, scores, limit, labels)
    return label, with_other_class(node, scores, is_share=limit > 0)


def _ensemble(node: Node) -> Value:
    """TreeEnsemble, whose leaves are not among the nodes."""
    features = np.array(node.integers("nodes_featureids"), np.int64)
    count = len(features)
    modes = node.tensor("nodes_modes")[0].reshape(-1).astype(np.int64)
    splits = node.tensor("nodes_splits")[0].reshape(-1)
    if len(modes) != count or len(splits) != count:
        raise node.error("there is not one mode and one split for each node", expected=str(count))
    if count and modes.max() > MEMBER:
        raise node.error("a node's mode is unknown", expected=f"0 to {MEMBER}", actual=modes.max())
    ways = []
    for way in ("true", "false"):
        ids = column(node, f"nodes_{way}nodeids", count)
        is_leaf = column(node, f"nodes_{way}leafs", count) != 0
        ways.append(np.where(is_leaf, -1 - ids, ids))
        if ids.size and ids.min() < 0:
            raise node.error("a node's number is negative", actual=ids.min())
    roots = np.array(node.integers("tree_roots"), np.int64)
    if roots.size and not 0 <= roots.min() <= roots.max() < count:
        raise node.error(
            "a root is not one of the nodes", expected=f"0 to {count - 1}", actual=roots
        )
    targets = np.array(node.integers("leaf_targetids"), np.int64)
    amounts = node.tensor("leaf_weights")[0].reshape(-1)
    if len(amounts) != len(targets):
        raise node.error("there is not one weight for each leaf", expected=str(len(targets)))
    # A tree that is one leaf is written as a node that leads to it both ways.
    is_lone = (ways[0] == ways[1]) & (ways[0] < 0)
    trees = Trees(
        features,
        modes,
        splits,
        column(node, "nodes_missing_value_tracks_true", count, 0) != 0,
        ways[0],
        ways[1],
        np.where(is_lone[roots], ways[0][roots], roots) if count else roots,
        len(targets),
    )
    trees.check(node, _rows_shape(node)[1])
    if (modes == MEMBER).any():
        trees = _without_sets(node, trees)
    weights = np.arange(len(targets)), targets, amounts
    aggregate = _word(node, "aggregate_function", 1, _NUMBERED_AGGREGATES)
    scores = aggregated(node, trees, _rows(node), weights, node.integer("n_targets"), aggregate)
    scores = transformed(node, scores, _word(node, "post_transform", 0, _POST_TRANSFORMS))
    return node.cast(scores, node.type(0))


def _word(node: Node, name: str, default: int, words: tuple[str, ...]) -> str:
    """The word that an attribute has the number of."""
    number = node.integer(name, default)
    if not 0 <= number < len(words):
        raise node.error(
            f"the attribute '{name}' has an unknown value",
            expected=f"0 to {len(words) - 1}",
            actual=number,
        )
    return words[number]


def _without_sets(node: Node, trees: Trees) -> Trees:
    """The same trees, with a chain of comparisons for each node that looks into a set."""
    members = node.tensor("membership_values")[0].reshape(-1)
    fields = (trees.features, trees.thresholds, trees.missing, trees.if_true, trees.if_false)
    features, thresholds, missing, if_true, if_false = (field.tolist() for field in fields)
    comparisons = trees.comparisons.tolist()
    for place, members_found in expand_members(node, comparisons, members):
        values = members_found.tolist() or [np.nan]  # which equals nothing
        otherwise, at = if_false[place], place
        comparisons[place], thresholds[place] = TreeComparison.EQUAL, values[0]
        for value in values[1:]:
            if_false[at] = len(features)
            at = len(features)
            features.append(features[place])
            comparisons.append(TreeComparison.EQUAL)
            thresholds.append(value)
            missing.append(missing[place])
            if_true.append(if_true[place])
            if_false.append(otherwise)
    return Trees(
        np.array(features, np.int64),
        np.array(comparisons, np.int64),
        np.array(thresholds, trees.thresholds.dtype),
        np.array(missing, np.bool_),
        np.array(if_true, np.int64),
        np.array(if_false, np.int64),
        trees.roots,
        trees.num_leaves,
    )


OPERATORS: OperatorTable = {
    "ai.onnx.ml.TreeEnsemble": Operator(_ensemble),
    "ai.onnx.ml.TreeEnsembleRegressor": Operator(_regressor, types=(DataType.FLOAT32,)),
    "ai.onnx.ml.TreeEnsembleClassifier": Operator(
        _classifier, types=(label_type("classlabels_int64s"), DataType.FLOAT32)
    ),
}
