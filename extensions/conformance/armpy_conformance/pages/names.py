"""Names of types, shapes and quantisation, as people know them."""

from __future__ import annotations

import re
from collections.abc import Sequence

_QUANTIZED = re.compile(r"Q[A-Z]*SYMM_([US])(\d+)")
_INTEGER = re.compile(r"(UN)?SIGNED(\d+)")
_SHORT = {"BOOLEAN": "bool", "FLOAT": "float32", "DOUBLE": "float64"}


def type_name(name: str) -> str:
    """The common name of a data type, such as ``uint8``.

    Parameters
    ----------
    name : str
        Of a `armpy.DataType`, or of a type in a model file.
    """
    if match := _QUANTIZED.fullmatch(name):
        return f"{'u' if match[1] == 'U' else ''}int{match[2]}"
    if match := _INTEGER.fullmatch(name):
        return f"{'u' if match[1] else ''}int{match[2]}"
    return _SHORT.get(name, name.lower())


def shape_text(shape: Sequence[int | None] | None) -> str:
    """A shape as ``1×224×224×3``; ``?`` is a dimension that the model leaves open."""
    if shape is None:
        return "any shape"
    return "×".join("?" if dim is None else str(dim) for dim in shape) or "scalar"


def quantization_text(
    scales: Sequence[float], zero_points: Sequence[int], axis: int | None = None
) -> str:
    """Scale and zero point of a quantised tensor; empty for one that is not quantised."""
    if not scales:
        return ""
    if len(scales) > 1:
        return f"{len(scales)} scales along axis {axis}"
    return f"scale {scales[0]:.5g}, zero point {zero_points[0] if zero_points else 0}"
