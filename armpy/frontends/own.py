"""armpy's own front-ends, registered through the hook that plugins use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """TensorFlow Lite, and ONNX."""
    return [_tflite(), _onnx()]


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


def _onnx() -> FrontEnd:
    """ONNX, whose package reads the files."""
    return FrontEnd(
        "onnx",
        "ONNX",
        _parse_onnx,
        suffixes=(".onnx",),
        recognizes=_is_onnx,
        describe=_describe_onnx,
        options=_onnx_options(),
        metadata=_onnx_metadata,
        outline=_onnx_outline,
        requires=("onnx",),
        install='pip install "armpy[onnx]"',
    )


def _onnx_options() -> tuple[BackendOption, ...]:
    """What can be said of how .onnx files are parsed."""
    return (
        BackendOption(
            "dimensions",
            "",
            'Sizes of dimensions that have names, as JSON: {"batch": 1}.',
            OptionScope.RUNTIME,
        ),
        BackendOption(
            "structures",
            "",
            "What inputs that are no tensors hold, as JSON: the length of a sequence; null for an "
            "empty optional, true for one that holds a tensor.",
            OptionScope.RUNTIME,
        ),
        BackendOption(
            "fold_quantization",
            True,
            "Compute with integers between DequantizeLinear and QuantizeLinear.",
            OptionScope.RUNTIME,
        ),
    )


def _is_onnx(data: memoryview) -> bool:
    """Whether bytes begin as an ONNX model's do: a version, then another of its fields."""
    return len(data) > 2 and data[0] == _ONNX_VERSION and data[1] < 0x80 and data[2] in _ONNX_FIELDS


_ONNX_VERSION = 1 << 3
_ONNX_FIELDS = bytes(number << 3 | 2 for number in (2, 3, 4, 6, 7, 8, 14)) + bytes([5 << 3])
"""First bytes of protocol buffers' fields: producer, domain, text, graph, operator sets."""


def _parse_onnx(file: ModelFile, settings: ParseSettings) -> Network:
    """The network of an .onnx file."""
    from armpy.frontends.onnx.parser import parse_file

    return parse_file(file, settings)


def _describe_onnx(file: ModelFile) -> Mapping[str, str]:
    """Facts of an .onnx file."""
    from armpy.frontends.onnx.reading import describe

    return describe(file)


def _onnx_metadata(file: ModelFile, signature: str | None) -> ModelMetadata:
    """What an .onnx file says of itself."""
    from armpy.frontends.onnx.metadata import read_metadata

    return read_metadata(file, signature)


def _onnx_outline(file: ModelFile, signature: str | None) -> FileOutline:
    """What an .onnx file is made of."""
    from armpy.frontends.onnx.outline import read_outline

    return read_outline(file)


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
        ModelSignature(found.name, tuple(found.inputs), tuple(found.outputs))
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
