"""Linear models and support vector machines, of the domain ai.onnx.ml."""

from __future__ import annotations

import numpy as np

from armpy.graph import Value
from armpy.ops.activation_layers import Activation, ActivationFunction
from armpy.ops.elementwise import BinaryOperation, UnaryOperation
from armpy.ops.reduction import ReduceOperation
from armpy.types import DataType
from armpy_onnx.blocks import binary, reduced, reshaped, unary
from armpy_onnx.node import Node, Operator, OperatorTable
from armpy_onnx.operators.matrices import matrix_product
from armpy_onnx.scores import (
    best_labels,
    class_labels,
    label_type,
    labels_above,
    transformed,
    with_other_class,
)


def _rows(node: Node) -> Value:
    """Rows of features, float32."""
    value = node.cast(node.value(0), DataType.FLOAT32)
    shape = node.shape(0)
    if len(shape) not in (1, 2):
        raise node.error("the input is no matrix", expected="rank 2", actual=shape)
    return reshaped(node, value, shape if len(shape) == 2 else (1, *shape))


def _matrix(node: Node, name: str, num_rows: int, num_columns: int) -> Value:
    numbers = np.array(node.attribute(name, ()), np.float32)
    if numbers.size != num_rows * num_columns:
        raise node.error(
            f"the attribute '{name}' has the wrong length",
            expected=f"{num_rows} x {num_columns}",
            actual=numbers.size,
        )
    return node.constant(numbers.reshape(num_rows, num_columns), DataType.FLOAT32)


def _scores(node: Node, rows: Value, num_scores: int) -> Value:
    """Products of rows and coefficients, with intercepts."""
    weights = _matrix(node, "coefficients", num_scores, rows.info.known_shape[1])
    scores = matrix_product(node, rows, weights, transpose_y=True)
    if node.attribute("intercepts"):
        scores = binary(
            node, BinaryOperation.ADD, scores, _matrix(node, "intercepts", 1, num_scores)
        )
    return scores


def _linear_regressor(node: Node) -> Value:
    scores = _scores(node, _rows(node), node.integer("targets", 1))
    return transformed(node, scores)


def _linear_classifier(node: Node) -> tuple[Value, Value]:
    labels = class_labels(node, "classlabels_ints", "classlabels_strings")
    rows = _rows(node)
    features = rows.info.known_shape[1]
    count = len(node.attribute("coefficients", ())) // max(features, 1)
    scores = _scores(node, rows, count)
    if count > 1 or len(labels) != 2:
        if count != len(labels):
            raise node.error("there is not one label for each score", expected=str(count))
        return best_labels(node, scores, labels), transformed(node, scores)
    label = labels_above(node, scores, 0.0, labels)
    return label, with_other_class(node, scores, is_share=True)


def _kernel(node: Node, rows: Value, vectors: Value) -> Value:
    """The kernel of each row with each vector, (n, v)."""
    kinds = ("LINEAR", "POLY", "RBF", "SIGMOID")
    kind = node.choice("kernel_type", "LINEAR", {name: name for name in kinds})
    gamma, coefficient, degree = (*node.attribute("kernel_params", ()), 0.0, 0.0, 0.0)[:3]
    products = matrix_product(node, rows, vectors, transpose_y=True)
    if kind == "LINEAR":
        return products
    if kind == "RBF":
        lengths = (
            reduced(node, ReduceOperation.SUM, unary(node, UnaryOperation.SQUARE, x), (1,), True)
            for x in (rows, vectors)
        )
        of_rows, of_vectors = lengths
        of_vectors = reshaped(node, of_vectors, (1, vectors.info.known_shape[0]))
        both = binary(node, BinaryOperation.ADD, of_rows, of_vectors)
        twice = binary(node, BinaryOperation.MUL, products, 2)
        distances = binary(node, BinaryOperation.SUB, both, twice)
        scaled = binary(node, BinaryOperation.MUL, distances, -gamma)
        return unary(node, UnaryOperation.EXP, scaled)
    scaled = binary(node, BinaryOperation.MUL, products, gamma)
    moved = binary(node, BinaryOperation.ADD, scaled, coefficient)
    if kind == "POLY":
        return binary(node, BinaryOperation.POWER, moved, degree)
    return node.layer(Activation(ActivationFunction.TANH, 1.0, 1.0), moved)


def _svm_regressor(node: Node) -> Value:
    rows = _rows(node)
    features = rows.info.known_shape[1]
    count = node.integer("n_supports", 0)
    rho = np.array(node.attribute("rho", ()), np.float32)
    if rho.size != 1:
        raise node.error("the attribute 'rho' is not one number", actual=rho.size)
    if count > 0:
        kernel = _kernel(node, rows, _matrix(node, "support_vectors", count, features))
        weights = _matrix(node, "coefficients", 1, count)
        scores = matrix_product(node, kernel, weights, transpose_y=True)
    else:
        scores = _kernel(node, rows, _matrix(node, "coefficients", 1, features))
    scores = binary(node, BinaryOperation.ADD, scores, float(rho[0]))
    if node.flag("one_class"):
        above = labels_above(node, scores, 0.0, (-1, 1))
        return reshaped(node, node.cast(above, DataType.FLOAT32), scores.info.known_shape)
    return transformed(node, scores)


_CLASSES = (label_type("classlabels_ints"), DataType.FLOAT32)

OPERATORS: OperatorTable = {
    "ai.onnx.ml.LinearRegressor": Operator(_linear_regressor, types=(DataType.FLOAT32,)),
    "ai.onnx.ml.LinearClassifier": Operator(_linear_classifier, types=_CLASSES),
    "ai.onnx.ml.SVMRegressor": Operator(_svm_regressor, types=(DataType.FLOAT32,)),
}
