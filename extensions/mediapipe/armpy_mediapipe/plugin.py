"""The plugin through which `armpy` finds the operators."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from armpy.plugins.hooks import CustomOperator, hookimpl


@hookimpl
def armpy_register_custom_operators() -> list[CustomOperator]:
    """The operators by their names in files."""
    return [
        CustomOperator(name, partial(_convert, module, function))
        for name, module, function in (
            ("Convolution2DTransposeBias", "images", "transposed_convolution"),
            ("Landmarks2TransformMatrix", "landmarks", "crop_matrix"),
            ("MaxPoolingWithArgmax2D", "images", "pooling_with_positions"),
            ("MaxUnpooling2D", "images", "unpooling"),
            ("TransformLandmarks", "landmarks", "transformed"),
            ("TransformTensorBilinear", "images", "bilinear_transform"),
        )
    ]


def _convert(module: str, function: str, parts: object) -> Any:  # Any: the function's result
    """Call a function of this package; its module is imported when a file has the operator."""
    return getattr(import_module(f"armpy_mediapipe.{module}"), function)(parts)
