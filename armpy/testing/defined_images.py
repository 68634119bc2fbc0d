"""What images and rows become by their definitions, in real arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from armpy.ops import LayerNormalization, Operation, RmsNormalization
from armpy.testing.defined_functions import Definition, Numbers


def _normalized(operation: Any, inputs: Sequence[Numbers], _: Any) -> Sequence[Numbers]:
    """LayerNormalization and RmsNormalization; Any: either of them."""
    values = inputs[0]
    if isinstance(operation, LayerNormalization):
        values = values - values.mean(operation.axes, keepdims=True)
    power = np.mean(values**2, operation.axes, keepdims=True)
    result = values / np.sqrt(power + operation.eps)
    for combine, other in zip((np.multiply, np.add), inputs[1:], strict=False):
        result = combine(result, other)
    return (result,)


IMAGES: Mapping[type[Operation], Definition] = {
    LayerNormalization: _normalized,
    RmsNormalization: _normalized,
}
"""Definitions for real numbers."""
