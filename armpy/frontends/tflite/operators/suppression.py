"""Operators that leave out boxes that overlap better ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

from armpy.frontends.tflite.composed import ComposedOperator, composed
from armpy.frontends.tflite.node import BoundOperator, ConverterTable
from armpy.graph import Value
from armpy.ops.operation import require
from armpy.ops.suppression import SoftNonMaxSuppression


def _number(parts: ComposedOperator, index: int) -> float:
    """An input that is one number, which may be infinite."""
    numbers = parts.array(index).reshape(-1).tolist()
    is_one = len(numbers) == 1 and not math.isnan(numbers[0])
    require(is_one, f"input {index} is not one number", actual=numbers[:4])
    return float(numbers[0])


def _chosen(parts: ComposedOperator, sigma: float) -> Sequence[Value]:
    """Indices, scores and number of the boxes that stay."""
    operation = SoftNonMaxSuppression(parts.count(2), _number(parts, 3), _number(parts, 4), sigma)
    return parts.layers(operation, (parts.value(0), parts.value(1)))


def _hard(node: BoundOperator) -> Sequence[Value]:
    def expand(parts: ComposedOperator) -> Sequence[Value]:
        indices, _, count = _chosen(parts, 0.0)
        return indices, count

    node.expect_outputs(2)
    return composed(node, expand, decides=(2, 3, 4))


def _soft(node: BoundOperator) -> Sequence[Value]:
    def expand(parts: ComposedOperator) -> Sequence[Value]:
        return _chosen(parts, _number(parts, 5))

    node.expect_outputs(3)
    return composed(node, expand, decides=(2, 3, 4, 5))


CONVERTERS: ConverterTable = {
    "NON_MAX_SUPPRESSION_V4": _hard,
    "NON_MAX_SUPPRESSION_V5": _soft,
}
