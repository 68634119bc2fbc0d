"""Shapes and quantisation in words, as people know them."""

from __future__ import annotations

from collections.abc import Sequence


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
