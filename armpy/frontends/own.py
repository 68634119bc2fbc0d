"""armpy's own front-ends, registered through the hook that plugins use."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from armpy.backend.options import BackendOption, OptionScope
from armpy.graph.network import Network
from armpy.plugins.hooks import (
    CustomOperator,
    FrontEnd,
    Magic,
    ModelFile,
    ModelSignature,
    OperatorParts,
    ParseSettings,
    hookimpl,
)

if TYPE_CHECKING:
    from armpy.graph import Value
    from armpy.plugins.hooks.custom_operator import CustomConverter
    from armpy.plugins.hooks.metadata import ModelMetadata
    from armpy.plugins.hooks.outline import FileOutline

# A parser is imported when there is a file for it.
# ruff: noqa: PLC0415


@hookimpl
def armpy_register_front_end() -> list[FrontEnd]:
    """TensorFlow Lite."""
    return [_tflite()]


@hookimpl
def armpy_register_custom_operators() -> list[CustomOperator]:
    """MediaPipe's operators of .tflite files."""
    return [
        CustomOperator(name, partial(_convert_mediapipe, module, function))
        for name, module, function in (
            ("Convolution2DTransposeBias", "images", "transposed_convolution"),
            ("Landmarks2TransformMatrix", "landmarks", "crop_matrix"),
            ("MaxPoolingWithArgmax2D", "images", "pooling_with_positions"),
            ("MaxUnpooling2D", "images", "unpooling"),
            ("TransformLandmarks", "landmarks", "transformed"),
            ("TransformTensorBilinear", "images", "bilinear_transform"),
        )
    ]


def _convert_mediapipe(module: str, function: str, parts: OperatorParts) -> Value | Sequence[Value]:
    """Convert an operator by a function of the package `armpy.frontends.mediapipe`."""
    converters = import_module(f"armpy.frontends.mediapipe.{module}")
    convert: CustomConverter = getattr(converters, function)
    return convert(parts)


def _tflite() -> FrontEnd:
    """TensorFlow Lite."""
    return FrontEnd(
        "tflite",
        "TensorFlow Lite",
        _parse_tflite,
        suffixes=(".tflite",),
        magic=(Magic(b"TFL3", offset=4),),
        signatures=_tflite_signatures,
        options=_tflite_options(),
        metadata=_tflite_metadata,
        outline=_tflite_outline,
    )


def _parse_tflite(file: ModelFile, settings: ParseSettings) -> Network:
    """The network of a .tflite file."""
    from armpy.frontends.tflite.parser import parse_file

    stands_in = settings.options.get("stand_in_for_unsupported") is True
    return parse_file(
        file,
        settings.signature,
        settings.memory_limit_bytes,
        stands_in,
        settings.custom_operators,
    )


def _tflite_options() -> tuple[BackendOption, ...]:
    """What can be said of how .tflite files are parsed."""
    return (
        BackendOption(
            "stand_in_for_unsupported",
            False,
            "Make StandIn layers of operators that armpy does not have, for a vendor's backend.",
            OptionScope.RUNTIME,
        ),
    )


def _tflite_signatures(file: ModelFile) -> list[ModelSignature]:
    """The signatures of a .tflite file."""
    from armpy.frontends.tflite.parser import file_signatures

    return [
        ModelSignature(found.name, tuple(found.inputs), tuple(found.outputs), found.is_main)
        for found in file_signatures(file).values()
    ]


def _tflite_metadata(file: ModelFile, signature: str | None) -> ModelMetadata:
    """What a .tflite file says of itself."""
    from armpy.frontends.tflite.metadata import read_metadata

    return read_metadata(file, signature)


def _tflite_outline(file: ModelFile, signature: str | None) -> FileOutline:
    """What a .tflite file is made of."""
    from armpy.frontends.tflite.outline import read_outline

    return read_outline(file, signature)
