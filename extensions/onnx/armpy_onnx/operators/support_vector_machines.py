"""Support vector machines, of the domain ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, combinations

import numpy as np
import numpy.typing as npt

from armpy.graph import Value
from armpy.ops.activation_layers import Activation, ActivationFunction
from armpy.ops.elementwise import (
    BinaryOperation,
    ComparisonOperation,
    UnaryOperation,
)
from armpy.ops.reduction import ArgMinMax, ArgMinMaxFunction, ReduceOperation
from armpy.types import DataType
from armpy_onnx.blocks import (
    binary,
    check_table,
    compared,
    filled,
    joined,
    reduced,
    reshaped,
    selected,
    unary,
)
from armpy_onnx.classical.coupling import coupled_probabilities
from armpy_onnx.classical.scores import (
    Labels,
    best_labels,
    class_labels,
    label_type,
    labels_above,
    looked_up,
    transformed,
    with_other_class,
)
from armpy_onnx.node import Node, Operator, OperatorTable
from armpy_onnx.operators.linear_models import (
    attribute_numbers,
    constant_matrix,
    rows_of_features,
)
from armpy_onnx.operators.matrices import matrix_product

_KERNELS = {name: name for name in ("LINEAR", "POLY", "RBF", "SIGMOID")}


def _numbers(node: Node, name: str, least: int) -> npt.NDArray[np.float32]:
    """An attribute of at least so many numbers; further ones do not count."""
    numbers = attribute_numbers(node, name)
    if numbers.size < least:
        raise node.error(
            f"the attribute '{name}' has the wrong length",
            expected=f"{least} or more",
            actual=numbers.size,
        )
    return numbers[:least]


def _kernel(node: Node, rows: Value, vectors: Value) -> Value:
    """The kernel of each row with each vector, (n, v)."""
    kind = node.choice("kernel_type", "LINEAR", _KERNELS)
    gamma = coefficient = degree = 0.0
    if node.attribute("kernel_params"):
        gamma, coefficient, degree = _numbers(node, "kernel_params", 3).tolist()
    if kind == "RBF":
        scaled = binary(node, BinaryOperation.MUL, _distances(node, rows, vectors), -gamma)
        return unary(node, UnaryOperation.EXP, scaled)
    products = matrix_product(node, rows, vectors, transpose_y=True)
    if kind == "LINEAR":
        return products
    scaled = binary(node, BinaryOperation.MUL, products, gamma)
    moved = binary(node, BinaryOperation.ADD, scaled, coefficient)
    if kind == "POLY":
        return binary(node, BinaryOperation.POWER, moved, degree)
    return node.layer(Activation(ActivationFunction.TANH, 1.0, 1.0), moved)


def _distances(node: Node, rows: Value, vectors: Value) -> Value:
    """The squared distance of each row from each vector, (n, v).

    Notes
    -----
    Close points have a small difference of large products, hence float64.
    """
    pair = [node.cast(value, DataType.FLOAT64) for value in (rows, vectors)]
    lengths = [
        reduced(node, ReduceOperation.SUM, unary(node, UnaryOperation.SQUARE, operand), (1,), True)
        for operand in pair
    ]
    of_vectors = reshaped(node, lengths[1], (1, vectors.info.known_shape[0]))
    both = binary(node, BinaryOperation.ADD, lengths[0], of_vectors)
    products = matrix_product(node, pair[0], pair[1], transpose_y=True)
    twice = binary(node, BinaryOperation.MUL, products, 2)
    return node.cast(binary(node, BinaryOperation.SUB, both, twice), DataType.FLOAT32)


def _regressor(node: Node) -> Value:
    rows = rows_of_features(node)
    features = rows.info.known_shape[1]
    count = node.integer("n_supports", 0)
    if count > 0:
        kernel = _kernel(node, rows, constant_matrix(node, "support_vectors", count, features))
        weights = _numbers(node, "coefficients", count).reshape(1, -1)
        scores = _scores(node, kernel, weights, _numbers(node, "rho", 1))
    else:
        slopes = constant_matrix(node, "coefficients", 1, features)
        products = matrix_product(node, rows, slopes, transpose_y=True)
        scores = binary(node, BinaryOperation.ADD, products, float(_numbers(node, "rho", 1)[0]))
    if node.flag("one_class"):
        above = labels_above(node, scores, 0.0, (-1, 1))
        return reshaped(node, node.cast(above, DataType.FLOAT32), scores.info.known_shape)
    return transformed(node, scores)


def _classifier(node: Node) -> tuple[Value, Value]:
    labels = class_labels(node, "classlabels_ints", "classlabels_strings")
    sizes = node.integers("vectors_per_class", ())
    if min(sizes, default=0) < 0:
        raise node.error("the attribute 'vectors_per_class' has a negative size", actual=sizes)
    rows = rows_of_features(node)
    if not sum(sizes):
        return _linear_classifier(node, rows, labels)
    if len(sizes) != len(labels) or len(labels) < 2:
        raise node.error(
            "the attribute 'vectors_per_class' has the wrong length",
            expected=f"one size for each of 2 or more labels, of which there are {len(labels)}",
            actual=len(sizes),
        )
    features, count = rows.info.known_shape[1], sum(sizes)
    vectors = constant_matrix(node, "support_vectors", count, features)
    scores = _pair_scores(node, _kernel(node, rows, vectors), sizes)
    best = best_labels(node, _votes(node, scores, len(labels)), labels)
    if node.attribute("prob_a") or node.attribute("prob_b"):
        shares = _pair_shares(node, scores)
        return best, transformed(node, coupled_probabilities(node, shares, len(labels)))
    return best, transformed(node, scores) if len(labels) > 2 else _both_scores(node, scores)


def _linear_classifier(node: Node, rows: Value, labels: Labels) -> tuple[Value, Value]:
    """Labels and scores of a machine whose coefficients are those of features.

    Notes
    -----
    ONNX does not say it; as ONNX Runtime does, all classes have the first rho, one of two classes
    is the second one wherever a score is positive, and one class alone has no transformations but
    PROBIT.
    """
    weights = constant_matrix(node, "coefficients", len(labels), rows.info.known_shape[1])
    products = matrix_product(node, rows, weights, transpose_y=True)
    scores = binary(node, BinaryOperation.ADD, products, float(_numbers(node, "rho", 1)[0]))
    if len(labels) == 1:
        is_probit = node.text("post_transform", "NONE") == "PROBIT"
        changed = transformed(node, scores) if is_probit else scores
        return best_labels(node, scores, labels), changed
    if len(labels) > 2 or node.attribute("prob_a"):
        return best_labels(node, scores, labels), transformed(node, scores)
    limit, comparison = 0.0, ComparisonOperation.GREATER
    if (attribute_numbers(node, "coefficients") >= 0).all():
        limit, comparison = 0.5, ComparisonOperation.GREATER_OR_EQUAL
    greatest = reduced(node, ReduceOperation.MAX, scores, (1,), False)
    is_second = compared(node, comparison, greatest, limit)
    best = node.layer(ArgMinMax(ArgMinMaxFunction.MAX, 1, DataType.SIGNED64), scores)
    numbers = selected(node, is_second, 1, best)
    return looked_up(node, numbers, labels), transformed(node, scores)


def _pair_scores(node: Node, kernel: Value, sizes: Sequence[int]) -> Value:
    """The score of each pair of classes, (n, pairs).

    Notes
    -----
    A support vector has a coefficient for each class but its own: of the pair (i, j), row j - 1
    has those of the vectors of i, and row i those of j.
    """
    count, num_classes = sum(sizes), len(sizes)
    check_table(node, (num_classes * (num_classes - 1) // 2, count))
    pairs = list(combinations(range(num_classes), 2))
    coefficients = _numbers(node, "coefficients", (num_classes - 1) * count).reshape(-1, count)
    own = [slice(end - size, end) for size, end in zip(sizes, accumulate(sizes), strict=True)]
    weights = np.zeros((len(pairs), count), np.float32)
    for number, (i, j) in enumerate(pairs):
        weights[number, own[i]] = coefficients[j - 1, own[i]]
        weights[number, own[j]] = coefficients[i, own[j]]
    return _scores(node, kernel, weights, _numbers(node, "rho", len(pairs)))


def _scores(
    node: Node, kernel: Value, weights: npt.NDArray[np.float32], offsets: npt.NDArray[np.float32]
) -> Value:
    """Weighted sums of the kernel of each row and offsets, (n, scores).

    Notes
    -----
    Coefficients of both signs nearly cancel each other near the boundary of classes, hence float64.
    """
    products = matrix_product(
        node,
        node.cast(kernel, DataType.FLOAT64),
        node.constant(weights.astype(np.float64), DataType.FLOAT64),
        transpose_y=True,
    )
    moved = node.like(products, offsets.astype(np.float64).reshape(1, -1))
    scores = binary(node, BinaryOperation.ADD, products, moved)
    return node.cast(scores, DataType.FLOAT32)


def _row(node: Node, name: str, count: int) -> Value:
    """An attribute of one number for each pair of classes, (1, pairs)."""
    return node.constant(_numbers(node, name, count).reshape(1, count), DataType.FLOAT32)


def _votes(node: Node, scores: Value, num_classes: int) -> Value:
    """The number of pairs that each class wins, (n, classes).

    Notes
    -----
    Class j is the second one of j pairs: it starts with these and loses those that the first wins.
    """
    signs = np.zeros((scores.info.known_shape[1], num_classes), np.float32)
    for number, (i, j) in enumerate(combinations(range(num_classes), 2)):
        signs[number, i], signs[number, j] = 1, -1
    is_first = compared(node, ComparisonOperation.GREATER, scores, 0)
    wins = node.cast(is_first, DataType.FLOAT32)
    gained = matrix_product(node, wins, node.constant(signs, DataType.FLOAT32))
    seconds = np.arange(num_classes, dtype=np.float32).reshape(1, -1)
    return binary(node, BinaryOperation.ADD, gained, node.constant(seconds, DataType.FLOAT32))


def _pair_shares(node: Node, scores: Value) -> Value:
    """The probability that the first class of each pair is right rather than the second one."""
    count = scores.info.known_shape[1]
    scaled = binary(node, BinaryOperation.MUL, scores, _row(node, "prob_a", count))
    moved = binary(node, BinaryOperation.ADD, scaled, _row(node, "prob_b", count))
    other = node.layer(Activation(ActivationFunction.SIGMOID), moved)
    return binary(node, BinaryOperation.SUB, 1, other)


def _both_scores(node: Node, scores: Value) -> Value:
    """Scores of two classes from that of the pair, (n, 2).

    Notes
    -----
    ONNX does not say it; as ONNX Runtime does, they are shares for SOFTMAX and SOFTMAX_ZERO. PROBIT
    gives one number, beside which ONNX Runtime leaves memory as it was; here it is 0.
    """
    word = node.text("post_transform", "NONE")
    if word != "PROBIT":
        return with_other_class(node, scores, is_share=word != "NONE")
    zeros = filled(node, scores, scores.info.known_shape, 0)
    return joined(node, (transformed(node, scores), zeros), 1)


OPERATORS: OperatorTable = {
    "ai.onnx.ml.SVMRegressor": Operator(_regressor, types=(DataType.FLOAT32,)),
    "ai.onnx.ml.SVMClassifier": Operator(
        _classifier, types=(label_type("classlabels_ints"), DataType.FLOAT32)
    ),
}
