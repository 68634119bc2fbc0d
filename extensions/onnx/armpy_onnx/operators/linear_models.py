"""Linear models, of the domain ai.onnx.ml."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from armpy.graph import Value
from armpy.ops.elementwise import BinaryOperation
from armpy.types import DataType
from armpy_onnx.blocks import binary, reshaped
from armpy_onnx.classical.scores import (
    best_labels,
    class_labels,
    label_type,
    labels_above,
    transformed,
    with_other_class,
)
from armpy_onnx.node import Node, Operator, OperatorTable
from armpy_onnx.operators.matrices import matrix_product


def rows_of_features(node: Node) -> Value:
    """Rows of features, float32."""
    value = node.cast(node.value(0), DataType.FLOAT32)
    shape = node.shape(0)
    if len(shape) not in (1, 2):
        raise node.error("the input is not a matrix", expected="rank 2", actual=shape)
    return reshaped(node, value, shape if len(shape) == 2 else (1, *shape))


def attribute_numbers(node: Node, name: str) -> npt.NDArray[np.float32]:
    """An attribute that is several numbers; empty if left out."""
    return np.array(node.attribute(name, ()), np.float32)


def constant_matrix(node: Node, name: str, num_rows: int, num_columns: int) -> Value:
    """A matrix of float32 from an attribute, row by row."""
    numbers = attribute_numbers(node, name)
    if numbers.size != num_rows * num_columns:
        raise node.error(
            f"the attribute '{name}' has the wrong length",
            expected=f"{num_rows} x {num_columns}",
            actual=numbers.size,
        )
    return node.constant(numbers.reshape(num_rows, num_columns), DataType.FLOAT32)


def _scores(node: Node, rows: Value, num_scores: int) -> Value:
    """Products of rows and coefficients, with intercepts."""
    weights = constant_matrix(node, "coefficients", num_scores, rows.info.known_shape[1])
    scores = matrix_product(node, rows, weights, transpose_y=True)
    if node.attribute("intercepts"):
        scores = binary(
            node, BinaryOperation.ADD, scores, constant_matrix(node, "intercepts", 1, num_scores)
        )
    return scores


def _linear_regressor(node: Node) -> Value:
    scores = _scores(node, rows_of_features(node), node.integer("targets", 1))
    return transformed(node, scores)


def _linear_classifier(node: Node) -> tuple[Value, Value]:
    labels = class_labels(node, "classlabels_ints", "classlabels_strings")
    rows = rows_of_features(node)
    features = rows.info.known_shape[1]
    count = attribute_numbers(node, "coefficients").size // max(features, 1)
    scores = _scores(node, rows, count)
    if count > 1 or len(labels) != 2:
        if count != len(labels):
            raise node.error("there is not one label for each score", expected=str(count))
        return best_labels(node, scores, labels), transformed(node, scores)
    label = labels_above(node, scores, 0.0, labels)
    return label, with_other_class(node, scores, is_share=True)


_CLASSES = (label_type("classlabels_ints"), DataType.FLOAT32)

OPERATORS: OperatorTable = {
    "ai.onnx.ml.LinearRegressor": Operator(_linear_regressor, types=(DataType.FLOAT32,)),
    "ai.onnx.ml.LinearClassifier": Operator(_linear_classifier, types=_CLASSES),
}
